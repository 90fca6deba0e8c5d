package sbi

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/internal/admission"
)

// guard bounds the number of connections and closes those whose peer has
// stopped to take part: one that does not read what is written to it, or whose
// request neither arrives nor is answered to its end. It looks at every
// connection once a tick, so that requests pay for no timer of their own.
type guard struct {
	net.Listener
	limit int
	stall int64 // ticks
	tick  atomic.Int64
	// refusal is when a request was last refused for pressure, in nanoseconds
	// since 1970.
	refusal atomic.Int64

	mu    sync.Mutex
	conns map[*guardedConn]struct{}
}

const guardTick = time.Second

func newGuard(l net.Listener, limit int, stall time.Duration) *guard {
	return &guard{
		Listener: l, limit: limit,
		stall: max(1, int64(stall/guardTick)),
		conns: make(map[*guardedConn]struct{}),
	}
}

// Accept implements net.Listener. A connection beyond the limit is closed at
// once.
func (g *guard) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &guardedConn{Conn: conn, guard: g, opened: time.Now()}
		g.mu.Lock()
		full := len(g.conns) >= g.limit
		if !full {
			g.conns[c] = struct{}{}
		}
		g.mu.Unlock()
		if !full {
			return c, nil
		}
		_ = conn.Close()
	}
}

func (g *guard) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// backlog is the longest backlog of a connection.
func (g *guard) backlog(now time.Time) (longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		longest = max(longest, c.backlog.Since(now))
	}
	return longest
}

// run sweeps until ctx ends.
func (g *guard) run(ctx context.Context) {
	t := time.NewTicker(guardTick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			g.sweep(g.tick.Add(1))
		}
	}
}

func (g *guard) sweep(now int64) {
	g.mu.Lock()
	var stuck []*guardedConn
	for c := range g.conns {
		if c.stuck(now, g.stall) {
			stuck = append(stuck, c)
		}
	}
	g.mu.Unlock()
	for _, c := range stuck {
		_ = c.Close()
	}
}

// guardedConn is a connection with what the guard wants to know of it.
type guardedConn struct {
	net.Conn
	guard    *guard
	opened   time.Time
	writing  atomic.Int64 // tick at which the pending Write began, plus one; 0 when none is
	probe    atomic.Pointer[probe]
	active   atomic.Bool  // an HTTP/2 stream, or an HTTP/1.1 request, is open
	handlers atomic.Int64 // requests whose handler runs
	last     atomic.Int64 // tick at which a handler last began or returned
	once     sync.Once
	peer     admission.Peer
	backlog  admission.Backlog
	refused  atomic.Int64 // requests since the last read
	// buf is what is read into, ahead what of it was not asked for yet.
	buf, ahead []byte
	little     bool // the last read brought little
}

// probe is one request of a connection that the guard watches. Its context
// ends when its handler returns or its stream is closed.
type probe struct {
	ctx   context.Context
	since int64
}

// readAhead is how much is read at once. The HTTP/2 implementation reads the
// header and the payload of each frame on their own.
const readAhead = 4 << 10

// Read implements net.Conn. Only one goroutine reads at a time.
func (c *guardedConn) Read(b []byte) (int, error) {
	if len(c.ahead) > 0 {
		n := copy(b, c.ahead)
		c.ahead = c.ahead[n:]
		return n, nil
	}
	if c.pay() || c.coalesce() {
		// It is not read as fast as it could be, so it tells nothing.
		c.backlog.Read(0, 1)
	}
	// Requests that have come go before those that come next: whoever waits
	// for a processor has it first. Without this, more and more handlers would
	// wait while everything is read that is offered.
	runtime.Gosched()
	if len(b) >= readAhead {
		n, err := c.Conn.Read(b)
		c.backlog.Read(n, len(b))
		return n, err
	}
	if c.buf == nil {
		c.buf = make([]byte, readAhead)
	}
	got, err := c.Conn.Read(c.buf)
	c.little = got < len(c.buf)/2
	c.backlog.Read(got, len(c.buf))
	n := copy(b, c.buf[:got])
	c.ahead = c.buf[n:got]
	return n, err
}

// The price of a request that is refused is a pause before its connection is
// read again. A refusal costs about half of what service does, so without a
// price those who are refused take the processor from those who are not. With
// it the excess waits where it comes from.
const (
	refusalPrice = 500 * time.Microsecond
	highestPrice = 20 * time.Millisecond
)

// pay waits for what the refusals since the last read cost, and reports whether
// there were any.
func (c *guardedConn) pay() bool {
	n := c.refused.Swap(0)
	if n == 0 {
		return false
	}
	time.Sleep(min(time.Duration(n)*refusalPrice, highestPrice))
	return true
}

// While requests are refused for pressure, a read that brought little is
// followed by a pause, so that the next one brings more: many requests at once
// cost less than one at a time.
const (
	gathering = 4 * time.Millisecond
	// pressing is for how long a refusal says that there is too much to do.
	pressing = 200 * time.Millisecond
)

// coalesce waits for more to read, and reports whether it did.
func (c *guardedConn) coalesce() bool {
	if !c.little || time.Now().UnixNano()-c.guard.refusal.Load() > int64(pressing) {
		return false
	}
	time.Sleep(gathering)
	return true
}

// Write implements net.Conn.
func (c *guardedConn) Write(b []byte) (int, error) {
	c.writing.Store(c.guard.tick.Load() + 1)
	n, err := c.Conn.Write(b)
	c.writing.Store(0)
	return n, err
}

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.once.Do(func() {
		c.guard.mu.Lock()
		delete(c.guard.conns, c)
		c.guard.mu.Unlock()
	})
	return c.Conn.Close()
}

// begin notes that the handler of a request runs, and makes the request the
// one that the guard watches, if there is none.
func (c *guardedConn) begin(ctx context.Context) {
	c.handlers.Add(1)
	c.last.Store(c.guard.tick.Load())
	if c.probe.Load() == nil {
		c.probe.CompareAndSwap(nil, &probe{ctx, c.guard.tick.Load()})
	}
}

// end notes that the handler of a request has returned.
func (c *guardedConn) end() {
	c.last.Store(c.guard.tick.Load())
	c.handlers.Add(-1)
}

// noteState keeps track of connections on which something is open.
func noteState(c net.Conn, s http.ConnState) {
	if g := guarded(c); g != nil {
		g.last.Store(g.guard.tick.Load())
		g.active.Store(s == http.StateActive)
	}
}

func (c *guardedConn) stuck(now, stall int64) bool {
	if w := c.writing.Load(); w != 0 && now-(w-1) > stall {
		return true
	}
	// Every handler has returned and still something is open: the answers
	// wait for a peer that does not take them.
	if c.active.Load() && c.handlers.Load() == 0 && now-c.last.Load() > stall {
		return true
	}
	p := c.probe.Load()
	if p == nil {
		return false
	}
	if p.ctx.Err() != nil {
		c.probe.Store(nil)
		return false
	}
	return now-p.since > stall
}

// connKey is the context key of the guardedConn of a request.
type connKey struct{}

// withConn puts the connection into the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if g := guarded(c); g != nil {
		return context.WithValue(ctx, connKey{}, g)
	}
	return ctx
}

// guarded finds the guarded connection, under TLS too.
func guarded(c net.Conn) *guardedConn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	g, _ := c.(*guardedConn)
	return g
}
