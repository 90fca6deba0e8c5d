package diameter_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/refusal"
	"bsfd/internal/rxnode"
	"bsfd/internal/tgpp"
	"bsfd/overload"
	"bsfd/storage/memory"
)

// network is a gateway on real sockets with real bindings, and the peers that
// tests connect to it.
type network struct {
	t        testing.TB
	gateway  *diameter.Gateway
	registry *bsf.Registry
	store    *memory.Store
	metrics  *prometheus.Registry
	overload *overload.Controller
	address  string
	stop     func()

	mu    sync.Mutex
	nodes map[string]*rxnode.Node
}

type noSubscribers struct{}

func (noSubscribers) Wake()         {}
func (noSubscribers) Forget(bsf.ID) {}

// idle is a machine that does nothing.
type idle struct{}

func (idle) Usage() overload.Usage { return overload.Usage{Cores: 1} }

// change changes the settings of the overload control.
func (n *network) change(with func(*overload.Settings)) {
	n.t.Helper()
	s := overload.Default()
	with(&s)
	if err := n.overload.Reconfigure(s); err != nil {
		n.t.Fatal(err)
	}
}

// config is a gateway that lets the nodes of the tests in.
func config() diameter.Config {
	c := diameter.DefaultConfig()
	c.Listen = []string{"127.0.0.1:0"}
	c.OriginHost, c.OriginRealm = "bsf.epc.example", "epc.example"
	c.AllowedRealms = []string{"epc.example", "ims.example"}
	c.Timers.Response = 3 * time.Second
	c.Transport.ReconnectMin, c.Transport.ReconnectMax = 20*time.Millisecond, 50*time.Millisecond
	return c
}

// start runs a gateway until the test ends.
func start(t testing.TB, change ...func(*diameter.Config)) *network {
	t.Helper()
	return startWith(t, nil, change...)
}

// startWith is start with another place to look for bindings, unless nil.
func startWith(t testing.TB, bindings diameter.Bindings, change ...func(*diameter.Config)) *network {
	t.Helper()
	cfg := config()
	for _, c := range change {
		c(&cfg)
	}
	n := &network{t: t, nodes: make(map[string]*rxnode.Node), store: memory.New(), metrics: prometheus.NewRegistry()}
	var err error
	n.registry, err = bsf.NewRegistry(bsf.Config{
		SameAddress: bsf.Keep, MultipleMatches: bsf.MatchError, StoreCookie: true, Features: bsf.SupportedFeatures,
	}, n.store, n.store, noSubscribers{}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	n.overload, err = overload.New(overload.Default(), overload.Identity{InstanceID: "x", Name: "bsf"}, idle{}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	gate := n.overload.Gate(overload.DiameterService)
	deps := diameter.Deps{Bindings: n.registry, Admitter: gate, Reports: gate, Documents: n.store, Refusals: refusal.NewJournal(refusal.Config{}, zerolog.Nop(), prometheus.NewRegistry()), Log: zerolog.Nop(), Metrics: n.metrics}
	if bindings != nil {
		deps.Bindings, deps.Remote = bindings, true
	}
	if n.gateway, err = diameter.New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	n.run()
	return n
}

func (n *network) run() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.t.Context()))
	if err := n.gateway.Listen(ctx); err != nil {
		n.t.Fatal(err)
	}
	if addrs := n.gateway.Addrs(); len(addrs) > 0 {
		_, n.address, _ = strings.Cut(addrs[0], "://")
	}
	ended := make(chan error, 1)
	go func() { ended <- n.gateway.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			n.t.Error(err)
		}
	})
	n.t.Cleanup(n.stop)
}

// register stores a binding of the UE address with the PCF.
func (n *network) register(b bsf.PcfBinding, cookie ...string) *bsf.Record {
	n.t.Helper()
	if b.Dnn == "" {
		b.Dnn = "ims"
	}
	b.Snssai, b.PcfFqdn = tgpp.Snssai{Sst: 1}, "pcf.example.com"
	reg := &bsf.Registration{Binding: b}
	if len(cookie) > 0 {
		reg.Cookie = cookie[0]
	}
	rec, err := n.registry.Register(n.t.Context(), reg)
	if err != nil {
		n.t.Fatal(err)
	}
	return rec
}

// bind registers addresses 10.0.0.x at a PCF.
func (n *network) bind(pcf string, addresses ...string) {
	n.t.Helper()
	for _, a := range addresses {
		n.register(bsf.PcfBinding{Ipv4Addr: netip.MustParseAddr(a), PcfDiamHost: tgpp.Fqdn(pcf), PcfDiamRealm: "epc.example"})
	}
}

// join connects a node.
func (n *network) join(host, realm string, h rxnode.Handler) *rxnode.Node {
	n.t.Helper()
	return n.joinAs(rxnode.Identity{Host: host, Realm: realm}, h)
}

func (n *network) joinAs(id rxnode.Identity, h rxnode.Handler) *rxnode.Node {
	n.t.Helper()
	node, err := rxnode.Dial(n.t.Context(), n.address, id, h)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(node.Close)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[id.Host] = node
	return node
}

// disconnect has the node of the host leave without a word.
func (n *network) disconnect(host string) {
	n.t.Helper()
	n.mu.Lock()
	node := n.nodes[host]
	n.mu.Unlock()
	node.Close()
	until(n.t, host+" is gone", func() bool { return n.state(host).State == diameter.StateClosed })
}

// af connects the AF of most tests.
func (n *network) af() *rxnode.Node { return n.join("af.ims.example", "ims.example", nil) }

// recorder is a PCF that keeps what it gets and answers with a result.
type recorder struct {
	mu     sync.Mutex
	got    [][]byte
	result rx.Result
	silent bool
}

func answering(code uint32) *recorder { return &recorder{result: rx.Base(code)} }

func (r *recorder) handle(n *rxnode.Node, v *rx.View) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, append([]byte(nil), v.Raw...))
	if r.silent {
		return nil
	}
	return n.Answer(v, r.result)
}

func (r *recorder) set(code uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = rx.Base(code)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// last is the request that came last.
func (r *recorder) last(t *testing.T) *rx.View {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) == 0 {
		t.Fatal("the peer got no request")
	}
	v := new(rx.View)
	if err := v.Scan(r.got[len(r.got)-1]); err != nil {
		t.Fatal(err)
	}
	return v
}

// session is an Rx session of the AF.
func session(id string) *rxnode.Session {
	return &rxnode.Session{ID: id, Host: "af.ims.example", Realm: "ims.example", DestRealm: "epc.example"}
}

var ue = netip.MustParseAddr("10.0.0.1")

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

// ask sends a request and returns the answer.
func ask(t testing.TB, n *rxnode.Node, m []byte) *rx.View {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := n.Request(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	v := new(rx.View)
	if err := v.Scan(a); err != nil {
		t.Fatal(err)
	}
	return v
}

// wantResult checks the result of an answer.
func wantResult(t testing.TB, v *rx.View, want string) {
	t.Helper()
	if got, _ := v.Result(); got.String() != want {
		t.Errorf("result %s, want %s (%s)", got, want, text(v))
	}
	if e := v.Flags&rx.FlagError != 0; e != (want[0] == '3' && !strings.Contains(want, ":")) {
		t.Errorf("E bit %t with %s", e, want)
	}
}

// text is the Error-Message of an answer.
func text(v *rx.View) string {
	for _, a := range avps(v.Raw) {
		if a.Code == rx.ErrorMessage {
			return string(a.Data)
		}
	}
	return ""
}

// avps are the AVPs of a message.
func avps(m []byte) (list []rx.AVP) {
	for off := rx.HeaderLen; off < len(m); {
		a, next, err := rx.Next(m, off)
		if err != nil {
			break
		}
		list = append(list, a)
		off = next
	}
	return list
}

// values are the values of all AVPs with the code.
func values(v *rx.View, code rx.Code) (list []string) {
	for _, a := range avps(v.Raw) {
		if a.Code == code {
			list = append(list, string(a.Data))
		}
	}
	return list
}

// until waits for a condition.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(2 * time.Millisecond); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// state is the state of a peer.
func (n *network) state(host string) diameter.PeerStatus {
	for _, p := range n.gateway.Peers() {
		if p.Host == host {
			return p
		}
	}
	return diameter.PeerStatus{}
}

// open waits until the peer is connected.
func (n *network) open(host string) {
	n.t.Helper()
	until(n.t, host+" is connected", func() bool { return n.state(host).State == diameter.StateOpen })
}

// metric is the value of a metric, summed over its series.
func (n *network) metric(name string, labels ...string) (sum float64) {
	families, err := n.metrics.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			text := " "
			for _, l := range m.GetLabel() {
				text += l.GetName() + "=" + l.GetValue() + " "
			}
			match := true
			for _, l := range labels {
				match = match && strings.Contains(text, l)
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// raw opens a connection without capabilities exchange.
func (n *network) raw() net.Conn {
	n.t.Helper()
	c, err := net.Dial("tcp", n.address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		n.t.Fatal(err)
	}
	return c
}

// ended checks that the other side has closed the connection.
func ended(t *testing.T, c io.Reader) {
	t.Helper()
	b, err := io.ReadAll(c)
	if len(b) > 0 {
		t.Errorf("octets before the end: %x", b)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection stays open")
	}
}
