// Package rxnode is a simple endpoint of Rx, a PCF or an AF, for the lab, the
// bench and tests. It exchanges capabilities and answers the base protocol by
// itself, and knows nothing about agents.
package rxnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/diameter/rx"
)

// Node is a Diameter endpoint of Rx on one connection: a PCF or an AF. It
// answers the base protocol by itself.
type Node struct {
	Host, Realm string

	conn net.Conn
	cea  []byte
	hop  atomic.Uint32
	done chan struct{}

	mu      sync.Mutex
	handler Handler
	waiting map[uint32]chan []byte
	mute    bool
}

// Handler answers a request of Rx; nil leaves it without answer.
type Handler func(n *Node, v *rx.View) []byte

// Identity is how a node introduces itself.
type Identity struct {
	Host, Realm string
	// StateID is the Origin-State-Id; 0 sends 1.
	StateID uint32
	// Applications are offered; Rx when empty.
	Applications []uint32
}

func (id Identity) capabilities() *rx.Capabilities {
	c := &rx.Capabilities{
		Origin:          rx.Origin{Host: id.Host, Realm: id.Realm, StateID: max(1, id.StateID)},
		HostIPAddresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, ProductName: "rxnode", Applications: id.Applications,
	}
	if len(c.Applications) == 0 {
		c.Applications = []uint32{rx.ApplicationID}
	}
	return c
}

// handshakeTime bounds a capabilities exchange.
const handshakeTime = 10 * time.Second

// Dial connects to a node and exchanges capabilities. The handler answers what
// comes; it may be nil.
func Dial(ctx context.Context, address string, id Identity, h Handler) (*Node, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	n, err := Join(conn, id, h)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return n, nil
}

// Join exchanges capabilities on a connection that was made.
func Join(conn net.Conn, id Identity, h Handler) (*Node, error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(id.capabilities().CER(1, 1)); err != nil {
		return nil, err
	}
	cea, err := ReadMessage(conn)
	if err != nil {
		return nil, fmt.Errorf("CEA: %w", err)
	}
	if got := ResultOf(cea); got != rx.Base(rx.Success) {
		return nil, &Refused{got, cea}
	}
	n := newNode(conn, id, h)
	n.cea = cea
	return n, conn.SetDeadline(time.Time{})
}

// Refused is the error when the other side does not accept the node.
type Refused struct {
	Result rx.Result
	CEA    []byte
}

// Error implements error.
func (r *Refused) Error() string { return "CEA with " + r.Result.String() }

// Accept takes a connection from the listener and exchanges capabilities.
func Accept(l net.Listener, id Identity, h Handler) (*Node, error) {
	conn, err := l.Accept()
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	cer, err := ReadMessage(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if _, err := conn.Write(id.capabilities().CEA(rx.ParseHeader(cer), rx.Success, "", nil)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return newNode(conn, id, h), conn.SetDeadline(time.Time{})
}

func newNode(conn net.Conn, id Identity, h Handler) *Node {
	n := &Node{Host: id.Host, Realm: id.Realm, conn: conn, handler: h, waiting: make(map[uint32]chan []byte), done: make(chan struct{})}
	n.hop.Store(1000)
	go n.read()
	return n
}

// CEA is the answer that the other side gave, nil for a node that accepted.
func (n *Node) CEA() []byte { return n.cea }

// Close closes the connection, without DPR, and waits until nothing is read
// any more.
func (n *Node) Close() {
	_ = n.conn.Close()
	<-n.done
}

// Done is closed when the connection has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Mute stops or lets go on everything that the node answers by itself.
func (n *Node) Mute(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = on
}

func (n *Node) read() {
	defer close(n.done)
	defer n.conn.Close()
	var v rx.View
	for {
		m, err := ReadMessage(n.conn)
		if err != nil || v.Scan(m) != nil {
			return
		}
		if !v.Request() {
			n.deliver(m)
			continue
		}
		n.mu.Lock()
		handler, mute := n.handler, n.mute
		n.mu.Unlock()
		if mute {
			continue
		}
		if a := n.reply(handler, &v); a != nil {
			if _, err := n.conn.Write(a); err != nil {
				return
			}
		}
		if v.Application == 0 && v.Command == rx.DisconnectPeer {
			return
		}
	}
}

func (n *Node) reply(h Handler, v *rx.View) []byte {
	if v.Application == 0 {
		return n.Answer(v, rx.Base(rx.Success))
	}
	if h == nil {
		return n.Answer(v, rx.Base(rx.UnableToComply))
	}
	return h(n, v)
}

func (n *Node) deliver(m []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	hop := rx.ParseHeader(m).HopByHop
	if ch := n.waiting[hop]; ch != nil {
		ch <- m
	}
}

// Answer is an answer of the node with the result.
func (n *Node) Answer(v *rx.View, r rx.Result) []byte {
	return rx.AppendAnswer(nil, v, rx.Origin{Host: n.Host, Realm: n.Realm}, &rx.Answer{Result: r})
}

// Send sends octets as they are.
func (n *Node) Send(b []byte) error {
	_, err := n.conn.Write(b)
	return err
}

// Request sends a request, with a Hop-by-Hop Identifier of its own, and waits
// for its answer.
func (n *Node) Request(ctx context.Context, m []byte) ([]byte, error) {
	answers, err := n.Begin(m)
	if err != nil {
		return nil, err
	}
	select {
	case a := <-answers:
		return a, nil
	case <-n.done:
		// The answer may have been the last thing that came.
		select {
		case a := <-answers:
			return a, nil
		default:
			return nil, io.ErrUnexpectedEOF
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Begin sends a request and returns where its answers appear; all of them, if
// there are more than one.
func (n *Node) Begin(m []byte) (<-chan []byte, error) {
	hop := n.hop.Add(1)
	rx.SetHopByHop(m, hop)
	answers := make(chan []byte, 4)
	n.mu.Lock()
	n.waiting[hop] = answers
	n.mu.Unlock()
	return answers, n.Send(m)
}
