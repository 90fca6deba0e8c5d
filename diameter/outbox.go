package diameter

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// outbox is what waits to be written to a connection. Nobody waits for a
// write: what the socket does not take at once is left to a goroutine of the
// connection, and when too much has gathered the connection is closed.
type outbox struct {
	nc    net.Conn
	raw   syscall.RawConn // nil where every write may wait, as with TLS
	limit int
	// patience is how long a write may make no progress.
	patience time.Duration
	// failed is told when a write fails that nobody waits for.
	failed func(error)

	mu      sync.Mutex
	buf     []byte // not yet being written
	spare   []byte // the other buffer, when idle
	writing bool
	closed  bool
	wg      sync.WaitGroup

	// of the write under way
	now     []byte
	n       int
	err     error
	attempt func(fd uintptr) bool
}

// errSlow says that a peer does not take what is sent to it.
var errSlow = errors.New("the peer does not read")

func newOutbox(nc net.Conn, limit int, patience time.Duration, failed func(error)) *outbox {
	o := &outbox{nc: nc, limit: limit, patience: patience, failed: failed}
	if sc, ok := nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			o.raw = raw
		}
	}
	o.attempt = func(fd uintptr) bool {
		o.n, o.err = syscall.Write(int(fd), o.now)
		return true
	}
	return o
}

// add appends a message. It is written by the next flush.
func (o *outbox) add(message []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return net.ErrClosed
	case len(o.buf)+len(message) > o.limit:
		return errSlow
	}
	o.buf = append(o.buf, message...)
	return nil
}

// next takes what waits; ok is false, and the outbox idle, when nothing does.
func (o *outbox) next(done []byte) (buf []byte, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if done != nil {
		o.spare = done[:0]
	}
	if len(o.buf) == 0 || o.closed {
		o.writing = false
		return nil, false
	}
	buf = o.buf
	o.buf, o.spare = o.spare, nil
	return buf, true
}

// begin takes what waits, unless a write is under way.
func (o *outbox) begin() (buf []byte, ok bool) {
	o.mu.Lock()
	if o.writing || o.closed {
		o.mu.Unlock()
		return nil, false
	}
	o.writing = true
	o.mu.Unlock()
	return o.next(nil)
}

// flush writes what waits without waiting itself. The error is that of the
// socket.
func (o *outbox) flush() error {
	buf, ok := o.begin()
	for ok {
		n := 0
		if o.raw != nil {
			var err error
			if n, err = o.tryWrite(buf); err != nil {
				return err
			}
		}
		if n < len(buf) {
			o.leave(buf, n)
			return nil
		}
		buf, ok = o.next(buf)
	}
	return nil
}

// tryWrite writes what the socket takes at once.
func (o *outbox) tryWrite(buf []byte) (int, error) {
	o.now = buf
	err := o.raw.Write(o.attempt)
	o.now = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(o.err, syscall.EAGAIN) || errors.Is(o.err, syscall.EINTR):
		return 0, nil
	case o.err != nil:
		return 0, o.err
	}
	return o.n, nil
}

// leave has a goroutine write the rest, and all that gathers meanwhile.
func (o *outbox) leave(buf []byte, from int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.wg.Go(func() {
		rest, ok := buf[from:], true
		for ok {
			if err := o.write(rest); err != nil {
				o.failed(err)
				return
			}
			buf, ok = o.next(buf)
			rest = buf
		}
	})
}

// write waits until all is written, as long as there is progress.
func (o *outbox) write(b []byte) error {
	const chunk = 64 << 10
	for len(b) > 0 {
		if err := o.nc.SetWriteDeadline(time.Now().Add(o.patience)); err != nil {
			return err
		}
		n, err := o.nc.Write(b[:min(len(b), chunk)])
		if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
			return errSlow
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		b = b[n:]
	}
	return nil
}

// waiting is how many octets wait.
func (o *outbox) waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.buf)
}

// idle reports whether everything is written.
func (o *outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing && len(o.buf) == 0
}

// rest frees the buffers of an idle connection.
func (o *outbox) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing && len(o.buf) == 0 {
		o.buf, o.spare = nil, nil
	}
}

// close refuses everything from now on and closes the socket.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.buf, o.spare = nil, nil
	o.mu.Unlock()
	if t, ok := o.nc.(*tls.Conn); ok {
		// The close of TLS would wait for the peer.
		_ = t.NetConn().Close()
		return
	}
	_ = o.nc.Close()
}

// wait returns when nothing is written any more.
func (o *outbox) wait() { o.wg.Wait() }
