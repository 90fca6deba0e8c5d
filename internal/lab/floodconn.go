package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// floodConn is an HTTP/2 connection that registers bindings as they are due. It
// keeps to what the server allows: streams at once, and the windows. What is
// not sent or answered within the patience of a sender is given up, a request
// that was sent with CANCEL; as the clients of Go do, it counts as under way until
// a PING tells that the server has heard of it.
type floodConn struct {
	conn   net.Conn
	bodies [][]byte
	header []byte // of a request, fully indexed

	mu      sync.Mutex
	wake    *sync.Cond
	failure error
	start   time.Time
	under   *atomic.Int64
	queue   []time.Duration // when requests were due that are not sent
	streams map[uint32]flying
	order   []uint32 // of streams, oldest first
	most    int      // streams at once
	resets  int      // streams that were given up, as long as the server may not know
	pinging int      // those of them that the PING under way is for
	window  int      // octets that may be sent
	next    uint32   // stream
	n       int      // requests
	control []byte   // frames that are to be sent before anything else
	tally   tally
	reader  sync.WaitGroup
}

// flying is a request that was sent.
type flying struct {
	due    time.Duration
	status string // of the answer, once its headers have come
}

func dialFlood(ctx context.Context, root, priority string, bodies [][]byte) (*floodConn, error) {
	address := strings.TrimPrefix(root, "http://")
	c := &floodConn{
		bodies: bodies, streams: make(map[uint32]flying),
		most: 100, window: 1<<16 - 1, next: 1, start: time.Now(), under: new(atomic.Int64),
	}
	c.wake = sync.NewCond(&c.mu)
	hello, err := c.hello(address, priority)
	if err != nil {
		return nil, err
	}
	if c.conn, err = new(net.Dialer).DialContext(ctx, "tcp", address); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(hello); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	c.reader.Go(c.read)
	return c, nil
}

// hello is what begins a connection: the preface, settings, and a first request
// whose headers those of all others refer to.
func (c *floodConn) hello(address, priority string) ([]byte, error) {
	const ample = 1 << 30
	var out, header bytes.Buffer
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	if err := errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: ample}), f.WriteWindowUpdate(0, ample)); err != nil {
		return nil, err
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: address},
		{Name: ":path", Value: apiPath + "/pcfBindings"}, {Name: "content-type", Value: "application/json"},
		{Name: "content-length", Value: strconv.Itoa(len(c.bodies[0]))}, {Name: "3gpp-sbi-message-priority", Value: priority},
		{Name: "user-agent", Value: "bsfd-bench"},
	}
	e := hpack.NewEncoder(&header)
	encode := func() error {
		header.Reset()
		for _, field := range fields {
			if err := e.WriteField(field); err != nil {
				return err
			}
		}
		return nil
	}
	if err := encode(); err != nil {
		return nil, err
	}
	c.append(&out, header.Bytes())
	err := encode()
	c.header = header.Bytes()
	return out.Bytes(), err
}

func (c *floodConn) close() {
	_ = c.conn.Close()
	c.reader.Wait()
}

func (c *floodConn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// begin starts a run: under counts what is not done yet.
func (c *floodConn) begin(start time.Time, under *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start, c.under, c.tally = start, under, tally{}
}

// end forgets what is still under way and returns what became of the rest.
func (c *floodConn) end() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = c.queue[:0]
	for stream := range c.streams {
		c.cancel(stream)
	}
	return c.tally
}

// push notes that requests are due.
func (c *floodConn) push(due []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, due...)
	if !c.full() {
		c.wake.Signal()
	}
}

// send sends what is due until ctx ends.
func (c *floodConn) send(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.wake.Broadcast)
	defer stop()
	var out bytes.Buffer
	for {
		c.mu.Lock()
		for c.fill(&out); out.Len() == 0 && ctx.Err() == nil && c.failure == nil; c.fill(&out) {
			c.wake.Wait()
		}
		err := c.failure
		c.mu.Unlock()
		if err != nil || ctx.Err() != nil && out.Len() == 0 {
			return err
		}
		if err := c.conn.SetWriteDeadline(time.Now().Add(longestRecovery)); err != nil {
			return err
		}
		if _, err := c.conn.Write(out.Bytes()); err != nil {
			return fmt.Errorf("the server takes nothing any more: %w", err)
		}
		out.Reset()
	}
}

// fill puts into out what may be sent now.
func (c *floodConn) fill(out *bytes.Buffer) {
	now := time.Since(c.start)
	c.giveUp(now)
	out.Write(c.control)
	c.control = c.control[:0]
	const most = 32 << 10
	for len(c.queue) > 0 && out.Len() < most {
		due := c.queue[0]
		if now-due < senderPatience {
			if c.full() || c.window < len(c.bodies[0]) {
				return
			}
			c.streams[c.next] = flying{due: due}
			c.order = append(c.order, c.next)
			c.append(out, c.header)
		} else {
			c.under.Add(-1)
		}
		c.queue = c.queue[1:]
	}
}

// full reports whether there are as many streams as the server allows.
func (c *floodConn) full() bool { return len(c.streams)+c.resets >= c.most }

// giveUp cancels requests that were sent and whose sender waits no longer.
func (c *floodConn) giveUp(now time.Duration) {
	for ; len(c.order) > 0; c.order = c.order[1:] {
		x, ok := c.streams[c.order[0]]
		if ok && now-x.due < senderPatience {
			break
		}
		if ok {
			c.cancel(c.order[0])
		}
	}
	if c.resets > 0 && c.pinging == 0 {
		c.pinging = c.resets
		_ = c.reply(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) })
	}
}

func (c *floodConn) cancel(stream uint32) {
	c.finish(stream)
	c.resets++
	// A buffer takes everything.
	_ = c.reply(func(f *http2.Framer) error { return f.WriteRSTStream(stream, http2.ErrCodeCancel) })
}

func (c *floodConn) finish(stream uint32) {
	delete(c.streams, stream)
	c.under.Add(-1)
}

// append appends the next request.
func (c *floodConn) append(out *bytes.Buffer, header []byte) {
	f, b := http2.NewFramer(out, nil), c.bodies[c.n%len(c.bodies)]
	// A buffer takes everything.
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: header, EndHeaders: true})
	_ = f.WriteData(c.next, true, b)
	c.window -= len(b)
	c.next += 2
	c.n++
}

// read takes what the server sends until the connection ends.
func (c *floodConn) read() {
	f := http2.NewFramer(nil, c.conn)
	f.SetReuseFrames()
	status := ""
	h := hpack.NewDecoder(4<<10, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			status = f.Value
		}
	})
	for {
		frame, err := f.ReadFrame()
		if err == nil {
			if headers, ok := frame.(*http2.HeadersFrame); ok {
				_, err = h.Write(headers.HeaderBlockFragment())
			}
		}
		c.mu.Lock()
		if err == nil {
			err = c.take(frame, status)
		}
		if err != nil {
			c.failure = err
		}
		c.wake.Signal()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take handles a frame; status is that of the last headers.
func (c *floodConn) take(frame http2.Frame, status string) error {
	switch frame := frame.(type) {
	case *http2.HeadersFrame:
		x, ok := c.streams[frame.StreamID]
		if x.status = status; ok {
			c.streams[frame.StreamID] = x
		}
		if frame.StreamEnded() {
			c.answered(frame.StreamID)
		}
	case *http2.DataFrame:
		if frame.StreamEnded() {
			c.answered(frame.StreamID)
		}
	case *http2.RSTStreamFrame:
		if _, ok := c.streams[frame.StreamID]; ok {
			c.finish(frame.StreamID)
		}
	case *http2.WindowUpdateFrame:
		if frame.StreamID == 0 {
			c.window += int(frame.Increment)
		}
	case *http2.SettingsFrame:
		if frame.IsAck() {
			return nil
		}
		if n, ok := frame.Value(http2.SettingMaxConcurrentStreams); ok {
			c.most = int(n)
		}
		return c.reply(func(f *http2.Framer) error { return f.WriteSettingsAck() })
	case *http2.PingFrame:
		if frame.IsAck() {
			c.resets -= c.pinging
			c.pinging = 0
		} else {
			return c.reply(func(f *http2.Framer) error { return f.WritePing(true, frame.Data) })
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("GOAWAY: %s %s", frame.ErrCode, frame.DebugData())
	}
	return nil
}

// reply has the sender send a frame.
func (c *floodConn) reply(write func(*http2.Framer) error) error {
	var b bytes.Buffer
	err := write(http2.NewFramer(&b, nil))
	c.control = append(c.control, b.Bytes()...)
	return err
}

// answered notes the answer to a request.
func (c *floodConn) answered(stream uint32) {
	x, ok := c.streams[stream]
	if !ok {
		return
	}
	c.finish(stream)
	latency := time.Since(c.start) - x.due
	switch {
	case latency > senderPatience:
	case x.status == "201":
		c.tally.served++
		c.tally.latencies = append(c.tally.latencies, latency)
	default:
		c.tally.refused++
	}
}
