package diameter_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// TestCapabilitiesExchange proves RX-060 and RX-065: what the gateway says
// about itself, and that it answers a watchdog.
func TestCapabilitiesExchange(t *testing.T) {
	n := start(t)
	af := n.af()
	cea := new(rx.View)
	if err := cea.Scan(af.CEA()); err != nil {
		t.Fatal(err)
	}
	caps, err := rx.ParseCapabilities(cea)
	if err != nil {
		t.Fatal(err)
	}
	if caps.Host != "bsf.epc.example" || caps.Realm != "epc.example" || caps.StateID == 0 || caps.ProductName != "bsfd" ||
		fmt.Sprint(caps.HostIPAddresses) != "[127.0.0.1]" || !slices.Equal(caps.Applications, []uint32{rx.ApplicationID}) {
		t.Errorf("%+v", caps)
	}
	if got := fmt.Sprintf("%q", values(cea, rx.SupportedVendorID)); got != `["\x00\x00(\xaf" "\x00\x002\xdb"]` {
		t.Errorf("Supported-Vendor-Id %s", got)
	}
	if len(values(cea, rx.VendorSpecificApplicationID)) != 1 || len(values(cea, rx.InbandSecurityID)) != 1 || len(values(cea, rx.FirmwareRevision)) != 1 {
		t.Error("an AVP is missing")
	}
	dwa := ask(t, af, rx.DWR(rx.Origin{Host: "af.ims.example", Realm: "ims.example", StateID: 1}, 0, 7))
	wantResult(t, dwa, "2001")
	if dwa.StateID() != caps.StateID || string(dwa.OriginHost.Data) != "bsf.epc.example" || string(dwa.OriginRealm.Data) != "epc.example" || dwa.EndToEnd != 7 {
		t.Errorf("DWA %x", dwa.Raw)
	}
}

// TestWhoMayConnect proves RX-061: every legal form of the application, and
// the refusals.
func TestWhoMayConnect(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Peers = []diameter.Peer{{Host: "known.other", Realm: "other"}, {Host: "anywhere.other"}}
	})
	origin := func(host, realm string) [][]byte {
		return [][]byte{
			rxnode.Text(rx.OriginHost, host), rxnode.Text(rx.OriginRealm, realm),
			rx.Encode(rx.HostIPAddress, rx.AVPMandatory, 0, []byte{0, 1, 127, 0, 0, 1}),
			rxnode.Number(rx.VendorID, 0), rxnode.Text(rx.ProductName, "x"),
		}
	}
	app := rxnode.Number(rx.AuthApplicationID, rx.ApplicationID)
	vsai := func(avps ...[]byte) []byte {
		return rx.Encode(rx.VendorSpecificApplicationID, rx.AVPMandatory, 0, slices.Concat(avps...))
	}
	for name, x := range map[string]struct {
		avps [][]byte
		want uint32
	}{
		"Vendor-Specific-Application-Id":        {append(origin("a.ims.example", "ims.example"), vsai(rxnode.Number(rx.VendorID, rx.Vendor3GPP), app)), 2001},
		"with the vendor last":                  {append(origin("b.ims.example", "ims.example"), vsai(app, rxnode.Number(rx.VendorID, rx.Vendor3GPP))), 2001},
		"Auth-Application-Id":                   {append(origin("c.ims.example", "ims.example"), app), 2001},
		"among others":                          {append(origin("d.ims.example", "ims.example"), rxnode.Number(rx.AuthApplicationID, 4), app), 2001},
		"relay":                                 {append(origin("e.ims.example", "ims.example"), rxnode.Number(rx.AuthApplicationID, rx.RelayID)), 2001},
		"no application":                        {origin("f.ims.example", "ims.example"), 5010},
		"another application":                   {append(origin("g.ims.example", "ims.example"), rxnode.Number(rx.AuthApplicationID, 4)), 5010},
		"a configured peer":                     {append(origin("KNOWN.other", "other"), app), 2001},
		"a configured peer of another realm":    {append(origin("known.other", "ims.example"), app), 3010},
		"a configured peer of any realm":        {append(origin("anywhere.other", "wherever"), app), 2001},
		"a host that is not known":              {append(origin("x.other", "other"), app), 3010},
		"this node":                             {append(origin("bsf.epc.example", "epc.example"), app), 3010},
		"an identity that is no host name":      {append(origin("a b.ims.example", "ims.example"), app), 3010},
		"security in band only":                 {append(origin("h.ims.example", "ims.example"), app, rxnode.Number(rx.InbandSecurityID, 1)), 5017},
		"security in band or none":              {append(origin("i.ims.example", "ims.example"), app, rxnode.Number(rx.InbandSecurityID, 1), rxnode.Number(rx.InbandSecurityID, 0)), 2001},
		"no Origin-Host":                        {append(origin("j.ims.example", "ims.example")[1:], app), 5005},
		"no Origin-Realm":                       {append(slices.Delete(origin("k.ims.example", "ims.example"), 1, 2), app), 5005},
		"no Host-IP-Address":                    {append(slices.Delete(origin("l.ims.example", "ims.example"), 2, 3), app), 2001},
		"an application of the wrong size":      {append(origin("m.ims.example", "ims.example"), rx.Encode(rx.AuthApplicationID, rx.AVPMandatory, 0, nil)), 5014},
		"an AVP that is too long":               {append(origin("o.ims.example", "ims.example"), []byte{0, 0, 1, 2, 0x40, 0, 9, 9}), 5014},
		"a group that is too deep for nobody":   {append(origin("p.ims.example", "ims.example"), app, nested(2000)), 2001},
		"a vendor's AVP with a base AVP's code": {append(origin("q.ims.example", "ims.example"), app, rx.Encode(rx.OriginStateID, 0, 13019, nil)), 2001},
	} {
		t.Run(name, func(t *testing.T) {
			c := n.raw()
			m := rxnode.Message(rx.CapabilitiesExchange, rx.FlagRequest, 1, x.avps...)
			binary.BigEndian.PutUint32(m[8:], 0)
			if _, err := c.Write(m); err != nil {
				t.Fatal(err)
			}
			cea, err := rxnode.ReadMessage(c)
			if err != nil {
				t.Fatal(err)
			}
			if got := rxnode.ResultOf(cea); got != rx.Base(x.want) {
				t.Errorf("CEA with %s", got)
			}
			if x.want != rx.Success {
				ended(t, c)
			}
		})
	}
}

// nested is a group within a group, and so on.
func nested(depth int) []byte {
	b := rx.Encode(rx.FailedAVP, rx.AVPMandatory, 0, nil)
	for range depth {
		b = rx.Encode(rx.FailedAVP, rx.AVPMandatory, 0, b)
	}
	return b
}

// TestNothingBeforeCapabilities proves the last part of RX-061.
func TestNothingBeforeCapabilities(t *testing.T) {
	n := start(t, func(c *diameter.Config) { c.Transport.Capabilities = 300 * time.Millisecond })
	for name, m := range map[string][]byte{
		"AAR":     session("s;1").AAR(ue),
		"DWR":     rx.DWR(rx.Origin{Host: "a", Realm: "b"}, 1, 1),
		"CEA":     (&rx.Capabilities{Origin: rx.Origin{Host: "a", Realm: "b"}}).CEA(rx.Header{}, rx.Success, "", nil),
		"HTTP":    []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"nothing": nil,
		"a part":  session("s;1").AAR(ue)[:30],
	} {
		c := n.raw()
		if _, err := c.Write(m); err != nil {
			t.Fatal(err)
		}
		ended(t, c)
		_ = name
	}
	if n.metric("diam_failed_conn_network") == 0 {
		t.Error("not counted")
	}
}

// TestElection proves RX-062: of two connections that are made at the same
// time, the one that the node with the higher identity received stays.
func TestElection(t *testing.T) {
	for _, x := range []struct {
		host string
		wins bool // the gateway
	}{{"a.epc.example", true}, {"z.epc.example", false}} {
		t.Run(x.host, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			n := start(t, func(c *diameter.Config) {
				c.Peers = []diameter.Peer{{Host: x.host, Address: l.Addr().String(), Connect: true}}
			})
			dialled, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer dialled.Close()
			cer, err := rxnode.ReadMessage(dialled)
			if err != nil {
				t.Fatal(err)
			}
			id := rxnode.Identity{Host: x.host, Realm: "epc.example"}
			node, err := rxnode.Dial(t.Context(), n.address, id, answering(rx.Success).handle)
			if x.wins {
				if err != nil {
					t.Fatal(err)
				}
				defer node.Close()
				ended(t, dialled)
				return
			}
			var refused *rxnode.Refused
			if !errors.As(err, &refused) || refused.Result != rx.Base(rx.ElectionLost) {
				t.Fatalf("%v", err)
			}
			caps := &rx.Capabilities{Origin: rx.Origin{Host: x.host, Realm: "epc.example"}, Applications: []uint32{rx.ApplicationID}}
			if _, err := dialled.Write(caps.CEA(rx.ParseHeader(cer), rx.Success, "", nil)); err != nil {
				t.Fatal(err)
			}
			n.open(x.host)
		})
	}
}

// TestDialledPeer proves that a peer is dialled until it is there, that only
// the right one is taken, and that a request right behind the CEA is served.
func TestDialledPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := start(t, func(c *diameter.Config) {
		c.Peers = []diameter.Peer{{Host: "pcf1.epc.example", Realm: "epc.example", Address: l.Addr().String(), Connect: true}}
	})
	caps := func(host string, apps ...uint32) *rx.Capabilities {
		return &rx.Capabilities{Origin: rx.Origin{Host: host, Realm: "epc.example"}, Applications: apps}
	}
	for name, cea := range map[string]func(rx.Header) []byte{
		"another host":   func(h rx.Header) []byte { return caps("pcf2.epc.example", rx.ApplicationID).CEA(h, 2001, "", nil) },
		"an error":       func(h rx.Header) []byte { return caps("pcf1.epc.example", rx.ApplicationID).CEA(h, 5010, "", nil) },
		"no application": func(h rx.Header) []byte { return caps("pcf1.epc.example", 4).CEA(h, 2001, "", nil) },
		"no CEA":         func(rx.Header) []byte { return session("s;1").AAR(ue) },
		"no Diameter":    func(rx.Header) []byte { return []byte("220 mail.example ESMTP ready\r\n") },
	} {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		cer, err := rxnode.ReadMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(cea(rx.ParseHeader(cer))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.EOF) {
			var reset *net.OpError
			if !errors.As(err, &reset) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_ = c.Close()
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cer, err := rxnode.ReadMessage(c)
	if err != nil {
		t.Fatal(err)
	}
	both := append(caps("PCF1.epc.example", rx.ApplicationID).CEA(rx.ParseHeader(cer), 2001, "", nil), session("s;1").AAR(ue)...)
	if _, err := c.Write(both); err != nil {
		t.Fatal(err)
	}
	answer, err := rxnode.ReadMessage(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := rxnode.ResultOf(answer).String(); got != "10415:5065" {
		t.Errorf("%s", got)
	}
	if s := n.state("pcf1.epc.example"); s.State != diameter.StateOpen || !s.Initiator || s.LastError != "" {
		t.Errorf("%+v", s)
	}
}

// TestSecondConnection proves that a host has one connection: another one is
// refused, unless the first is dead, which is then found out at once.
func TestSecondConnection(t *testing.T) {
	n := start(t)
	first := n.af()
	_, err := rxnode.Dial(t.Context(), n.address, rxnode.Identity{Host: "AF.ims.example", Realm: "ims.example"}, nil)
	var refused *rxnode.Refused
	if !errors.As(err, &refused) || refused.Result != rx.Base(rx.UnableToComply) {
		t.Fatalf("%v", err)
	}
	wantResult(t, ask(t, first, session("s;1").AAR(ue)), "10415:5065")
	// The first one does not answer any more, as after a crash of its machine.
	first.Mute(true)
	until(t, "the new connection is taken", func() bool {
		node, err := rxnode.Dial(t.Context(), n.address, rxnode.Identity{Host: "af.ims.example", Realm: "ims.example"}, nil)
		if err != nil {
			return false
		}
		t.Cleanup(node.Close)
		return true
	})
	<-first.Done()
}

// TestDisconnectByPeer proves RX-066 for a DPR that comes: it is answered,
// nothing new goes to the peer, and requests that it has can still be
// answered.
func TestDisconnectByPeer(t *testing.T) {
	n := start(t)
	release := make(chan struct{})
	arrived := make(chan struct{}, 1)
	pcf := n.join("pcf1.epc.example", "epc.example", func(p *rxnode.Node, v *rx.View) []byte {
		arrived <- struct{}{}
		go func(m []byte) {
			<-release
			_ = p.Send(m)
		}(p.Answer(v, rx.Base(rx.Success)))
		return nil
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	answers, err := af.Begin(session("s;1").AAR(ue))
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	dpa := ask(t, pcf, rx.DPR(rx.Origin{Host: "pcf1.epc.example", Realm: "epc.example"}, rx.Busy, 0, 9))
	wantResult(t, dpa, "2001")
	if s := n.state("pcf1.epc.example"); s.State != diameter.StateClosing || s.Reason != "DPR received: BUSY" {
		t.Errorf("%+v", s)
	}
	wantResult(t, ask(t, af, session("s;2").AAR(ue)), "3002")
	close(release)
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.Success) {
		t.Errorf("%s", got)
	}
	pcf.Close()
	until(t, "the peer is closed", func() bool { return n.state("pcf1.epc.example").State == diameter.StateClosed })
}

// TestReconnectAfterDPR proves RX-066 for dialled peers: after REBOOTING they
// are dialled again, after other causes only when a request is for them.
func TestReconnectAfterDPR(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := start(t, func(c *diameter.Config) {
		c.Peers = []diameter.Peer{{Host: "pcf1.epc.example", Address: l.Addr().String(), Connect: true}}
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	id := rxnode.Identity{Host: "pcf1.epc.example", Realm: "epc.example"}
	accepted := make(chan *rxnode.Node)
	go func() {
		for {
			node, err := rxnode.Accept(l, id, answering(rx.Success).handle)
			if err != nil {
				close(accepted)
				return
			}
			accepted <- node
		}
	}()
	leave := func(cause rx.Cause) {
		t.Helper()
		node := <-accepted
		n.open("pcf1.epc.example")
		wantResult(t, ask(t, node, rx.DPR(rx.Origin{Host: id.Host, Realm: id.Realm}, cause, 0, 9)), "2001")
		node.Close()
		until(t, "the peer is closed", func() bool { return n.state("pcf1.epc.example").State != diameter.StateClosing })
	}
	leave(rx.Rebooting)
	leave(rx.DoNotWantToTalkToYou)
	select {
	case <-accepted:
		t.Fatal("dialled against the peer's will")
	case <-time.After(300 * time.Millisecond):
	}
	wantResult(t, ask(t, af, session("s;1").AAR(ue)), "3002")
	node := <-accepted
	defer node.Close()
	n.open("pcf1.epc.example")
	wantResult(t, ask(t, af, session("s;2").AAR(ue)), "2001")
}

// TestDrain proves RX-066 for the end of the gateway: what is under way is
// finished, new requests are refused, then every peer gets a DPR.
func TestDrain(t *testing.T) {
	n := start(t)
	release := make(chan struct{})
	arrived := make(chan struct{}, 1)
	n.join("pcf1.epc.example", "epc.example", func(p *rxnode.Node, v *rx.View) []byte {
		arrived <- struct{}{}
		<-release
		return p.Answer(v, rx.Base(rx.Success))
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	answers, err := af.Begin(session("s;1").AAR(ue))
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	drained := make(chan error, 1)
	go func() { drained <- n.gateway.Drain(t.Context()) }()
	until(t, "new requests are refused", func() bool {
		a := ask(t, af, session("s;2").AAR(mustAddr("10.9.9.9")))
		r, _ := a.Result()
		return r == rx.Base(rx.TooBusy)
	})
	select {
	case err := <-drained:
		t.Fatalf("drained with a request under way: %v", err)
	default:
	}
	close(release)
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.Success) {
		t.Errorf("%s", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	<-af.Done()
	if s := n.state("af.ims.example"); s.Reason != "DPA received" && s.Reason != "the peer closed the connection" {
		t.Errorf("%+v", s)
	}
	if _, err := net.Dial("tcp", n.address); err == nil {
		t.Error("still listening")
	}
}

// TestLimits proves that strangers, connections and requests are bounded, the
// latter with TOO_BUSY (RX-085).
func TestLimits(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Limits.Unauthenticated, c.Limits.Connections, c.Limits.Pending = 2, 3, 2
	})
	strangers := []net.Conn{n.raw(), n.raw()}
	ended(t, n.raw())
	for _, c := range strangers {
		_ = c.Close()
	}
	until(t, "the strangers are gone", func() bool { return n.metric("ocbsf_diam_connections") == 0 })
	pcf := answering(rx.Success)
	pcf.silent = true
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	for i := range 2 {
		if _, err := af.Begin(session(fmt.Sprint("s;", i)).AAR(ue)); err != nil {
			t.Fatal(err)
		}
	}
	wantResult(t, ask(t, af, session("s;3").AAR(ue)), "3004")
	n.join("c.ims.example", "ims.example", nil)
	ended(t, n.raw())
}

// TestSlowPeer proves that a peer that does not read costs itself its
// connection and nobody else anything: requests for it are refused when too
// much waits, and what it had is answered when it is given up.
func TestSlowPeer(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Limits.QueueBytes = 64 << 10
		c.Transport.Write, c.Timers.Response = time.Second, time.Minute
	})
	good := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", good.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	n.deaf("slow.epc.example")
	n.bind("slow.epc.example", "10.0.0.2")
	af := n.af()
	big := rx.Encode(9999, 0, 4711, make([]byte, 20000))
	var answers []<-chan []byte
	until(t, "the slow peer is disconnected", func() bool {
		ch, err := af.Begin(session(fmt.Sprint("s;", len(answers))).AAR(ue.Next(), big))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, ch)
		wantResult(t, ask(t, af, session("good").AAR(ue)), "2001")
		return n.state("slow.epc.example").State == diameter.StateClosed
	})
	results := make(map[string]int)
	for _, ch := range answers {
		results[rxnode.ResultOf(<-ch).String()]++
	}
	if results["3002"] < 10 || results["3004"] < 1 || results["3002"]+results["3004"] != len(answers) {
		t.Errorf("%v of %d", results, len(answers))
	}
	if s := n.state("slow.epc.example"); s.LastError != "the peer does not read" {
		t.Errorf("%+v", s)
	}
}

// TestSlowAF proves that an AF that asks and does not read is disconnected once
// too many answers wait for it.
func TestSlowAF(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Limits.QueueBytes = 64 << 10
		c.Transport.Write = time.Minute
	})
	c := n.deaf("slow.ims.example")
	s := session("s;1")
	until(t, "it is disconnected", func() bool {
		_, err := c.Write(s.AAR(mustAddr("10.9.9.9"), proxyInfo(10000)))
		return err != nil
	})
	until(t, "the state says why", func() bool { return n.state("slow.ims.example").LastError == "the peer does not read" })
}

// proxyInfo is a Proxy-Info of the size, which every answer repeats.
func proxyInfo(size int) []byte {
	return rx.Encode(rx.ProxyInfo, rx.AVPMandatory, 0, rx.Encode(rx.ProxyState, rx.AVPMandatory, 0, make([]byte, size)))
}

// deaf connects a host that reads nothing after its CEA.
func (n *network) deaf(host string) net.Conn {
	n.t.Helper()
	c := n.raw()
	_, realm, _ := strings.Cut(host, ".")
	caps := &rx.Capabilities{Origin: rx.Origin{Host: host, Realm: realm}, HostIPAddresses: []netip.Addr{ue}, Applications: []uint32{rx.ApplicationID}}
	if _, err := c.Write(caps.CER(1, 1)); err != nil {
		n.t.Fatal(err)
	}
	if _, err := rxnode.ReadMessage(c); err != nil {
		n.t.Fatal(err)
	}
	return c
}

// TestWatchdogOfAPeer proves RX-064 over the wire: a silent peer gets a DWR,
// loses its requests to an alternate, and at last its connection; when it
// comes back it must answer before it gets requests again.
func TestWatchdogOfAPeer(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the watchdog, 6 s and more")
	}
	t.Parallel()
	n, dra1, dra2 := twoDRAs(t, func(c *diameter.Config) {
		c.Transport.Watchdog, c.Timers.Response = 6*time.Second, time.Minute
	})
	dra1.silent = true
	af := n.af()
	answers, err := af.Begin(session("s;1").AAR(ue))
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	node := n.nodes["dra1.epc.example"]
	n.mu.Unlock()
	until(t, "the first agent has it", func() bool { return dra1.count() == 1 })
	node.Mute(true)
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.Success) {
		t.Errorf("%s", got)
	}
	if dra2.count() != 1 || dra2.last(t).Flags&rx.FlagRetransmit == 0 {
		t.Error("not sent again with the T bit")
	}
	if s := n.state("dra1.epc.example"); s.Watchdog != "SUSPECT" {
		t.Errorf("%+v", s)
	}
	<-node.Done()
	until(t, "the peer is closed", func() bool { return n.state("dra1.epc.example").State == diameter.StateClosed })
	if s := n.state("dra1.epc.example"); s.LastError != "the watchdog was not answered" {
		t.Errorf("%+v", s)
	}
	n.joinAs(rxnode.Identity{Host: "dra1.epc.example", Realm: "epc.example", Applications: []uint32{rx.RelayID}}, dra1.handle)
	if s := n.state("dra1.epc.example"); s.Watchdog != "REOPEN" {
		t.Errorf("%+v", s)
	}
	wantResult(t, ask(t, af, session("s;2").AAR(ue)), "2001")
	if dra1.count() != 1 {
		t.Errorf("a peer in REOPEN got a request: %+v", n.state("dra1.epc.example"))
	}
}
