package diameter

import (
	"crypto/tls"
	"net"
	"syscall"
)

// quickAck has the kernel acknowledge at once what comes on a connection. An
// agent answers on another connection than the one it has read from, so there
// is seldom something to send the acknowledgement with; a peer that waits for
// it before it sends its next small message (Nagle's algorithm) would wait 40
// ms.
type quickAck struct {
	raw syscall.RawConn // nil where there is no TCP
	set func(fd uintptr)
}

func newQuickAck(nc net.Conn) (q quickAck) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			q.raw = raw
		}
	}
	q.set = func(fd uintptr) {
		// It speeds up; nothing depends on it.
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
	}
	return q
}

// arm is called before each read: the kernel falls back by itself.
func (q *quickAck) arm() {
	if q.raw != nil {
		// An error means that the connection is closed, as the read will say.
		_ = q.raw.Control(q.set)
	}
}
