package diameter_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
	"bsfd/overload"
)

// reporting is a PCF that adds AVPs to its answers.
type reporting struct {
	recorder
	extra []byte
}

func (r *reporting) report(extra ...byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extra = extra
}

func (r *reporting) handle(n *rxnode.Node, v *rx.View) []byte {
	m := r.recorder.handle(n, v)
	r.mu.Lock()
	defer r.mu.Unlock()
	var a rx.View
	if len(r.extra) == 0 || a.Scan(m) != nil {
		return m
	}
	return rx.AppendWithout(nil, &a, func(*rx.AVP) bool { return false }, r.extra)
}

// olr is a report with OC-Supported-Features.
func olr(sequence uint64, kind rx.ReportType, reduction uint32, validity time.Duration) []byte {
	return rx.AppendOLR(rx.AppendSupported(nil), &rx.OLR{Sequence: sequence, Type: kind, Reduction: reduction, Validity: validity})
}

func honour(s *overload.Settings) { s.Node.OverloadProfile = "default" }

// TestOverloadReportsOfPeersAreHonoured proves that this node reacts for AFs
// that do not: RX-081, it adds OC-Supported-Features and keeps reports from
// them; RX-082, the newest report counts; RX-083, one about the host throttles
// requests for it, one about the realm those without a host; RX-084, with the
// result that tells whether another way may help.
func TestOverloadReportsOfPeersAreHonoured(t *testing.T) {
	n := start(t)
	n.change(honour)
	pcf := &reporting{recorder: recorder{result: rx.Base(rx.Success)}}
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	id := 0
	initial := func(more ...[]byte) *rx.View {
		id++
		return ask(t, af, session(fmt.Sprint("s;", id)).AAR(ue, more...))
	}
	named := func(more ...[]byte) *rx.View { // a modification, which names its PCF
		s := withHost(session("s;0"), "pcf1.epc.example")
		return ask(t, af, s.AAR(ue, append(more, rx.Encode(rx.RxRequestType, 0, rx.Vendor3GPP, []byte{0, 0, 0, 1}))...))
	}
	supported := rx.AppendSupported(nil)
	pcf.report(olr(1, rx.ReportHost, 0, time.Minute)...)
	a := initial()
	wantResult(t, a, "2001")
	if len(values(a, rx.OCOLR))+len(values(a, rx.OCSupportedFeatures)) != 0 {
		t.Error("an AF that does not honour reports gets one")
	}
	if len(values(pcf.last(t), rx.OCSupportedFeatures)) != 1 {
		t.Error("the PCF is not told that reports are honoured")
	}
	pcf.report(olr(2, rx.ReportHost, 100, time.Minute)...)
	a = initial(supported)
	if len(values(a, rx.OCOLR)) != 1 || len(values(a, rx.OCSupportedFeatures)) != 1 || len(values(pcf.last(t), rx.OCSupportedFeatures)) != 1 {
		t.Error("an AF that honours reports does not get the PCF's as it is")
	}
	wantResult(t, initial(), "3004")
	wantResult(t, named(), "5012")
	wantResult(t, named(supported), "2001") // its sender throttles itself
	wantResult(t, initial(supported), "3004")
	wantResult(t, ask(t, af, withHost(session("s;0"), "pcf1.epc.example").Other(rx.SessionTermination)), "2001")
	pcf.report(olr(1, rx.ReportHost, 0, time.Minute)...)
	wantResult(t, named(supported), "2001")
	wantResult(t, initial(), "3004") // the older report did not count
	pcf.report(olr(3, rx.ReportHost, 100, 0)...)
	wantResult(t, named(supported), "2001")
	wantResult(t, initial(), "2001")
	pcf.report(olr(9, rx.ReportRealm, 100, time.Minute)...)
	wantResult(t, initial(), "2001")
	wantResult(t, initial(), "3004")
	wantResult(t, named(), "2001") // the report is for requests without a host
	pcf.report(olr(10, rx.ReportRealm, 101, time.Minute)...)
	wantResult(t, named(), "2001")
	wantResult(t, initial(), "3004") // a reduction above 100 is none
	pcf.report(olr(11, rx.ReportRealm, 0, time.Minute)...)
	wantResult(t, named(), "2001")
	wantResult(t, initial(), "2001")
	n.change(func(*overload.Settings) {})
	pcf.report(olr(12, rx.ReportRealm, 100, time.Minute)...)
	if a := initial(); len(values(a, rx.OCOLR)) != 1 {
		t.Error("reports do not pass where they are not honoured")
	}
	wantResult(t, initial(), "2001")
	if len(values(pcf.last(t), rx.OCSupportedFeatures)) != 0 {
		t.Error("the PCF is told that reports are honoured")
	}
}

// busy is an input with one request under way.
type busy struct{}

func (busy) Pending() int           { return 1 }
func (busy) Backlog() time.Duration { return 0 }

// TestOwnLoadIsReported proves what AFs are told about this node (RX-081 and
// RX-086): its load to every peer, the reduction to those that honour reports,
// as a report about the host in its own answers and about the realm in those of
// the PCFs.
func TestOwnLoadIsReported(t *testing.T) {
	n := start(t)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	n.change(func(s *overload.Settings) {
		s.LoadProfiles[0].Diameter, s.LoadProfiles[0].Interval, s.LoadProfiles[0].CalcFrequency = "advertise", 0, 5
		s.NodeProfiles[0].Diameter, s.NodeProfiles[0].Interval, s.NodeProfiles[0].Validity = "advertise", 0, 75
		s.ExcludeProfiles[0].PriorityUpto = 13
		s.Thresholds[1].States = []overload.Threshold{{State: overload.Congested, Pending: 1}}
		s.Node = overload.Node{LoadProfile: "default", OverloadProfile: "default"}
	})
	n.overload.Watch(overload.DiameterService, busy{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.overload.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	supported := rx.AppendSupported(nil)
	id := 0
	initial := func(address string, more ...[]byte) *rx.View {
		id++
		return ask(t, af, session(fmt.Sprint("s;", id)).AAR(mustAddr(address), more...))
	}
	until(t, "the load is told", func() bool { return len(values(initial("10.0.0.1"), rx.LoadCode)) == 1 })
	for _, x := range []struct {
		address string
		more    [][]byte
		report  bool
		kind    rx.ReportType
	}{
		{"10.0.0.1", [][]byte{supported}, true, rx.ReportRealm},
		{"10.0.0.9", [][]byte{supported}, true, rx.ReportHost},
		{"10.0.0.1", nil, false, 0},
		{"10.0.0.9", nil, false, 0},
	} {
		a := initial(x.address, x.more...)
		if l, ok := rx.ParseLoad([]byte(values(a, rx.LoadCode)[0])); !ok || l.Type != rx.LoadPeer || l.Value != 0 || string(l.SourceID) != "bsf.epc.example" {
			t.Errorf("%+v: Load %+v", x, l)
		}
		list := values(a, rx.OCOLR)
		if (len(list) == 1) != x.report || len(values(a, rx.OCSupportedFeatures)) != len(list) {
			t.Errorf("%+v: reports %x", x, list)
		}
		if len(list) == 1 {
			if r, ok := rx.ParseOLR([]byte(list[0])); !ok || r.Type != x.kind || r.Reduction != 100 || r.Validity != 75*time.Second || r.Sequence == 0 {
				t.Errorf("%+v: %+v", x, r)
			}
		}
	}
	s := withHost(session("s;0"), "pcf1.epc.example")
	if a := ask(t, af, s.AAR(ue, supported)); len(values(a, rx.OCOLR)) != 0 {
		t.Error("a report about the realm for a request that names a host")
	}
}

// TestLoadOfPeers proves RX-086: a Load of the adjacent peer is consumed, one
// of another peer is dropped, one of a host passes; and among the peers of a
// route the less loaded ones get more.
func TestLoadOfPeers(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Routes = []diameter.Route{{Realm: "epc.example", Peers: []string{"dra1.epc.example", "dra2.epc.example"}}}
	})
	busy, idle := &reporting{recorder: recorder{result: rx.Base(rx.Success)}}, &reporting{recorder: *answering(rx.Success)}
	n.join("dra1.epc.example", "epc.example", busy.handle)
	n.join("dra2.epc.example", "epc.example", idle.handle)
	n.bind("pcf9.epc.example", "10.0.0.1")
	af := n.af()
	busy.report(slices.Concat(
		rx.AppendLoad(nil, rx.LoadPeer, 0, "dra1.epc.example"),
		rx.AppendLoad(nil, rx.LoadPeer, math.MaxUint16, "pcf9.epc.example"),
		rx.AppendLoad(nil, rx.LoadHost, 100, "pcf9.epc.example"),
	)...)
	for i := 0; busy.count() == 0; i++ {
		a := ask(t, af, session(fmt.Sprint("s;", i)).AAR(ue))
		if busy.count() == 0 {
			continue
		}
		if list := values(a, rx.LoadCode); len(list) != 1 {
			t.Errorf("%d Loads have passed", len(list))
		} else if l, ok := rx.ParseLoad([]byte(list[0])); !ok || l.Type != rx.LoadHost || l.Value != 100 {
			t.Errorf("%+v", l)
		}
	}
	before := busy.count()
	for i := range 200 {
		ask(t, af, session(fmt.Sprint("t;", i)).AAR(ue))
	}
	if got := busy.count() - before; got > 10 {
		t.Errorf("%d of 200 to a peer without any room, %d to the other", got, idle.count())
	}
}
