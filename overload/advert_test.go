package overload

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"bsfd/internal/admission"
)

const instance = "54804518-4191-46b3-955c-ac631f953ed8"

// TestHeadersMatchTheGrammar proves that what is told to consumers is of the
// grammar of TS 29.500, for every load and reduction, and that the grammar
// tells right from wrong. The examples of the standard are read, too.
func TestHeadersMatchTheGrammar(t *testing.T) {
	g := loadGrammar(t)
	now := time.Now()
	for n := range 101 {
		lci := formatLCI(now.Add(time.Duration(n)*time.Hour), n, instance)
		oci := formatOCI(now.Add(time.Duration(n)*time.Hour), time.Duration(n)*time.Second, n, instance)
		if !g.matches("Sbi-Lci-Header", "3gpp-Sbi-Lci: "+lci) {
			t.Errorf("%s", lci)
		}
		if !g.matches("Sbi-Oci-Header", "3gpp-Sbi-Oci: "+oci) {
			t.Errorf("%s", oci)
		}
		if c, err := ParseOCI(oci); err != nil || c[0].Metric != n || c[0].Validity != time.Duration(n)*time.Second || c[0].Scope != "NF-Instance" {
			t.Errorf("%s: %+v %v", oci, c, err)
		}
		if c, err := ParseLCI(lci); err != nil || c[0].Metric != n || c[0].Values[0] != instance {
			t.Errorf("%s: %+v %v", lci, c, err)
		}
	}
	const stamp = `Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; `
	for value, good := range map[string]bool{
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NF-Instance: " + instance:                                      true,
		stamp + "Period-of-Validity: 600s; Overload-Reduction-Metric: 50%; NF-Set: set1.bsfset.5gc.mnc012.mcc345":                        true,
		stamp + `Period-of-Validity: 1s; Overload-Reduction-Metric: 0%; Callback-Uri: "https://x/a" & "https://x/b"`:                     true,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NFC-Instance: " + instance + "; Service-Name: nbsf-management": true,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; SCP-FQDN: scp.example.com":                                     true,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 101%; NF-Instance: " + instance:                                     false,
		stamp + "Period-of-Validity: 75; Overload-Reduction-Metric: 50%; NF-Instance: " + instance:                                       false,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 050%; NF-Instance: " + instance:                                     false,
		"Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; NF-Instance: " + instance:                                              false,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%":                                                                false,
		stamp + "Period-of-Validity: 75s; Overload-Reduction-Metric: 50%; Nonsense: x":                                                   false,
		stamp + "Overload-Reduction-Metric: 50%; Period-of-Validity: 75s; NF-Instance: " + instance:                                      false,
	} {
		if got := g.matches("Sbi-Oci-Header", "3gpp-Sbi-Oci: "+value); got != good {
			t.Errorf("the grammar says %v of %s", got, value)
		}
		if _, err := ParseOCI(value); (err == nil) != good {
			t.Errorf("%s: %v", value, err)
		}
	}
	two := stamp + "Load-Metric: 25%; NF-Instance: " + instance + ", " + stamp + "Load-Metric: 40%; NF-Set: a"
	if c, err := ParseLCI(two); err != nil || len(c) != 2 || c[1].Metric != 40 || !g.matches("Sbi-Lci-Header", "3gpp-Sbi-Lci: "+two) {
		t.Errorf("%+v %v", c, err)
	}
}

// FuzzOCI proves that no value crashes the reader, and that what it reads has
// values within their ranges.
func FuzzOCI(f *testing.F) {
	f.Add(formatOCI(time.Now(), time.Minute, 50, instance), true)
	f.Add(formatLCI(time.Now(), 25, instance), false)
	f.Add(`Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Period-of-Validity: 1s; Overload-Reduction-Metric: 0%; Callback-Uri: "https://x/a" & "https://x/b"`, true)
	f.Fuzz(func(t *testing.T, s string, overload bool) {
		list, err := parseControls(s, overload)
		if err != nil {
			return
		}
		for _, c := range list {
			if c.Metric < 0 || c.Metric > 100 || c.Validity < 0 || c.Scope == "" || len(c.Values) == 0 {
				t.Errorf("%q: %+v", s, c)
			}
		}
	})
}

// TestLoadIsToldWhenDue proves the advertisement: SBI-045, to every peer at
// once, again after the interval or when the value has changed by more than
// the factor; an overload that has ended is told once.
func TestLoadIsToldWhenDue(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.LoadProfiles[0].SBI, s.LoadProfiles[0].Diameter, s.LoadProfiles[0].CalcFrequency = "advertise", "advertise", 5
		s.NodeProfiles[0].SBI, s.NodeProfiles[0].Diameter = "advertise", "advertise"
		s.LoadProfiles[0].Interval, s.NodeProfiles[0].Interval, s.NodeProfiles[0].Validity = 60, 60, 30
		s.Node = Node{defaultProfile, defaultProfile}
	})
	a, b := new(admission.Peer), new(admission.Peer)
	tell := func(p *admission.Peer) (lci, oci bool) {
		h := http.Header{}
		r.adverts.Load().tell(p, r.now, h)
		return len(h["3gpp-Sbi-Lci"]) == 1, len(h["3gpp-Sbi-Oci"]) == 1
	}
	expect := func(what string, p *admission.Peer, lci, oci bool) {
		t.Helper()
		if l, o := tell(p); l != lci || o != oci {
			t.Errorf("%s: LCI %v, OCI %v", what, l, o)
		}
	}
	r.load = 50
	r.pass(11 * time.Second)
	expect("first message", a, true, false)
	expect("second message", a, false, false)
	expect("another peer", b, true, false)
	r.load = 54
	r.pass(11 * time.Second)
	expect("a small change", a, false, false)
	r.load = 57
	r.pass(11 * time.Second)
	expect("a change by more than the factor", a, true, false)
	r.pass(61 * time.Second)
	expect("the interval is over", a, true, false)
	r.load = 90
	r.pass(11 * time.Second)
	expect("overload", a, true, true)
	expect("overload, told before", a, false, false)
	r.pass(31 * time.Second)
	if _, oci := tell(a); !oci {
		t.Error("an overload whose validity is over is not told again")
	}
	if rep := r.Gate(DiameterService).Report(b, r.now); rep.Overload == nil || rep.Overload.Reduction != 70 || rep.Load != 10*65535/100 {
		t.Errorf("%+v", rep)
	}
	r.load = 20
	r.pass(11 * time.Second)
	expect("the end of the overload", a, true, true)
	expect("after the end", a, false, false)
	expect("a peer that was never told of it", new(admission.Peer), true, false)
	r.change(t, func(s *Settings) { s.LoadProfiles[0].Interval = 0 })
	for range 3 {
		expect("interval 0", a, true, false)
	}
	r.change(t, func(s *Settings) { s.Node = Node{} })
	r.tick(1)
	if r.adverts.Load() != nil {
		t.Error("something is told without a profile")
	}
}

// TestPeerReportsAreHonoured proves what follows from the reports of others:
// SBI-040 and RX-082, the newest counts; SBI-041, it expires; SBI-043 and
// RX-083, the most specific one counts; what is excluded passes.
func TestPeerReportsAreHonoured(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.Node.OverloadProfile = defaultProfile })
	p := r.Peers()
	dropped := func(n int, q *admission.Request, names ...string) (k int) {
		for range n {
			if !p.Allow(q, 20, r.now, names...) {
				k++
			}
		}
		return k
	}
	aar := rxRequest("AAR", admission.Absent)
	expect := func(what string, want int, names ...string) {
		t.Helper()
		if got := dropped(100, aar, names...); got < want-1 || got > want+1 {
			t.Errorf("%s: %d of 100 held back, not %d", what, got, want)
		}
	}
	expect("no report", 0, "host:a", "realm:r")
	p.Overloaded("host:a", 5, 40, 30*time.Second, r.now)
	expect("a report", 40, "host:a", "realm:r")
	expect("another host", 0, "host:b", "realm:r")
	p.Overloaded("host:a", 4, 90, 30*time.Second, r.now)
	p.Overloaded("host:a", 5, 90, 30*time.Second, r.now)
	p.Overloaded("host:a", 6, 101, 30*time.Second, r.now)
	expect("older, the same and wrong ones", 40, "host:a", "realm:r")
	p.Overloaded("realm:r", 1, 100, 30*time.Second, r.now)
	expect("the host before the realm", 40, "host:a", "realm:r")
	expect("the realm", 100, "", "realm:r")
	urgent := rxRequest("AAR", admission.Absent)
	urgent.Urgent = true
	str := rxRequest("STR", admission.Absent)
	if dropped(10, urgent, "realm:r")+dropped(10, str, "realm:r") != 0 {
		t.Error("an emergency call or the end of a session is held back")
	}
	if !p.Allow(aar, 5, r.now, "realm:r") {
		t.Error("a request of excluded priority is held back")
	}
	r.pass(31 * time.Second)
	expect("expired", 0, "host:a", "realm:r")
	p.Overloaded("host:a", 1, 50, 30*time.Second, r.now)
	expect("a new one after the end, whatever its number", 50, "host:a")
	p.Overloaded("host:a", 2, 0, 30*time.Second, r.now)
	expect("a reduction of 0", 0, "host:a")
	p.Overloaded("host:a", 3, 100, 30*time.Second, r.now)
	p.Overloaded("host:a", 4, 100, 0, r.now)
	expect("a validity of 0", 0, "host:a")
	p.Overloaded("host:a", 5, 100, 30*time.Second, r.now)
	r.change(t, func(s *Settings) { s.NodeProfiles[0].PeerAction = "" })
	expect("not to be honoured", 0, "host:a")
}

// TestGroupsAreThrottledByWeight proves the two groups of messages: together
// they are reduced as was asked, each in proportion to its weight.
func TestGroupsAreThrottledByWeight(t *testing.T) {
	for _, x := range []struct {
		group1, group2, reduction int
		first, second             int // percent that is held back
	}{{50, 50, 30, 30, 30}, {100, 50, 30, 40, 20}, {50, 100, 30, 20, 40}, {100, 1, 50, 99, 1}, {100, 1, 75, 100, 50}, {50, 50, 100, 100, 100}} {
		r := newRig(t, func(s *Settings) {
			s.Node.OverloadProfile = defaultProfile
			s.NodeProfiles[0].Group1, s.NodeProfiles[0].Group2, s.NodeProfiles[0].PeerExclude = x.group1, x.group2, ""
		})
		r.Peers().Overloaded("p", 1, x.reduction, time.Hour, r.now)
		var held [2]int
		for range 2000 {
			for i, q := range []*admission.Request{rxRequest("AAR", admission.Absent), rxRequest("RAR", admission.Absent)} {
				if !r.Peers().Allow(q, 20, r.now, "p") {
					held[i]++
				}
			}
		}
		if a, b := held[0]/20, held[1]/20; a < x.first-3 || a > x.first+3 || b < x.second-3 || b > x.second+3 {
			t.Errorf("%+v: %d %% and %d %%", x, a, b)
		}
	}
}

// TestServersThatRefuseAreLeftAlone proves SBI-080, SBI-081 and SBI-084 for
// requests that are sent: nothing before Retry-After is over, and without it as
// many fewer as are refused. An OCI counts for the server, or for the callback
// that it names.
func TestServersThatRefuseAreLeftAlone(t *testing.T) {
	const uri = "http://10.0.0.1:80/callback/1"
	p := newRig(t, func(s *Settings) {
		s.Node.OverloadProfile = defaultProfile
		s.NodeProfiles[0].PeerExclude = ""
	}).Peers()
	p.Answered(uri, 503, http.Header{"Retry-After": {"30"}})
	if p.MaySend(uri) || p.MaySend("http://10.0.0.1:80/callback/2") || !p.MaySend("http://10.0.0.2:80/") {
		t.Error("Retry-After is not honoured for its server alone")
	}
	var throttle clientThrottle
	throttle.requests, throttle.accepts = 100, 60
	if got := fmt.Sprintf("%.3f", throttle.probability()); got != "0.099" {
		t.Errorf("100 wanted, 60 accepted: %s", got)
	}
	throttle.requests, throttle.accepts = 200, 114
	if got := fmt.Sprintf("%.3f", throttle.probability()); got != "0.144" {
		t.Errorf("200 wanted, 114 accepted: %s", got)
	}
	const other = "http://10.0.0.3:80/x"
	sent := 0
	for range 1000 {
		if p.MaySend(other) {
			sent++
			p.Answered(other, 429, nil)
		}
	}
	if sent > 300 {
		t.Errorf("%d of 1000 sent to a server that refuses all", sent)
	}
	const third = "http://10.0.0.4:80/a"
	p.Answered(third, 204, http.Header{"3gpp-Sbi-Oci": {`Timestamp: "Tue, 04 Feb 2020 08:49:37 GMT"; Period-of-Validity: 60s; Overload-Reduction-Metric: 100%; Callback-Uri: "` + third + `"`}})
	if p.MaySend(third) || !p.MaySend("http://10.0.0.4:80/b") {
		t.Error("an OCI for a callback does not count for that callback alone")
	}
	p.Answered(third, 204, http.Header{"3gpp-Sbi-Oci": {formatOCI(time.Now(), time.Minute, 100, instance)}})
	if p.MaySend("http://10.0.0.4:80/b") {
		t.Error("an OCI for the instance does not count for its server")
	}
}
