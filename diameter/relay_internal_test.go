package diameter

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/diameter/rx"
	"bsfd/internal/refusal"
	"bsfd/internal/rxnode"
	"bsfd/overload"
	"bsfd/storage/memory"
)

// path is the way of a message through the gateway without the sockets in
// front of it: what comes is handed to the connection's handler, what goes out
// is read by nobody who cares.
type path struct {
	af, pcf *conn
	t       *turn
	request []byte
	answer  []byte

	overload *overload.Controller
}

// idle is a machine that does nothing.
type idle struct{}

func (idle) Usage() overload.Usage { return overload.Usage{Cores: 1} }

func newPath(t testing.TB, request []byte) *path {
	t.Helper()
	cfg := DefaultConfig()
	ctl, err := overload.New(overload.Default(), overload.Identity{}, idle{}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	gate := ctl.Gate(overload.DiameterService)
	g, err := New(cfg, Deps{Documents: memory.New(), Refusals: refusal.NewJournal(refusal.Config{}, zerolog.Nop(), prometheus.NewRegistry()), Admitter: gate, Reports: gate, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	p := &path{overload: ctl, t: &turn{g: g, ctx: context.Background(), now: time.Now()}, request: request}
	p.af, p.pcf = p.connect(t, g, "af.ims.example"), p.connect(t, g, "pcf1.epc.example")
	var v rx.View
	if err := v.Scan(request); err != nil {
		t.Fatal(err)
	}
	p.answer = rx.AppendAnswer(nil, &v, rx.Origin{Host: "pcf1.epc.example", Realm: "epc.example"}, &rx.Answer{Result: rx.Base(rx.Success)})
	return p
}

// connect makes an open connection of a peer whose other end reads everything.
func (p *path) connect(t testing.TB, g *Gateway, host string) *conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, other)
	}()
	t.Cleanup(func() { _ = nc.Close(); <-done; _ = other.Close() })
	c := g.newConn(nc, TCP, nil)
	peer := g.newPeer(Peer{Host: host}, true)
	g.peers[host] = peer
	c.peer.Store(peer)
	peer.active.Store(c)
	return c
}

// pass sends one request through and its answer back.
func (p *path) pass(t testing.TB) {
	if _, _, err := p.af.handle(p.t, p.request); err != nil {
		t.Fatal(err)
	}
	p.t.flush()
	rx.SetHopByHop(p.answer, p.pcf.pend.last)
	if _, _, err := p.pcf.handle(p.t, p.answer); err != nil {
		t.Fatal(err)
	}
	p.t.flush()
}

// inSessionRequests are requests that are relayed without a lookup.
func inSessionRequests() map[string][]byte {
	s := &rxnode.Session{ID: "af;1", Host: "af.ims.example", Realm: "ims.example", DestRealm: "epc.example", DestHost: "pcf1.epc.example"}
	return map[string][]byte{"STR": s.Other(rx.SessionTermination), "AAR": s.AAR(addrs("10.0.0.1")[0])}
}

// TestRelayAllocatesNothing proves that a request and its answer pass without
// an allocation.
func TestRelayAllocatesNothing(t *testing.T) {
	if testing.CoverMode() != "" || raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, request := range inSessionRequests() {
		p := newPath(t, request)
		if n := testing.AllocsPerRun(2000, func() { p.pass(t) }); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if p.af.pend.len()+p.pcf.pend.len() != 0 || p.pcf.counters.answersIn.Load() < 2000 {
			t.Errorf("%s: did not pass", name)
		}
	}
}

// BenchmarkRelay measures a request and its answer on their way through the
// gateway, with the writes and without the reads.
func BenchmarkRelay(b *testing.B) {
	for name, request := range inSessionRequests() {
		b.Run(name, func(b *testing.B) {
			p := newPath(b, request)
			b.ReportAllocs()
			for b.Loop() {
				p.pass(b)
			}
		})
	}
}

// BenchmarkRefuse measures a request that is refused, as part of a batch like
// those that come under load: the answers are written together.
func BenchmarkRefuse(b *testing.B) {
	for name, request := range inSessionRequests() {
		b.Run(name, func(b *testing.B) {
			p := newPath(b, request)
			s := overload.Default()
			s.Shutdown.State = overload.OperationComplete
			if err := p.overload.Reconfigure(s); err != nil {
				b.Fatal(err)
			}
			batch := bytes.Repeat(request, flushEvery)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%flushEvery != 0 {
					continue
				}
				if _, _, err := p.af.handle(p.t, batch); err != nil {
					b.Fatal(err)
				}
				p.t.flush()
			}
		})
	}
}
