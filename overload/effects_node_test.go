package overload

import (
	"fmt"
	"net/http"
	"time"

	"bsfd/internal/admission"
)

func nodeEffects() []effect {
	const m, d = ManagementService, DiameterService
	node := func(load func(*LoadProfile), over func(*NodeProfile)) func(*Settings) {
		return func(s *Settings) {
			l, p := &s.LoadProfiles[0], &s.NodeProfiles[0]
			l.SBI, l.Diameter, p.SBI, p.Diameter = "advertise", "advertise", "advertise", "advertise"
			load(l)
			over(p)
			s.Node = Node{defaultProfile, defaultProfile}
		}
	}
	sameLoad, same := func(*LoadProfile) {}, func(*NodeProfile) {}
	asIs := node(sameLoad, same)
	loaded := func(change func(*LoadProfile)) func(*Settings) { return node(change, same) }
	over := func(change func(*NodeProfile)) func(*Settings) { return node(sameLoad, change) }
	exclude := func(change func(*ExcludeProfile)) func(*Settings) {
		return func(s *Settings) { asIs(s); change(&s.ExcludeProfiles[0]) }
	}
	header := func(name string, p *admission.Peer) func(*rig) string {
		return func(r *rig) string {
			h := http.Header{}
			if a := r.adverts.Load(); a != nil {
				a.tell(p, r.now, h)
			}
			return h.Get(name)
		}
	}
	// told sees what a consumer that was told nothing yet is told.
	metric := func(name string) func(*rig) any {
		return func(r *rig) any {
			text := header(name, new(admission.Peer))(r)
			list, err := ParseOCI(text)
			if name == "3gpp-Sbi-Lci" {
				list, err = ParseLCI(text)
			}
			if err != nil {
				return "nothing"
			}
			return fmt.Sprintf("%d for %s", list[0].Metric, list[0].Validity)
		}
	}
	// again sees whether a consumer is told anew after a time, at another load.
	again := func(name string, load float64, wait time.Duration) func(*rig) any {
		return func(r *rig) any {
			r.load = 90
			r.pass(time.Minute)
			p := new(admission.Peer)
			header(name, p)(r)
			r.load = load
			r.pass(wait)
			return header(name, p)(r) != ""
		}
	}
	report := func(r *rig) any {
		rep := r.Gate(d).Report(new(admission.Peer), r.now)
		return fmt.Sprintf("%d %t", rep.Load, rep.Overload != nil)
	}
	closed := use(100, 0)
	served := func(q *admission.Request) func(*rig) any {
		return func(r *rig) any { return r.Gate(d).Admit(q) == nil }
	}
	ims, call := rxRequest("RAR", 15), rxRequest("AAR", 15)
	ims.DNN = "ims"
	profiles, excludes := "overloadProfiles [].", "overloadExcludeProfiles []."
	return []effect{
		{"loadProfiles [].loadCalcFrequency", asIs, nil, within(11*time.Second, use(0, 99), func(r *rig) bool { return r.node.load > 90 }), true, loaded(func(p *LoadProfile) { p.CalcFrequency = 30 }), false},
		{"loadProfiles [].advertiseInterval", asIs, nil, again("3gpp-Sbi-Lci", 90, 30*time.Second), false, loaded(func(p *LoadProfile) { p.Interval = 20 }), true},
		{"loadProfiles [].advertiseChangeFactor", asIs, nil, again("3gpp-Sbi-Lci", 80, 30*time.Second), true, loaded(func(p *LoadProfile) { p.ChangeFactor = 15 }), false},
		{"loadProfiles [].sbiAction", asIs, use(40, 0), metric("3gpp-Sbi-Lci"), "40 for 0s", loaded(func(p *LoadProfile) { p.SBI = "" }), "nothing"},
		{"loadProfiles [].diameterAction", asIs, use(90, 0), report, "6553 true", loaded(func(p *LoadProfile) { p.Diameter = "" }), "-1 true"},
		{"bsfProfile loadProfile", asIs, use(40, 0), metric("3gpp-Sbi-Lci"), "40 for 0s", func(s *Settings) { s.Node.LoadProfile = "" }, "nothing"},
		{"bsfProfile overloadProfile", asIs, use(90, 0), metric("3gpp-Sbi-Oci"), "70 for 10m0s", func(s *Settings) { s.Node.OverloadProfile = "" }, "nothing"},
		{profiles + "toleranceMinimum", asIs, use(84, 0), metric("3gpp-Sbi-Oci"), "34 for 10m0s", over(func(p *NodeProfile) { p.ToleranceMin = 85 }), "nothing"},
		{profiles + "toleranceMaximum", asIs, use(96, 0), served(call), false, over(func(p *NodeProfile) { p.ToleranceMax = 98 }), true},
		{profiles + "reductionMetricMinimum", asIs, use(80, 0), metric("3gpp-Sbi-Oci"), "10 for 10m0s", over(func(p *NodeProfile) { p.ReductionMin = 40 }), "40 for 10m0s"},
		{profiles + "reductionMetricMaximum", asIs, use(96, 0), metric("3gpp-Sbi-Oci"), "100 for 10m0s", over(func(p *NodeProfile) { p.ReductionMax = 60 }), "60 for 10m0s"},
		{profiles + "advertiseInterval", asIs, nil, again("3gpp-Sbi-Oci", 90, 30*time.Second), false, over(func(p *NodeProfile) { p.Interval = 20 }), true},
		{profiles + "advertiseChangeFactor", asIs, nil, again("3gpp-Sbi-Oci", 92, 30*time.Second), true, over(func(p *NodeProfile) { p.ChangeFactor = 20 }), false},
		{profiles + "advertiseValidityPeriod", asIs, use(90, 0), metric("3gpp-Sbi-Oci"), "70 for 10m0s", over(func(p *NodeProfile) { p.Validity = 60 }), "70 for 1m0s"},
		{profiles + "sbiOverloadedAction", asIs, use(90, 0), metric("3gpp-Sbi-Oci"), "70 for 10m0s", over(func(p *NodeProfile) { p.SBI = "" }), "nothing"},
		{profiles + "diameterOverloadedAction", asIs, use(90, 0), report, "6553 true", over(func(p *NodeProfile) { p.Diameter = "" }), "6553 false"},
		{profiles + "overloadExcludeProfile", asIs, closed, served(rxRequest("STR", 15)), true, over(func(p *NodeProfile) { p.Exclude = "" }), false},
		{excludes + "dnnList", asIs, closed, served(ims), false, exclude(func(p *ExcludeProfile) { p.DNNs = []string{"ims"} }), true},
		{excludes + "messagePriorityUpto", asIs, closed, func(r *rig) any { return r.Gate(m).Admit(httpRequest("update", http.MethodPatch, 6)) == nil }, false, exclude(func(p *ExcludeProfile) { p.PriorityUpto = 6 }), true},
		{excludes + "procedureList", asIs, closed, served(call), false, exclude(func(p *ExcludeProfile) { p.Procedures = []string{"new-call"} }), true},
	}
}

// peerEffects are what follows from a peer that wants half of the requests.
func peerEffects() []effect {
	reports := func(r *rig) { r.Peers().Overloaded("host:a", r.now.UnixNano(), 50, time.Hour, r.now) }
	peers := func(change func(*NodeProfile)) func(*Settings) {
		return func(s *Settings) {
			s.Node.OverloadProfile = defaultProfile
			change(&s.NodeProfiles[0])
		}
	}
	// held sees how many of a hundred of each group are not sent.
	held := func(r *rig) any {
		var n [2]int
		for range 1000 {
			for i, message := range []string{"AAR", "RAR"} {
				if !r.Gate(DiameterService).MaySend(rxRequest(message, 15), r.now, "host:a") {
					n[i]++
				}
			}
		}
		return fmt.Sprintf("%d and %d", (n[0]+25)/50*5, (n[1]+25)/50*5)
	}
	same := peers(func(*NodeProfile) {})
	ends := func(r *rig) any {
		for range 100 {
			if !r.Gate(DiameterService).MaySend(rxRequest("STR", 15), r.now, "host:a") {
				return "held back"
			}
		}
		return "sent"
	}
	return []effect{
		{"overloadProfiles [].peerAction", same, reports, held, "50 and 50", peers(func(p *NodeProfile) { p.PeerAction = "" }), "0 and 0"},
		{"overloadProfiles [].peerExcludeProfile", same, reports, ends, "sent", peers(func(p *NodeProfile) { p.PeerExclude = "" }), "held back"},
		{"overloadProfiles [].messagePrioritizationGroup1", same, reports, held, "50 and 50", peers(func(p *NodeProfile) { p.Group1 = 100 }), "65 and 35"},
		{"overloadProfiles [].messagePrioritizationGroup2", same, reports, held, "50 and 50", peers(func(p *NodeProfile) { p.Group2 = 100 }), "35 and 65"},
	}
}
