package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/pgtest"
	"bsfd/internal/rxnode"
)

// launchRx starts bsfd as the agent bsf.epc.example with more of the section
// diameter, and returns it with the address of the gateway.
func launchRx(t testing.TB, section string, args ...string) (*process, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bsfd.yaml")
	text := "diameter:\n  originHost: bsf.epc.example\n  originRealm: epc.example\n" +
		"  transport: {watchdog: 6s, reconnectMin: 50ms, reconnectMax: 300ms, disconnect: 2s}\n" + section
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	full := append([]string{"--config", file, "--storage.engine", "memory"}, args...)
	p := launch(t, full...)
	return p, strings.TrimPrefix(p.address("diameter"), "tcp://")
}

// atPCF registers UEs from first to last-1 at a PCF.
func (p *process) atPCF(host string, first, last int) {
	p.t.Helper()
	c := newClient(nil)
	for n := first; n < last; n++ {
		a := do(p.t, c, "POST", p.sbi+base+"/pcfBindings", binding(n,
			fmt.Sprintf(`"ipv6Prefix":"2001:db8:0:%x::/64"`, n), `"pcfDiamHost":"`+host+`"`, `"pcfDiamRealm":"epc.example"`))
		if a.status != http.StatusCreated {
			p.t.Fatalf("%d %s", a.status, a.body)
		}
	}
}

// peerState is a peer on the operator's page.
type peerState struct {
	Host, State, Reason, Watchdog, LastError string
	Pending                                  int
}

// peer reads the state of a peer from the operator's page.
func (p *process) peer(host string) peerState {
	p.t.Helper()
	a := do(p.t, http.DefaultClient, "GET", p.oam+"/diameter/peers", "")
	var list []peerState
	if err := json.Unmarshal(a.body, &list); err != nil {
		p.t.Fatal(err)
	}
	for _, x := range list {
		if x.Host == host {
			return x
		}
	}
	return peerState{}
}

// peerIs waits until a peer is in a state.
func (p *process) peerIs(host, state string) {
	p.t.Helper()
	if !eventually(30*time.Second, func() bool { return p.peer(host).State == state }) {
		p.t.Fatalf("%s is not %s: %+v\n%s", host, state, p.peer(host), p.logs())
	}
}

func rxSession(id string) *rxnode.Session {
	return &rxnode.Session{ID: id, Host: "af.ims.example", Realm: "ims.example", DestRealm: "epc.example"}
}

func ueAddr(n int) netip.Addr { return netip.MustParseAddr(ipv4(n)) }

// node connects a PCF or AF of our own.
func node(t testing.TB, address, host, realm string, h rxnode.Handler) *rxnode.Node {
	t.Helper()
	n, err := rxnode.Dial(context.Background(), address, rxnode.Identity{Host: host, Realm: realm}, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func succeed(n *rxnode.Node, v *rx.View) []byte { return n.Answer(v, rx.Base(rx.Success)) }

// resultOf sends a request and returns the result.
func resultOf(t testing.TB, n *rxnode.Node, m []byte) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	a, err := n.Request(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	return rxnode.ResultOf(a).String()
}

const twoRealms = "  allowedRealms: [epc.example, ims.example]\n"

// TestRxSurvivesACrash proves that after kill -9 the bindings are there and
// the AF is served again; and that the end of the process is announced.
func TestRxSurvivesACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, address := launchRx(t, twoRealms, "--storage.engine", "embedded", "--storage.dataDir", dir)
	p.atPCF("pcf1.epc.example", 1, 3)
	node(t, address, "pcf1.epc.example", "epc.example", succeed)
	af := node(t, address, "af.ims.example", "ims.example", nil)
	if got := resultOf(t, af, rxSession("s;1").AAR(ueAddr(1))); got != "2001" {
		t.Fatal(got)
	}
	p.kill()
	<-af.Done()
	p, address = launchRx(t, twoRealms, "--storage.engine", "embedded", "--storage.dataDir", dir)
	pcf := node(t, address, "pcf1.epc.example", "epc.example", succeed)
	af = node(t, address, "af.ims.example", "ims.example", nil)
	if got := resultOf(t, af, rxSession("s;2").AAR(ueAddr(2))); got != "2001" {
		t.Error(got)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	<-af.Done()
	<-pcf.Done()
	if !strings.Contains(p.logs(), "DPR sent: REBOOTING") {
		t.Error(p.logs())
	}
}

// TestRxAndPostgres proves lookups in a database, by two instances that share
// it and know each other: each reaches the PCF that is connected to the other.
func TestRxAndPostgres(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).Database("bsfd")
	args := []string{"--storage.engine", "postgres", "--storage.postgres.dsn", dsn}
	second, address2 := launchRx(t, twoRealms+"  peers: [{host: bsf1.epc.example, instance: true}]\n", append(args, "--diameter.originHost", "bsf2.epc.example")...)
	first, address1 := launchRx(t, twoRealms+"  peers: [{host: bsf2.epc.example, address: '"+address2+"', connect: true, instance: true}]\n",
		append(args, "--diameter.originHost", "bsf1.epc.example")...)
	first.peerIs("bsf2.epc.example", "Open")
	first.atPCF("pcf1.epc.example", 1, 2)
	second.atPCF("pcf2.epc.example", 2, 3)
	node(t, address1, "pcf1.epc.example", "epc.example", succeed)
	node(t, address2, "pcf2.epc.example", "epc.example", succeed)
	for i, address := range []string{address1, address2} {
		af := node(t, address, "af.ims.example", "ims.example", nil)
		for n, want := range map[int]string{1: "2001", 2: "2001", 3: "10415:5065"} {
			if got := resultOf(t, af, rxSession(fmt.Sprint("s;", i, n)).AAR(ueAddr(n))); got != want {
				t.Errorf("instance %d, UE %d: %s", i+1, n, got)
			}
		}
		af.Close()
	}
	// Repaving is one trigger for both.
	for _, p := range []*process{first, second} {
		if a := do(t, http.DefaultClient, "PUT", p.oam+"/oc-bsf-configuration/v1/diameterRepaving/config", `{"enabled":true,"connectionDisconnectInterval":1}`); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if a := do(t, http.DefaultClient, "PUT", first.oam+"/oc-bsf-configuration/v1/diameterRepaving/config", `{"dprDisconnectCause":9}`); a.status != http.StatusBadRequest {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := do(t, http.DefaultClient, "GET", second.oam+"/oc-bsf-configuration/v1/auditTrail", ""); strings.Count(string(a.body), "oc:diameterRepaving/config") != 2 {
		t.Errorf("audit trail: %s", a.body)
	}
	if a := do(t, http.DefaultClient, "POST", first.oam+"/oc-bsf-configuration/v1/diameterRepaving/triggerDisconnection", ""); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.body)
	}
	first.peerIs("pcf1.epc.example", "Closed")
	second.peerIs("pcf2.epc.example", "Closed")
	if got := first.peer("bsf2.epc.example").State; got != "Open" {
		t.Errorf("the other instance is %s", got)
	}
	history := do(t, http.DefaultClient, "GET", second.oam+"/oc-bsf-configuration/v1/diameterRepaving/history", "").json(t)
	if list, _ := history["triggers"].([]any); len(list) != 1 {
		t.Errorf("%v", history)
	}
}

// TestMalformedCorpus proves that 5,000 malformed messages, each on a
// connection of its own, cost good traffic nothing.
func TestMalformedCorpus(t *testing.T) {
	t.Parallel()
	p, address := launchRx(t, twoRealms)
	p.atPCF("pcf1.epc.example", 1, 2)
	node(t, address, "pcf1.epc.example", "epc.example", succeed)
	af := node(t, address, "af.ims.example", "ims.example", nil)
	stop := make(chan struct{})
	var good atomic.Int64
	var bad atomic.Pointer[string]
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			a, err := af.Request(ctx, rxSession("good").AAR(ueAddr(1)))
			cancel()
			if got := fmt.Sprint(rxnode.ResultOf(a), err); err != nil || got != "2001<nil>" && got != "2001 <nil>" {
				bad.Store(&got)
				return
			}
			good.Add(1)
		}
	})
	const messages, workers = 5000, 8
	corpus := malformed(rand.New(rand.NewPCG(1, 2)), messages)
	var next atomic.Int64
	var hung atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < messages; i = next.Add(1) - 1 {
				if err := throw(address, fmt.Sprintf("m%d.ims.example", i), corpus[i]); err != nil {
					hung.Add(1)
				}
			}
		})
	}
	if !eventually(5*time.Minute, func() bool { return next.Load() >= messages+workers }) {
		t.Fatal("the corpus does not end")
	}
	close(stop)
	wg.Wait()
	if text := bad.Load(); text != nil {
		t.Errorf("good traffic was disturbed: %s", *text)
	}
	if hung.Load() > 0 {
		t.Errorf("%d connections hang", hung.Load())
	}
	t.Logf("%d good requests meanwhile", good.Load())
	if !eventually(30*time.Second, func() bool {
		return p.metric("ocbsf_diam_connections") == "2" && p.metric("ocbsf_diam_pending_requests") == "0"
	}) {
		t.Errorf("%s connections, %s pending", p.metric("ocbsf_diam_connections"), p.metric("ocbsf_diam_pending_requests"))
	}
	if p.peer("af.ims.example").State != "Open" || p.peer("pcf1.epc.example").State != "Open" {
		t.Error("a good peer lost its connection")
	}
}

// throw sends octets behind a good CER, or without any, and reads to the end.
func throw(address, host string, b []byte) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	caps := rx.Capabilities{
		Origin: rx.Origin{Host: host, Realm: "ims.example"}, HostIPAddresses: []netip.Addr{ueAddr(1)}, Applications: []uint32{rx.ApplicationID},
	}
	if len(b)%3 != 0 {
		b = append(caps.CER(1, 1), b...)
	}
	// The other side may have closed by now.
	_, _ = c.Write(b)
	_ = c.(*net.TCPConn).CloseWrite()
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return nil
}

// malformed makes messages that are wrong in every way that was thought of.
func malformed(r *rand.Rand, n int) [][]byte {
	good := [][]byte{
		rxSession("bad").AAR(ueAddr(1)), rxSession("bad").Other(rx.SessionTermination), rxSession("bad").Other(rx.ReAuth),
		rx.DWR(rx.Origin{Host: "a", Realm: "b"}, 1, 2), rx.DPR(rx.Origin{Host: "a", Realm: "b"}, rx.Busy, 1, 2),
		(&rx.Capabilities{Origin: rx.Origin{Host: "a", Realm: "b"}, Applications: []uint32{rx.ApplicationID}}).CER(1, 2),
	}
	size := func(m []byte) []byte {
		binary.BigEndian.PutUint32(m, rx.Version<<24|uint32(len(m)))
		return m
	}
	nest := func(depth int) []byte {
		b := rx.Encode(rx.FailedAVP, rx.AVPMandatory, 0, []byte{1, 2, 3})
		for range depth {
			b = rx.Encode(rx.FailedAVP, rx.AVPMandatory, 0, b)
		}
		return b
	}
	breaks := []func(m []byte) []byte{
		func(m []byte) []byte { return m[:r.IntN(len(m))] },                                                      // cut off
		func(m []byte) []byte { m[r.IntN(len(m))] ^= byte(1 << r.IntN(8)); return m },                            // one bit
		func(m []byte) []byte { m[0] = byte(r.Uint32()); return m },                                              // version
		func(m []byte) []byte { binary.BigEndian.PutUint32(m, 1<<24|r.Uint32N(1<<24)); return m },                // length
		func(m []byte) []byte { binary.BigEndian.PutUint32(m, 1<<24|r.Uint32N(24)); return m },                   // short length
		func(m []byte) []byte { m[4] = byte(r.Uint32()); return m },                                              // flags
		func(m []byte) []byte { binary.BigEndian.PutUint32(m[4:], uint32(m[4])<<24|r.Uint32N(1<<24)); return m }, // command
		func(m []byte) []byte { binary.BigEndian.PutUint32(m[8:], r.Uint32()); return m },                        // application
		func(m []byte) []byte { binary.BigEndian.PutUint32(m[24:], 0x40<<24|r.Uint32N(1<<24)); return m },        // AVP length
		func(m []byte) []byte { return size(append(m, nest(r.IntN(1000))...)) },                                  // deep
		func(m []byte) []byte {
			return size(append(m, rx.Encode(rx.Code(r.Uint32N(600)), byte(r.Uint32()), 0, nil)...))
		}, // empty
		func(m []byte) []byte { return size(append(m, 0, 0, 1, 7, 0x80, 0, 0, 8)) }, // no room for a vendor
		func(m []byte) []byte { return append(m, m[:rx.HeaderLen]...) },             // a second one, cut off
		func(m []byte) []byte { return bytes.Repeat(m, 1+r.IntN(20)) },
		func(m []byte) []byte {
			for range 20 {
				m[rx.HeaderLen+r.IntN(len(m)-rx.HeaderLen)] = byte(r.Uint32())
			}
			return m
		},
		func([]byte) []byte {
			b := make([]byte, r.IntN(3000))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return b
		},
	}
	list := make([][]byte, n)
	for i := range list {
		list[i] = breaks[i%len(breaks)](append([]byte(nil), good[r.IntN(len(good))]...))
	}
	return list
}

// TestConnectionFlood proves that strangers cannot take the gateway's
// connections away from its peers, nor its memory.
func TestConnectionFlood(t *testing.T) {
	t.Parallel()
	p, address := launchRx(t, twoRealms, "--diameter.limits.unauthenticated", "50")
	af := node(t, address, "af.ims.example", "ims.example", nil)
	for range 300 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if got := resultOf(t, af, rxSession("s;1").AAR(ueAddr(1))); got != "10415:5065" {
		t.Error(got)
	}
	if n := p.metric(`diam_failed_conn_network{reason="limit",transport="tcp"}`); n == "" || n == "0" {
		t.Error("the flood is not counted")
	}
}

// TestRxConfiguration proves that a wrong configuration of the gateway is told
// with its key before anything listens.
func TestRxConfiguration(t *testing.T) {
	t.Parallel()
	for section, key := range map[string]string{
		"  originHost: 'a b'\n":          "diameter.originHost",
		"  timers: {response: 2999ms}\n": "diameter.timers: response",
		"  timers: {str: 1s}\n":          "diameter.timers: str",
		"  transport: {watchdog: 5s}\n":  "diameter.transport: watchdog",
		"  mode: relay\n":                "diameter.mode",
		"  routingMode: IPv5\n":          "diameter.routingMode",
		"  retry: {rules: [{message: AAR, resultCodes: ['2***']}]}\n":              "diameter.retry: rules[0].resultCodes",
		"  retry: {rules: [{message: AAR, resultCodes: ['50']}]}\n":                "diameter.retry: rules[0].resultCodes",
		"  retry: {rules: [{message: CCR, timeout: true}]}\n":                      "diameter.retry: rules[0].message",
		"  peers: [{host: bsf.epc.example}]\n":                                     "diameter.peers: [0].host",
		"  peers: [{host: a}, {host: A}]\n":                                        "diameter.peers: [1].host",
		"  peers: [{host: a, colour: red}]\n":                                      "colour",
		"  peers: [{host: a, transport: tls, connect: true}]\n":                    "diameter.peers: [0].transport",
		"  routes: [{realm: x}]\n":                                                 "diameter.routes: [0].peers",
		"  routes: [{realm: x, peers: ['a=0']}]\n":                                 "diameter.routes: [0].peers",
		"  results: {busy: '2001'}\n":                                              "diameter.results.busy",
		"  stale: {results: ['x']}\n":                                              "diameter.stale.results",
		"  repaving: {dprDisconnectCause: 3}\n":                                    "diameter.repaving: dprDisconnectCause",
		"  tls: {certFile: /none, keyFile: /none}\n  listenTls: ['127.0.0.1:0']\n": "diameter.tls.certFile",
		"  listenTls: ['127.0.0.1:0']\n":                                           "diameter.listenTls",
		"  limits: {messageBytes: 100}\n":                                          "diameter.limits: messageBytes",
		"  redirect: {hostUsage: 3}\n":                                             "diameter.redirect.hostUsage",
	} {
		file := filepath.Join(t.TempDir(), "bsfd.yaml")
		text := "diameter:\n" + section
		if !strings.Contains(section, "originHost") {
			text = "diameter:\n  originHost: bsf.epc.example\n" + section
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := begin(t, "--config", file, "--storage.engine", "memory")
		select {
		case <-p.done:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: bsfd runs", section)
		}
		if !strings.Contains(p.logs(), key) {
			t.Errorf("%s: %s", section, p.logs())
		}
	}
	p := begin(t, "--storage.engine", "memory", "--diameter.listenSctp", "127.0.0.1:0")
	p.waitFor(`"message":"ready"`, 30*time.Second)
	if _, err := os.Stat("/proc/sys/net/sctp"); err != nil && !strings.Contains(p.logs(), "this kernel has no SCTP") {
		t.Error(p.logs())
	}
	p.signal(syscall.SIGTERM)
}

// TestWithoutRx proves that the gateway can be left out.
func TestWithoutRx(t *testing.T) {
	t.Parallel()
	p := launch(t, "--storage.engine", "memory", "--diameter.enabled=false")
	if got := p.address("diameter"); got != "" {
		t.Errorf("Rx listens on %s", got)
	}
	for _, path := range []string{"/diameter/peers", "/oc-bsf-configuration/v1/diameterRepaving/config"} {
		if a := do(t, http.DefaultClient, "GET", p.oam+path, ""); a.status != http.StatusServiceUnavailable || a.json(t)["detail"] == "" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
