package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/dict"
	"golang.org/x/sync/errgroup"

	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// The references for Rx connect the first two nodes that come: what one sends
// goes to the other.

const relayPrefix = "relay on "

// serveRaw is the reference that does the least a relay can do: it finds the
// messages, gives each request a Hop-by-Hop Identifier of its own, and puts
// the old one back into the answer. It looks nothing up and checks nothing.
func serveRaw(ctx context.Context, stdout io.Writer) error {
	return serveRelay(ctx, stdout, func(l net.Listener) error {
		a, err := welcome(l)
		if err != nil {
			return err
		}
		b, err := welcome(l)
		if err != nil {
			return err
		}
		fromA, fromB := &rawHops{}, &rawHops{}
		var group errgroup.Group
		group.Go(func() error { return rawRelay(a, b, fromA, fromB) })
		group.Go(func() error { return rawRelay(b, a, fromB, fromA) })
		return group.Wait()
	})
}

// serveRelay listens for a relay until ctx ends.
func serveRelay(ctx context.Context, stdout io.Writer, run func(net.Listener) error) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s%s\n", relayPrefix, l.Addr())
	var group errgroup.Group
	group.Go(func() error { return run(l) })
	<-ctx.Done()
	// The connections end with the process.
	return l.Close()
}

// welcome takes a connection and answers its CER.
func welcome(l net.Listener) (net.Conn, error) {
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	cer, err := rxnode.ReadMessage(c)
	if err != nil {
		return nil, err
	}
	caps := rx.Capabilities{Origin: rx.Origin{Host: benchBSF, Realm: benchRealm}, Applications: []uint32{rx.ApplicationID}}
	_, err = c.Write(caps.CEA(rx.ParseHeader(cer), rx.Success, "", nil))
	return c, err
}

// rawHops are the requests of one side that wait for an answer.
type rawHops struct {
	mu   sync.Mutex
	last uint32
	m    map[uint32]uint32
}

func (h *rawHops) add(old uint32) uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		h.m = make(map[uint32]uint32)
	}
	h.last++
	h.m[h.last] = old
	return h.last
}

func (h *rawHops) take(id uint32) uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.m[id]
	delete(h.m, id)
	return old
}

func rawRelay(from, to net.Conn, requests, answers *rawHops) error {
	in := frames{c: from}
	var out []byte
	for {
		out = out[:0]
		err := in.next(func(m []byte) {
			h := rx.ParseHeader(m)
			start := len(out)
			out = append(out, m...)
			if h.Request() {
				rx.SetHopByHop(out[start:], requests.add(h.HopByHop))
			} else {
				rx.SetHopByHop(out[start:], answers.take(h.HopByHop))
			}
		})
		if err != nil {
			return err
		}
		if _, err := to.Write(out); err != nil {
			return err
		}
	}
}

// goRelay is the reference on go-diameter: its server reads and decodes, its
// messages are encoded and written by it.
type goRelay struct {
	mu      sync.Mutex
	conns   []diam.Conn
	last    uint32
	waiting map[uint32]goHop
}

type goHop struct {
	conn diam.Conn
	hop  uint32
}

// serveGoDiameter serves the reference on go-diameter.
func serveGoDiameter(ctx context.Context, stdout io.Writer) error {
	return serveRelay(ctx, stdout, func(l net.Listener) error {
		r := &goRelay{waiting: make(map[uint32]goHop)}
		mux := diam.NewServeMux()
		mux.HandleFunc("CER", r.greet)
		mux.HandleFunc("ALL", r.relay)
		go func() {
			for report := range mux.ErrorReports() {
				_ = report
			}
		}()
		err := (&diam.Server{Handler: mux, Dict: dict.Default}).Serve(l)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		return err
	})
}

func (r *goRelay) greet(c diam.Conn, m *diam.Message) {
	a := m.Answer(diam.Success)
	a.AddAVP(diam.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(benchBSF)))
	a.AddAVP(diam.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(benchRealm)))
	a.AddAVP(diam.NewAVP(avp.HostIPAddress, avp.Mbit, 0, datatype.Address(net.IPv4(127, 0, 0, 1))))
	a.AddAVP(diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(rx.ApplicationID)))
	if _, err := a.WriteTo(c); err != nil {
		c.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, c)
}

func (r *goRelay) relay(c diam.Conn, m *diam.Message) {
	to := r.readdress(c, m)
	if to == nil {
		return
	}
	if _, err := m.WriteTo(to); err != nil {
		to.Close()
	}
}

// readdress chooses where a message goes and changes its identifier.
func (r *goRelay) readdress(c diam.Conn, m *diam.Message) diam.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Header.CommandFlags&diam.RequestFlag == 0 {
		back, ok := r.waiting[m.Header.HopByHopID]
		if !ok {
			return nil
		}
		delete(r.waiting, m.Header.HopByHopID)
		m.Header.HopByHopID = back.hop
		return back.conn
	}
	for _, other := range r.conns {
		if other != c {
			r.last++
			r.waiting[r.last] = goHop{c, m.Header.HopByHopID}
			m.Header.HopByHopID = r.last
			return other
		}
	}
	return nil
}
