package diameter_test

import (
	"fmt"
	"slices"
	"testing"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
	"bsfd/overload"
)

// TestInSession proves RX-036, RX-037 and RX-038: requests of a session go by
// Destination-Host to the node that has it, in both directions.
func TestInSession(t *testing.T) {
	n := start(t)
	pcf, af := answering(rx.Success), answering(rx.Success)
	p := n.join("pcf1.epc.example", "epc.example", pcf.handle)
	a := n.join("af.ims.example", "ims.example", af.handle)
	toPCF := withHost(session("s;1"), "PCF1.epc.example")
	fromPCF := &rxnode.Session{ID: "s;1", Host: "pcf1.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "af.ims.example"}
	for _, x := range []struct {
		name string
		from *rxnode.Node
		msg  []byte
		to   *recorder
	}{
		{"AAR of a known session", a, toPCF.AAR(ue), pcf},
		{"STR", a, toPCF.Other(rx.SessionTermination), pcf},
		{"RAR", p, fromPCF.Other(rx.ReAuth), af},
		{"ASR", p, fromPCF.Other(rx.AbortSession), af},
	} {
		before := x.to.count()
		wantResult(t, ask(t, x.from, x.msg), "2001")
		if x.to.count() != before+1 {
			t.Errorf("%s did not arrive", x.name)
		}
		if got := x.to.last(t); len(values(got, rx.RouteRecord)) != 1 || values(got, rx.RouteRecord)[0] != x.from.Host {
			t.Errorf("%s: Route-Record %q", x.name, values(got, rx.RouteRecord))
		}
	}
	for name, x := range map[string]struct {
		from *rxnode.Node
		msg  []byte
		want string
	}{
		"AAR to a host that is not there":     {a, withHost(session("s;2"), "pcf9.epc.example").AAR(ue), "3002"},
		"STR to a host that is not there":     {a, withHost(session("s;2"), "pcf9.epc.example").Other(rx.SessionTermination), "3002"},
		"STR of no session and to no host":    {a, session("s;2").Other(rx.SessionTermination), "5002"},
		"STR of no session, to the gateway":   {a, withHost(session("s;2"), "bsf.epc.example").Other(rx.SessionTermination), "5002"},
		"RAR to an AF that is not there":      {p, withHost(session("s;2"), "af9.ims.example").Other(rx.ReAuth), "3002"},
		"RAR to the gateway":                  {p, withHost(session("s;2"), "bsf.epc.example").Other(rx.ReAuth), "3002"},
		"RAR to no host":                      {p, session("s;2").Other(rx.ReAuth), "5005"},
		"a request back to where it is from":  {a, withHost(session("s;2"), "af.ims.example").AAR(ue), "3002"},
		"AAR to the gateway, without binding": {a, withHost(session("s;2"), "bsf.epc.example").AAR(ue), "10415:5065"},
	} {
		got := ask(t, x.from, x.msg)
		if r, _ := got.Result(); r.String() != x.want {
			t.Errorf("%s: %s", name, r)
		}
	}
}

// TestSessionIsRemembered proves RX-036 and RX-039: requests that do not name
// the PCF go to the one that has the session, until the session ends.
func TestSessionIsRemembered(t *testing.T) {
	n := start(t)
	pcf1, pcf2 := answering(rx.Success), answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf1.handle)
	n.join("pcf2.epc.example", "epc.example", pcf2.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	s := session("s;1")
	wantResult(t, ask(t, af, s.AAR(ue)), "2001")
	// The binding goes to another PCF; the Rx session stays (RX-040).
	rec, err := n.registry.Discover(t.Context(), &bsf.Query{Ipv4Addr: ue})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.registry.Deregister(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	n.bind("pcf2.epc.example", "10.0.0.1")
	update := rx.Encode(rx.RxRequestType, 0, rx.Vendor3GPP, []byte{0, 0, 0, 1})
	initial := rx.Encode(rx.RxRequestType, 0, rx.Vendor3GPP, []byte{0, 0, 0, 0})
	wantResult(t, ask(t, af, s.AAR(ue, update)), "2001")
	wantResult(t, ask(t, af, s.AAR(ue)), "2001")
	if pcf1.count() != 3 || pcf2.count() != 0 {
		t.Errorf("%d and %d requests", pcf1.count(), pcf2.count())
	}
	if got := string(pcf1.last(t).DestinationHost.Data); got != "pcf1.epc.example" {
		t.Errorf("Destination-Host %s", got)
	}
	wantResult(t, ask(t, af, session("s;2").AAR(ue, initial)), "2001")
	if pcf2.count() != 1 {
		t.Error("a new session did not go by the binding")
	}
	wantResult(t, ask(t, af, s.Other(rx.SessionTermination)), "2001")
	if got := pcf1.last(t); got.Command != rx.SessionTermination {
		t.Errorf("the PCF got %s", got.Command.Request())
	}
	wantResult(t, ask(t, af, s.Other(rx.SessionTermination)), "5002")
	if n.metric("ocbsf_diam_sessions") != 1 {
		t.Errorf("%v sessions", n.metric("ocbsf_diam_sessions"))
	}
}

// TestRestartForgetsSessions proves RX-069: a higher Origin-State-Id says that
// the sessions of the host are gone.
func TestRestartForgetsSessions(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	id := rxnode.Identity{Host: "pcf1.epc.example", Realm: "epc.example", StateID: 5}
	first := n.joinAs(id, pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	for i, x := range []struct {
		state uint32
		kept  float64
	}{{5, 1}, {4, 1}, {6, 0}} {
		wantResult(t, ask(t, af, session(fmt.Sprint("s;", 0)).AAR(ue)), "2001")
		first.Close()
		until(t, "the PCF is gone", func() bool { return n.state("pcf1.epc.example").State == diameter.StateClosed })
		id.StateID = x.state
		first = n.joinAs(id, pcf.handle)
		if got := n.metric("ocbsf_diam_sessions"); got != x.kept {
			t.Errorf("%d: %v sessions", i, got)
		}
	}
	// A higher one in the CER of a second connection: the first is dead.
	id.StateID = 9
	n.joinAs(id, pcf.handle)
	<-first.Done()
	wantResult(t, ask(t, af, session("s;9").AAR(ue)), "2001")
}

// TestCookie proves that the ocnf-service-cookie of a binding reaches the PCF
// with the AAR that looked it up (the N7 session lookup).
func TestCookie(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*diameter.Config)
		want   int
	}{
		"by default": {func(*diameter.Config) {}, 1},
		"off":        {func(c *diameter.Config) { c.Cookie.Code = 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, x.change)
			pcf := answering(rx.Success)
			n.join("pcf1.epc.example", "epc.example", pcf.handle)
			n.register(bsf.PcfBinding{Ipv4Addr: ue, PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example"}, `{"cookieOwner":"PCF-SM"}`)
			wantResult(t, ask(t, n.af(), session("s;1").AAR(ue)), "2001")
			found := 0
			for _, a := range avps(pcf.last(t).Raw) {
				if a.Code == 3601 && a.Vendor == 111 && string(a.Data) == `{"cookieOwner":"PCF-SM"}` {
					found++
				}
			}
			if found != x.want || n.metric("ocbsf_ocnf_service_cookie_total") != float64(x.want) {
				t.Errorf("%d cookies", found)
			}
		})
	}
}

// TestStaleSession proves that a binding is removed when its PCF itself says
// that it has no such session, and only then.
func TestStaleSession(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.join("dra.epc.example", "epc.example", func(d *rxnode.Node, v *rx.View) []byte {
		return rx.AppendAnswer(nil, v, rx.Origin{Host: "dra.epc.example", Realm: "epc.example"}, &rx.Answer{
			Result: rx.Result{Code: rx.IPCANSessionNotAvailable, Vendor: rx.Vendor3GPP},
		})
	})
	n.bind("pcf1.epc.example", "10.0.0.1", "10.0.0.2")
	af := n.af()
	pcf.set(rx.UnableToComply)
	wantResult(t, ask(t, af, session("s;1").AAR(ue)), "5012")
	pcf.mu.Lock()
	pcf.result = rx.Result{Code: rx.IPCANSessionNotAvailable, Vendor: rx.Vendor3GPP}
	pcf.mu.Unlock()
	wantResult(t, ask(t, af, session("s;2").AAR(ue)), "10415:5065")
	until(t, "the binding is removed", func() bool {
		_, err := n.registry.Discover(t.Context(), &bsf.Query{Ipv4Addr: ue})
		return err != nil
	})
	until(t, "it is counted", func() bool {
		return n.metric("ocbsf_diamgw_notification_response_count_total", "removed") == 1
	})
	if _, err := n.registry.Discover(t.Context(), &bsf.Query{Ipv4Addr: ue.Next()}); err != nil {
		t.Error("another binding is gone, too")
	}
}

// TestStaleSessionOfAnUpdate proves that an AAR that went by Destination-Host
// reports a stale session, too.
func TestStaleSessionOfAnUpdate(t *testing.T) {
	n := start(t, func(c *diameter.Config) { c.Stale.Results = []string{"5012"} })
	n.join("pcf1.epc.example", "epc.example", answering(rx.UnableToComply).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	wantResult(t, ask(t, n.af(), withHost(session("s;1"), "pcf1.epc.example").AAR(ue)), "5012")
	until(t, "the binding is removed", func() bool {
		_, err := n.registry.Discover(t.Context(), &bsf.Query{Ipv4Addr: ue})
		return err != nil
	})
}

// TestRedirect proves RX-045, RX-046, RX-047 and what RX-061 says of redirect
// mode: the AF is told where the PCF is, and nothing is forwarded.
func TestRedirect(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Mode = diameter.ModeRedirect
		c.Peers = []diameter.Peer{
			{Host: "pcf2.epc.example", Realm: "epc.example", Address: "10.1.1.1:5868", Transport: diameter.TLS, PcfSetID: "set1.pcfset.5gc.mnc001.mcc001"},
		}
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	n.register(bsf.PcfBinding{
		Ipv4Addr: ue.Next(), PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example",
		PcfSetId: "set1.pcfset.5gc.mnc001.mcc001", BindLevel: bsf.BindLevelNfSet,
	})
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	af := n.af()
	caps := new(rx.View)
	if err := caps.Scan(af.CEA()); err != nil {
		t.Fatal(err)
	}
	if c, err := rx.ParseCapabilities(caps); err != nil || !slices.Contains(c.Applications, rx.RelayID) {
		t.Errorf("%+v %v", c, err)
	}
	first := "aaa://pcf1.epc.example:3868;transport=tcp"
	for address, want := range map[string][]string{"10.0.0.1": {first}, "10.0.0.2": {first, "aaas://pcf2.epc.example:5868;transport=tcp"}} {
		for range 2 { // RX-068: a duplicate gets the same answer
			a := ask(t, af, session("s;"+address).AAR(mustAddr(address)))
			wantResult(t, a, "3006")
			if got := values(a, rx.RedirectHost); !slices.Equal(got, want) {
				t.Errorf("%s: %q", address, got)
			}
			if fmt.Sprint(values(a, rx.RedirectHostUsage), values(a, rx.RedirectMaxCacheTime)) != fmt.Sprint([]string{"\x00\x00\x00\x01"}, []string{"\x00\x00\x0e\x10"}) {
				t.Errorf("usage %q, cache time %q", values(a, rx.RedirectHostUsage), values(a, rx.RedirectMaxCacheTime))
			}
		}
	}
	wantResult(t, ask(t, af, session("s;3").AAR(mustAddr("10.9.9.9"))), "10415:5065")
	if pcf.count() != 0 {
		t.Error("a request was forwarded")
	}
}

// TestProxyInfo proves RX-031, RX-033 and RX-035 with Proxy-Info: the gateway
// adds its own last, takes it out of the answer again, and leaves others alone.
func TestProxyInfo(t *testing.T) {
	n := start(t, func(c *diameter.Config) { c.ProxyInfo = true })
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	proxy := func(host string) []byte {
		group := append(rxnode.Text(rx.ProxyHost, host), rx.Encode(rx.ProxyState, rx.AVPMandatory, 0, []byte("state"))...)
		return rx.Encode(rx.ProxyInfo, rx.AVPMandatory, 0, group)
	}
	others := [][]byte{proxy("dra1"), proxy("dra2")}
	af := n.af()
	for address, want := range map[string]string{"10.0.0.1": "2001", "10.9.9.9": "10415:5065"} {
		a := ask(t, af, session("s;"+address).AAR(mustAddr(address), others...))
		wantResult(t, a, want)
		if got := values(a, rx.ProxyInfo); len(got) != 2 || got[0] != string(others[0][8:]) || got[1] != string(others[1][8:]) {
			t.Errorf("%s: %q", want, got)
		}
	}
	if f, ok := pcf.last(t).OwnProxyInfo("bsf.epc.example"); !ok || !f.Present() || len(values(pcf.last(t), rx.ProxyInfo)) != 3 {
		t.Errorf("the PCF got %q", values(pcf.last(t), rx.ProxyInfo))
	}
	// An answer that the gateway makes later has the others only.
	pcf.mu.Lock()
	pcf.silent = true
	pcf.mu.Unlock()
	a := ask(t, af, session("s;3").AAR(ue, others...))
	wantResult(t, a, "3002")
	if len(values(a, rx.ProxyInfo)) != 2 {
		t.Errorf("%q", values(a, rx.ProxyInfo))
	}
}

// TestOperationalStates proves the controlled shutdown: no new
// sessions, then nothing at all.
func TestOperationalStates(t *testing.T) {
	n := start(t)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	update := rx.Encode(rx.RxRequestType, 0, rx.Vendor3GPP, []byte{0, 0, 0, 1})
	for _, x := range []struct {
		state                overload.Operation
		initial, update, str string
	}{
		{overload.OperationNormal, "2001", "2001", "2001"},
		{overload.OperationPartial, "3004", "2001", "2001"},
		{overload.OperationComplete, "3004", "3004", "3004"},
		{overload.OperationNormal, "2001", "2001", "2001"},
	} {
		n.change(func(s *overload.Settings) { s.Shutdown.State = x.state })
		wantResult(t, ask(t, af, session("s;1").AAR(ue)), x.initial)
		s := withHost(session("s;1"), "pcf1.epc.example")
		wantResult(t, ask(t, af, s.AAR(ue, update)), x.update)
		wantResult(t, ask(t, af, s.AAR(ue)), x.update) // in session by its Destination-Host
		wantResult(t, ask(t, af, s.Other(rx.SessionTermination)), x.str)
	}
}
