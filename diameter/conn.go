package diameter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/bsf"
	"bsfd/diameter/rx"
	"bsfd/internal/admission"
	"bsfd/internal/refusal"
)

// conn is one transport connection.
type conn struct {
	g         *Gateway
	nc        net.Conn
	out       *outbox
	pend      pendings
	transport Transport
	// dialled is the peer that this connection was made to, nil when it came
	// in.
	dialled *peer
	opened  time.Time

	// peer is set once capabilities are exchanged.
	peer atomic.Pointer[peer]
	// stranger is set while the connection counts as one without capabilities
	// exchange.
	stranger atomic.Bool
	// received is when something came last, in nanoseconds since 1970; wdDue
	// is when the watchdog has to be looked at.
	received, wdDue atomic.Int64
	// doubtful is set while the watchdog is not OKAY: then every message
	// counts at once.
	doubtful atomic.Bool
	// tickets gives the Hop-by-Hop Identifiers of base requests.
	tickets atomic.Uint32

	mu     sync.Mutex
	reason string // why it was closed, the first reason given
	closed bool

	counters counters
	backlog  admission.Backlog
}

// counters count messages of a connection.
type counters struct {
	requestsIn, requestsOut, answersIn, answersOut, discarded atomic.Uint64
}

func (g *Gateway) newConn(nc net.Conn, t Transport, dialled *peer) *conn {
	c := &conn{
		g: g, nc: nc, transport: t, dialled: dialled, opened: time.Now(),
	}
	c.out = newOutbox(nc, g.cfg.Limits.QueueBytes, g.cfg.Transport.Write, func(err error) { c.close(err.Error()) })
	c.pend.start(uint32(c.opened.UnixNano()), g.cfg.Limits.Pending)
	c.tickets.Store(uint32(c.opened.UnixNano() >> 7))
	return c
}

// close closes the connection. The first reason counts.
func (c *conn) close(reason string) {
	c.mu.Lock()
	first := !c.closed
	if first {
		c.closed, c.reason = true, reason
	}
	c.mu.Unlock()
	if first {
		c.out.close()
	}
}

// closeReason is why the connection was closed.
func (c *conn) closeReason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// isKnown ends that the connection counts as one of a stranger.
func (c *conn) isKnown() {
	if c.stranger.CompareAndSwap(true, false) {
		c.g.strangers.Add(-1)
	}
}

// ended reports whether the connection was closed.
func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *conn) fromInstance() bool {
	p := c.peer.Load()
	return p != nil && p.cfg.Instance
}

// host is the identity of the peer, or its address before that is known.
func (c *conn) host() string {
	if p := c.peer.Load(); p != nil {
		return p.host
	}
	return c.nc.RemoteAddr().String()
}

// Sizes of the read buffer: it grows while the peer fills it.
const (
	readBufferMin = 4 << 10
	readBufferMax = 64 << 10
)

// serve reads until the connection ends. Everything that a message sets off
// happens in here, except what waits for something.
func (c *conn) serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.close("the gateway stops") })
	defer stop()
	err := c.handshake(ctx)
	if err == nil {
		err = c.read(ctx)
	}
	if fault := (*rx.Error)(nil); errors.As(err, &fault) {
		c.linger(ctx)
	}
	c.close(endReason(err))
	c.out.wait()
}

// linger lets a peer read the last answer: a socket that is closed with octets
// unread loses what was just written.
func (c *conn) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	// A peer that does not take it in time goes without.
	_ = c.g.until(ctx, c.out.idle)
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	// Only the end matters.
	_, _ = io.Copy(io.Discard, io.LimitReader(c.nc, lingerBytes))
}

// Bounds of linger.
const (
	lingerTime  = time.Second
	lingerBytes = 1 << 20
)

// endReason puts the end of a connection into words.
func endReason(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "the peer closed the connection"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no capabilities exchange in time"
	}
	return err.Error()
}

func (c *conn) handshake(ctx context.Context) error {
	if err := c.nc.SetDeadline(time.Now().Add(c.g.cfg.Transport.Capabilities)); err != nil {
		return err
	}
	if t, ok := c.nc.(*tls.Conn); ok {
		if err := t.HandshakeContext(ctx); err != nil {
			c.g.metrics.failedConns.WithLabelValues(string(c.transport), "handshake").Inc()
			c.g.deps.Refusals.Report(refusal.Handshake("diameter.tls", c.nc.RemoteAddr().String(), err.Error()))
			return fmt.Errorf("TLS: %w", err)
		}
	}
	if c.dialled == nil {
		return nil
	}
	// The identity of this node goes first on a connection that it made.
	if err := c.out.add(c.g.capabilities(c).CER(c.tickets.Add(1), c.g.endToEnd())); err != nil {
		return err
	}
	return c.out.flush()
}

// read takes messages from the connection and handles them.
func (c *conn) read(ctx context.Context) error {
	t := &turn{g: c.g, ctx: ctx}
	buf := make([]byte, readBufferMin)
	from, to := 0, 0
	ack := newQuickAck(c.nc)
	for {
		ack.arm()
		n, err := c.nc.Read(buf[to:])
		if n == 0 && err != nil {
			return err
		}
		to += n
		full := to == len(buf)
		if len(buf) >= readBufferMax {
			// A smaller buffer is filled by what comes at once.
			c.backlog.Read(n, n+len(buf)-to)
		}
		t.now = time.Now()
		c.received.Store(t.now.UnixNano())
		used, need, err := c.handle(t, buf[from:to])
		t.flush()
		if err != nil {
			return err
		}
		from += used
		if from == to {
			from, to = 0, 0
		}
		size := len(buf)
		if full && size < readBufferMax {
			size *= 2
		}
		buf, from, to = room(buf, from, to, max(size, need))
		if n < coalesce && c.g.deps.Admitter.Pressed() {
			pause(ctx, coalesceTime)
		}
	}
}

// Under pressure a read that brought less than coalesce octets is followed by
// a pause: many messages at once cost much less than one at a time, and a
// short wait is better than a refusal.
const (
	coalesce     = 16 << 10
	coalesceTime = time.Millisecond
)

// room moves what is left to the front of a buffer of at least the size.
func room(buf []byte, from, to, size int) ([]byte, int, int) {
	if size > len(buf) {
		bigger := make([]byte, size)
		return bigger, 0, copy(bigger, buf[from:to])
	}
	if from > 0 {
		return buf, 0, copy(buf, buf[from:to])
	}
	return buf, from, to
}

// handle handles the whole messages at the front of b and returns how many
// octets they are, and how long the next message is when that is known.
func (c *conn) handle(t *turn, b []byte) (used, need int, err error) {
	for len(b)-used >= rx.HeaderLen {
		if t.passed >= flushEvery {
			t.flush()
		}
		h := rx.ParseHeader(b[used:])
		length := int(h.Length)
		if err := c.checkFrame(t, h, b[used:]); err != nil {
			return used, 0, err
		}
		if length > len(b)-used {
			return used, length, nil
		}
		if err := c.message(t, b[used:used+length]); err != nil {
			return used, 0, err
		}
		used += length
	}
	return used, 0, nil
}

// flushEvery is after how many messages that are passed on others get theirs:
// they work on them while the rest of what was read is handled. What is
// answered here waits for the end of it.
const flushEvery = 32

// checkFrame refuses a header after which the next message cannot be found.
// The peer gets the answer that RFC 6733 has for it, then the connection ends.
func (c *conn) checkFrame(t *turn, h rx.Header, b []byte) error {
	var fault *rx.Error
	switch {
	case h.Version != rx.Version:
		fault = &rx.Error{Result: rx.Base(rx.UnsupportedVersion), Text: fmt.Sprintf("version %d of Diameter", h.Version)}
	case h.Length < rx.HeaderLen || h.Length%4 != 0:
		fault = &rx.Error{Result: rx.Base(rx.InvalidMessageLength), Text: fmt.Sprintf("a message length of %d", h.Length)}
	case int(h.Length) > c.g.cfg.Limits.MessageBytes:
		fault = &rx.Error{Result: rx.Base(rx.InvalidMessageLength), Text: fmt.Sprintf("a message length of %d, more than %d", h.Length, c.g.cfg.Limits.MessageBytes)}
	default:
		return nil
	}
	c.g.metrics.malformed.WithLabelValues("frame").Inc()
	if h.Request() && c.peer.Load() != nil {
		t.view = rx.View{Header: h, Raw: b[:rx.HeaderLen]}
		c.answer(t, &rx.Answer{Result: fault.Result, Text: fault.Text})
	}
	return fault
}

// message handles one message.
func (c *conn) message(t *turn, m []byte) error {
	h := rx.ParseHeader(m)
	p := c.peer.Load()
	switch {
	case p == nil:
		return c.greet(t, m)
	case h.Application == 0 && h.Command != rx.AA && (h.Request() || h.Command.Base()):
		return c.base(t, p, m)
	}
	if c.doubtful.Load() {
		p.receive(t, c, false)
	}
	if h.Request() {
		c.counters.requestsIn.Add(1)
		decided := false
		t.asked.Priority = admission.Absent
		if c.g.deps.Admitter.Pressed() {
			var refused bool
			if refused, decided = c.hasten(t, h, m); refused {
				return nil
			}
		}
		c.request(t, m, decided)
		return nil
	}
	c.counters.answersIn.Add(1)
	c.forwardAnswer(t, m)
	return nil
}

// send appends a message and notes that the connection is to be flushed. A
// peer that takes nothing loses its connection.
func (c *conn) send(t *turn, m []byte) {
	if err := c.out.add(m); errors.Is(err, errSlow) {
		c.close(errSlow.Error())
	}
	t.touch(c)
}

// answer sends an answer of this node to the request in t.view, which it has
// tried to serve.
func (c *conn) answer(t *turn, a *rx.Answer) {
	if !a.Result.Success() {
		c.g.deps.Admitter.Failed(int(a.Result.Code))
		c.g.refused(c, t.view.Command, a)
	}
	c.reply(t, a)
}

// refusedKind is a kind of answers that refuse.
type refusedKind struct {
	command rx.Command
	result  rx.Result
	key     refusal.Key
}

// refused remembers an answer of this node that refuses a request, and logs it.
// Those that follow one another are often alike.
func (g *Gateway) refused(c *conn, command rx.Command, a *rx.Answer) {
	last := g.lastRefused.Load()
	if last == nil || last.command != command || last.result != a.Result {
		last = &refusedKind{command, a.Result, refusal.Key{Interface: "diameter", What: command.Request(), Result: a.Result.String()}}
		g.lastRefused.Store(last)
	}
	if k := &last.key; g.deps.Refusals.Count(*k) {
		g.deps.Refusals.Note(&refusal.Refusal{
			Interface: k.Interface, What: k.What, Result: k.Result, Detail: a.Text, Peer: c.host(), Hint: g.hint(a.Result),
		}, nil)
	}
}

// reply sends an answer of this node to the request in t.view.
func (c *conn) reply(t *turn, a *rx.Answer) {
	if t.view.Application != 0 {
		a.Extra = c.reports(t, true, false, t.view.OCSupportedFeatures.Present())
	}
	t.scratch = rx.AppendAnswer(t.scratch[:0], &t.view, c.g.origin(), a)
	c.counters.answersOut.Add(1)
	c.g.metrics.own(a.Result)
	c.send(t, t.scratch)
}

// turn is what one goroutine needs while it handles messages: it collects the
// connections that it wrote to, so that each is flushed once.
type turn struct {
	g       *Gateway
	ctx     context.Context
	now     time.Time
	view    rx.View
	query   bsf.Query // of the lookup under way
	asked   admission.Request
	hasty   hasty
	scratch []byte
	dirty   []*conn
	passed  int // messages that were passed on since the last flush
	// names keeps the identities that were seen as text.
	names map[string]string
}

// maxNames bounds names.
const maxNames = 256

// intern is the text of b; it allocates only for what is new.
func (t *turn) intern(b []byte) string {
	if s, ok := t.names[string(b)]; ok {
		return s
	}
	if t.names == nil || len(t.names) >= maxNames {
		t.names = make(map[string]string)
	}
	s := string(b)
	t.names[s] = s
	return s
}

func (t *turn) touch(c *conn) {
	for _, d := range t.dirty {
		if d == c {
			return
		}
	}
	t.dirty = append(t.dirty, c)
}

// flush writes what the turn has appended.
func (t *turn) flush() {
	for i, c := range t.dirty {
		if err := c.out.flush(); err != nil {
			c.close(err.Error())
		}
		t.dirty[i] = nil
	}
	t.dirty = t.dirty[:0]
	t.passed = 0
}
