package diameter_test

import (
	"fmt"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// twoDRAs is a gateway whose way to the PCF goes through two agents, the first
// of which is preferred.
func twoDRAs(t *testing.T, change func(*diameter.Config)) (n *network, dra1, dra2 *recorder) {
	t.Helper()
	n = start(t, func(c *diameter.Config) {
		c.Routes = []diameter.Route{
			{Realm: "epc.example", Host: "pcf*", Priority: 1, Peers: []string{"dra1.epc.example"}},
			{Realm: "epc.example", Priority: 2, Peers: []string{"dra2.epc.example"}},
		}
		c.Retry.Enabled = true
		change(c)
	})
	dra1, dra2 = answering(rx.Success), answering(rx.Success)
	agent := []uint32{rx.RelayID}
	n.joinAs(rxnode.Identity{Host: "dra1.epc.example", Realm: "epc.example", Applications: agent}, dra1.handle)
	n.joinAs(rxnode.Identity{Host: "dra2.epc.example", Realm: "epc.example", Applications: agent}, dra2.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	return n, dra1, dra2
}

// TestRetry proves RX-051 and the rules of the session retry: which errors of
// whom are tried again at an alternate peer, how often, and with what T bit.
func TestRetry(t *testing.T) {
	rule := func(r diameter.Rule) func(*diameter.Config) {
		r.Message = "AAR"
		return func(c *diameter.Config) { c.Retry.Rules = []diameter.Rule{r} }
	}
	for name, x := range map[string]struct {
		change func(*diameter.Config)
		first  uint32 // the result of the first agent, 0 for none
		want   string
		asked  [2]int
	}{
		"an error of any code":               {func(*diameter.Config) {}, 5012, "2001", [2]int{1, 1}},
		"no answer":                          {func(*diameter.Config) {}, 0, "2001", [2]int{1, 1}},
		"off":                                {func(c *diameter.Config) { c.Retry.Enabled = false }, 5012, "5012", [2]int{1, 0}},
		"a code that matches":                {rule(diameter.Rule{ResultCodes: []string{"3*0*"}}), 3002, "2001", [2]int{1, 1}},
		"a code that does not match":         {rule(diameter.Rule{ResultCodes: []string{"3*0*"}}), 5012, "5012", [2]int{1, 0}},
		"a time-out that no rule covers":     {rule(diameter.Rule{ResultCodes: []string{"****"}}), 0, "3002", [2]int{1, 0}},
		"an error of an intermediate peer":   {rule(diameter.Rule{ResultCodes: []string{"****"}, Originator: diameter.OriginatorIntermediate}), 3002, "2001", [2]int{1, 1}},
		"an error that the destination made": {rule(diameter.Rule{ResultCodes: []string{"****"}, Originator: diameter.OriginatorDestination}), 3002, "3002", [2]int{1, 0}},
		"a rule of another command": {func(c *diameter.Config) {
			c.Retry.Rules = []diameter.Rule{{Message: "STR", ResultCodes: []string{"****"}}}
		}, 5012, "5012", [2]int{1, 0}},
		"a rule that is off":                    {rule(diameter.Rule{ResultCodes: []string{"****"}, Disabled: true}), 5012, "5012", [2]int{1, 0}},
		"success is success, whatever the rule": {rule(diameter.Rule{ResultCodes: []string{"****"}}), 2002, "2002", [2]int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, dra1, dra2 := twoDRAs(t, x.change)
			dra1.result, dra1.silent = rx.Base(x.first), x.first == 0
			a := ask(t, n.af(), session("s;1").AAR(ue))
			wantResult(t, a, x.want)
			if dra1.count() != x.asked[0] || dra2.count() != x.asked[1] {
				t.Fatalf("asked %d and %d times", dra1.count(), dra2.count())
			}
			if x.asked[1] == 0 {
				return
			}
			first, again := dra1.last(t), dra2.last(t)
			if first.Flags&rx.FlagRetransmit != 0 || (again.Flags&rx.FlagRetransmit != 0) != (x.first == 0) {
				t.Errorf("flags %x, then %x", first.Flags, again.Flags)
			}
			if first.EndToEnd != again.EndToEnd || string(again.DestinationHost.Data) != "pcf1.epc.example" {
				t.Errorf("End-to-End %x then %x, to %s", first.EndToEnd, again.EndToEnd, again.DestinationHost.Data)
			}
			if len(values(again, rx.RouteRecord)) != 1 {
				t.Errorf("Route-Record %q", values(again, rx.RouteRecord))
			}
			if n.metric("ocbsf_diam_request_network_total", "retry=true") != 1 {
				t.Error("the retry is not counted")
			}
		})
	}
}

// TestRetryCount proves the number of retries and cycling back: with two peers
// and three retries the first is asked again, and the last error comes back.
func TestRetryCount(t *testing.T) {
	for name, x := range map[string]struct {
		count int
		cycle bool
		asked [2]int
	}{
		"less than one is one":           {0, false, [2]int{1, 1}},
		"no more than there are peers":   {3, false, [2]int{1, 1}},
		"two retries with cycling back":  {2, true, [2]int{2, 1}},
		"three retries, one cycle of it": {3, true, [2]int{2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, dra1, dra2 := twoDRAs(t, func(c *diameter.Config) {
				c.Retry.Attempts.AAR, c.Retry.CycleBack.AAR = x.count, x.cycle
			})
			dra1.set(rx.UnableToComply)
			dra2.set(rx.TooBusy)
			a := ask(t, n.af(), session("s;1").AAR(ue))
			want := "3004"
			if x.asked[0] > x.asked[1] {
				want = "5012"
			}
			wantResult(t, a, want)
			if got := [2]int{dra1.count(), dra2.count()}; got != x.asked {
				t.Errorf("asked %v", got)
			}
		})
	}
}

// TestRetryAtAnotherDestination proves the update of Destination-Host: an
// alternate that is no agent gets the request as its own.
func TestRetryAtAnotherDestination(t *testing.T) {
	for _, update := range []bool{true, false} {
		t.Run(fmt.Sprint(update), func(t *testing.T) {
			n := start(t, func(c *diameter.Config) {
				c.Routes = []diameter.Route{{Realm: "epc.example", Peers: []string{"pcf1.epc.example", "pcf2.epc.example"}}}
				c.Retry.Enabled, c.Retry.UpdateDestinationHost, c.Retry.Attempts.AAR, c.Retry.CycleBack.AAR = true, update, 2, true
			})
			pcf1, pcf2 := answering(rx.TooBusy), answering(rx.TooBusy)
			n.join("pcf1.epc.example", "epc.example", pcf1.handle)
			n.join("pcf2.epc.example", "epc.example", pcf2.handle)
			n.bind("pcf1.epc.example", "10.0.0.1")
			wantResult(t, ask(t, n.af(), session("s;1").AAR(ue)), "3004")
			if pcf1.count() != 2 || pcf2.count() != 1 {
				t.Fatalf("asked %d and %d times", pcf1.count(), pcf2.count())
			}
			want := "pcf1.epc.example"
			if update {
				want = "pcf2.epc.example"
			}
			if got := string(pcf2.last(t).DestinationHost.Data); got != want {
				t.Errorf("the alternate got it for %s", got)
			}
			if got := string(pcf1.last(t).DestinationHost.Data); got != "pcf1.epc.example" {
				t.Errorf("the first got it again for %s", got)
			}
		})
	}
}

// TestRetryOfOtherCommands proves that STR, RAR and ASR are tried again, too:
// those of the PCF at an alternate way to the AF.
func TestRetryOfOtherCommands(t *testing.T) {
	n, dra1, dra2 := twoDRAs(t, func(c *diameter.Config) {
		c.Routes = append(c.Routes,
			diameter.Route{Realm: "ims.example", Priority: 1, Peers: []string{"dra1.epc.example"}},
			diameter.Route{Realm: "ims.example", Priority: 2, Peers: []string{"dra2.epc.example"}})
	})
	dra1.set(rx.UnableToDeliver)
	af, pcf := n.af(), n.join("other.epc.example", "epc.example", nil)
	toAF := &rxnode.Session{ID: "s;1", Host: "other.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "far.ims.example"}
	for i, x := range []struct {
		from *rxnode.Node
		msg  []byte
	}{
		{af, withHost(session("s;1"), "pcf1.epc.example").Other(rx.SessionTermination)},
		{pcf, toAF.Other(rx.ReAuth)},
		{pcf, toAF.Other(rx.AbortSession)},
	} {
		wantResult(t, ask(t, x.from, x.msg), "2001")
		if dra1.count() != i+1 || dra2.count() != i+1 {
			t.Errorf("%d: asked %d and %d times", i, dra1.count(), dra2.count())
		}
	}
}

// TestFailover proves RX-067 and RX-029: when the connection of a request is
// lost, the request goes to an alternate with the T bit, or is answered.
func TestFailover(t *testing.T) {
	n, dra1, dra2 := twoDRAs(t, func(c *diameter.Config) { c.Retry.Enabled = false })
	dra1.silent = true
	af := n.af()
	request := session("s;1").AAR(ue)
	answers, err := af.Begin(request)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the first agent has it", func() bool { return dra1.count() == 1 })
	n.disconnect("dra1.epc.example")
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.Success) {
		t.Errorf("%s", got)
	}
	again, first := dra2.last(t), dra1.last(t)
	if again.Flags&rx.FlagRetransmit == 0 || again.EndToEnd != first.EndToEnd {
		t.Errorf("flags %x, End-to-End %x and %x", again.Flags, first.EndToEnd, again.EndToEnd)
	}
	dra2.mu.Lock()
	dra2.silent = true
	dra2.mu.Unlock()
	if answers, err = af.Begin(session("s;2").AAR(ue)); err != nil {
		t.Fatal(err)
	}
	until(t, "the second agent has it", func() bool { return dra2.count() == 2 })
	n.disconnect("dra2.epc.example")
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.UnableToDeliver) {
		t.Errorf("%s", got)
	}
	wantResult(t, ask(t, af, session("s;3").AAR(ue)), "3002")
	if n.metric("ocbsf_diam_pending_requests") != 0 {
		t.Error("requests are left over")
	}
}

// TestReceivedTIsKept proves the last part of RX-067: a T bit that came stays.
func TestReceivedTIsKept(t *testing.T) {
	n, dra1, dra2 := twoDRAs(t, func(*diameter.Config) {})
	dra1.set(rx.UnableToComply)
	m := session("s;1").AAR(ue)
	m[4] |= rx.FlagRetransmit
	wantResult(t, ask(t, n.af(), m), "2001")
	if dra1.last(t).Flags&rx.FlagRetransmit == 0 || dra2.last(t).Flags&rx.FlagRetransmit == 0 {
		t.Error("the T bit is lost")
	}
}

// TestNeverTwoAnswers proves that an answer that comes after the gateway has
// given up, or after a retry has succeeded, goes nowhere (RX-033).
func TestNeverTwoAnswers(t *testing.T) {
	n := start(t)
	release := make(chan struct{})
	n.join("pcf1.epc.example", "epc.example", func(p *rxnode.Node, v *rx.View) []byte {
		<-release
		return p.Answer(v, rx.Base(rx.Success))
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	answers, err := af.Begin(session("s;1").AAR(ue))
	if err != nil {
		t.Fatal(err)
	}
	if got := rxnode.ResultOf(<-answers); got != rx.Base(rx.UnableToDeliver) {
		t.Errorf("%s", got)
	}
	close(release)
	until(t, "the late answer is discarded", func() bool { return n.metric("ocbsf_diam_answer_discarded_total") == 1 })
	wantResult(t, ask(t, af, session("s;2").AAR(ue)), "2001")
	if len(answers) != 0 {
		t.Error("a second answer came")
	}
}

// TestAlternateOfTheSameSet proves RX-029: another PCF takes the place of one
// that is away when the binding is one of the whole set.
func TestAlternateOfTheSameSet(t *testing.T) {
	const set = "set1.pcfset.5gc.mnc001.mcc001"
	n := start(t, func(c *diameter.Config) {
		c.Peers = []diameter.Peer{{Host: "pcf2.epc.example", PcfSetID: set}, {Host: "pcf3.epc.example", PcfSetID: "set2.pcfset.5gc.mnc001.mcc001"}}
	})
	pcf2, pcf3 := answering(rx.Success), answering(rx.Success)
	n.join("pcf2.epc.example", "epc.example", pcf2.handle)
	n.join("pcf3.epc.example", "epc.example", pcf3.handle)
	for address, level := range map[string]string{"10.0.0.1": bsf.BindLevelNfSet, "10.0.0.2": bsf.BindLevelNfInstance} {
		n.register(bsf.PcfBinding{
			Ipv4Addr: mustAddr(address), PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example",
			PcfId: "54804518-4191-46b3-955c-ac631f953e01", PcfSetId: set, BindLevel: level,
		})
	}
	af := n.af()
	wantResult(t, ask(t, af, session("s;1").AAR(ue)), "2001")
	if got := string(pcf2.last(t).DestinationHost.Data); got != "pcf2.epc.example" {
		t.Errorf("for %s", got)
	}
	wantResult(t, ask(t, af, session("s;2").AAR(ue.Next())), "3002")
}

// TestRoutes proves the routing table: patterns of hosts, priorities, weights,
// other applications, and RX-032: a peer that has seen the request is skipped.
func TestRoutes(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Routes = []diameter.Route{
			{Host: "*.far.example", Peers: []string{"dra1.epc.example=1", "dra2.epc.example=3"}},
			{Realm: "other", Application: 16777238, Peers: []string{"dra1.epc.example"}},
			{Realm: "ims.example", Priority: -1, Peers: []string{"dra2.epc.example"}},
		}
	})
	dra1, dra2 := answering(rx.Success), answering(rx.Success)
	n.join("dra1.epc.example", "epc.example", dra1.handle)
	n.join("dra2.epc.example", "epc.example", dra2.handle)
	af := n.af()
	for i := range 400 {
		wantResult(t, ask(t, af, withHost(session(fmt.Sprint("s;", i)), "x.far.example").Other(rx.SessionTermination)), "2001")
	}
	if a, b := dra1.count(), dra2.count(); a < 50 || a > 150 || a+b != 400 {
		t.Errorf("weights 1 and 3 gave %d and %d", a, b)
	}
	s := withHost(session("s;x"), "x.far.example")
	wantResult(t, ask(t, af, s.Other(rx.SessionTermination, rxnode.Text(rx.RouteRecord, "DRA2.epc.example"))), "2001")
	if dra2.count()+dra1.count() != 401 || dra1.last(t).Command != rx.SessionTermination {
		t.Error("the peer in the Route-Record was asked")
	}
	both := [][]byte{rxnode.Text(rx.RouteRecord, "dra2.epc.example"), rxnode.Text(rx.RouteRecord, "dra1.epc.example")}
	wantResult(t, ask(t, af, s.Other(rx.SessionTermination, both...)), "3002")
	gx := s.Other(rx.SessionTermination)
	gx[8], gx[9], gx[10], gx[11] = 1, 0, 0, 22 // Gx
	wantResult(t, ask(t, af, gx), "3002")
	s.DestRealm = "other"
	gx = s.Other(rx.SessionTermination)
	gx[8], gx[9], gx[10], gx[11] = 1, 0, 0, 22
	wantResult(t, ask(t, af, gx), "2001")
}

// TestWayBack proves that an AF behind an agent is reached through it without
// any route, as is a PCF (RX-038).
func TestWayBack(t *testing.T) {
	n := start(t)
	agent := answering(rx.Success)
	dra := n.join("dra.ims.example", "ims.example", agent.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	pcf := n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	behind := session("s;1")
	behind.Host = "af7.ims.example"
	wantResult(t, ask(t, dra, behind.AAR(ue)), "2001")
	back := &rxnode.Session{ID: "s;1", Host: "pcf1.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "af7.ims.example"}
	wantResult(t, ask(t, pcf, back.Other(rx.ReAuth)), "2001")
	if got := agent.last(t); got.Command != rx.ReAuth {
		t.Errorf("the agent got %s", got.Command.Request())
	}
}

// TestInstances proves routing between instances: what one cannot reach goes
// through the other, once, and an error of the other is tried elsewhere.
func TestInstances(t *testing.T) {
	second := start(t, func(c *diameter.Config) {
		c.OriginHost = "bsf2.epc.example"
		c.Peers = []diameter.Peer{{Host: "bsf1.epc.example", Realm: "epc.example", Instance: true}}
	})
	third := start(t, func(c *diameter.Config) {
		c.OriginHost = "bsf3.epc.example"
		c.Peers = []diameter.Peer{{Host: "bsf1.epc.example", Realm: "epc.example", Instance: true}}
	})
	first := start(t, func(c *diameter.Config) {
		c.OriginHost = "bsf1.epc.example"
		c.Peers = []diameter.Peer{
			{Host: "bsf2.epc.example", Address: second.address, Connect: true, Instance: true},
			{Host: "bsf3.epc.example", Address: third.address, Connect: true, Instance: true},
		}
	})
	first.open("bsf2.epc.example")
	first.open("bsf3.epc.example")
	pcf := answering(rx.Success)
	p := third.join("pcf1.epc.example", "epc.example", pcf.handle)
	first.bind("pcf1.epc.example", "10.0.0.1")
	first.bind("pcf2.epc.example", "10.0.0.2")
	af := first.join("af.ims.example", "ims.example", answering(rx.Success).handle)
	wantResult(t, ask(t, af, session("s;1").AAR(ue)), "2001")
	if got := values(pcf.last(t), rx.RouteRecord); fmt.Sprint(got) != "[af.ims.example bsf1.epc.example]" {
		t.Errorf("Route-Record %q", got)
	}
	if got := pcf.last(t); got.Flags&rx.FlagRetransmit != 0 {
		t.Error("the T bit is set after an error answer")
	}
	wantResult(t, ask(t, af, session("s;2").AAR(ue.Next())), "3002")
	back := &rxnode.Session{ID: "s;1", Host: "pcf1.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "af.ims.example"}
	wantResult(t, ask(t, p, back.Other(rx.ReAuth)), "2001")
}

// TestTimers proves the timer of a command: it takes the place of the one of
// the interface.
func TestTimers(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Timers.Response, c.Timers.STR = time.Hour, 3*time.Second
	})
	pcf := answering(rx.Success)
	pcf.silent = true
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	began := time.Now()
	wantResult(t, ask(t, n.af(), withHost(session("s;1"), "pcf1.epc.example").Other(rx.SessionTermination)), "3002")
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("given up after %s", took)
	}
	if n.metric("ocbsf_diam_timeout_total", "STR") != 1 {
		t.Error("not counted")
	}
}
