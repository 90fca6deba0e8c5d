package overload

import (
	"strings"
	"testing"
	"time"

	"bsfd/internal/admission"
)

// TestCongestionStatesFollowTheTables proves that each service goes through
// its congestion states with the default thresholds, after the configured
// samples, and sheds from the default discard priority on.
func TestCongestionStatesFollowTheTables(t *testing.T) {
	for _, svc := range []Service{ManagementService, DiameterService} {
		r := newRig(t, func(s *Settings) { s.congestionOf(svc).Enabled = true })
		type row struct {
			cpu     float64
			pending int
			level   Level
			refuses int
		}
		rows := []row{{70, 0, Normal, 32}, {76, 0, Danger, 30}, {81, 0, CongestionL1, 24}, {86, 0, CongestionL2, 18}, {91, 0, Congested, 14},
			{0, 176, Danger, 30}, {0, 201, CongestionL1, 24}, {0, 226, CongestionL2, 18}, {0, 251, Congested, 14}, {10, 10, Normal, 32}}
		if svc == DiameterService {
			rows = []row{{59, 0, Normal, 32}, {61, 0, Danger, 27}, {71, 0, CongestionL1, 19}, {76, 0, CongestionL2, 17}, {81, 0, Congested, 15},
				{0, 6301, Danger, 27}, {0, 7201, CongestionL1, 19}, {0, 8101, CongestionL2, 17}, {0, 9001, Congested, 15}, {10, 10, Normal, 32}}
		}
		for _, x := range rows {
			before := r.parts[svc].congestion.level
			r.load, r.pendings[svc] = x.cpu, x.pending
			r.pass(800 * time.Millisecond)
			if got := r.parts[svc].congestion.level; got != before {
				t.Errorf("%s: %s after four samples", svc, got)
			}
			r.pass(600 * time.Millisecond)
			if got := r.parts[svc].congestion.level; got != x.level {
				t.Errorf("%s at %v %% and %d pending: %s", svc, x.cpu, x.pending, got)
			}
			if got := r.lowest(svc); got != x.refuses {
				t.Errorf("%s in %s refuses from %d on, not %d", svc, x.level, got, x.refuses)
			}
		}
	}
}

// TestPercentagesPerRange proves the profile with priority ranges and
// percentages: in each state each range loses its share.
func TestPercentagesPerRange(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.Congestion.Diameter.Enabled, s.Congestion.Diameter.LoadSheddingProfile = true, defaultPercentage
	})
	for _, x := range []struct {
		pending int
		want    map[int]int // share in percent by priority
	}{
		{6400, map[int]int{26: 0, 27: 50, 31: 50}},
		{7300, map[int]int{18: 0, 19: 50, 26: 50, 27: 75}},
		{8200, map[int]int{16: 0, 17: 50, 18: 50, 20: 75, 28: 100}},
		{9100, map[int]int{14: 0, 15: 100, 31: 100}},
	} {
		r.pendings[DiameterService] = x.pending
		r.pass(1200 * time.Millisecond)
		for p, want := range x.want {
			refused := 0
			for range 1000 {
				q := rxRequest("AAR", admission.Absent)
				q.OCPriority = p
				if r.Gate(DiameterService).Admit(q) != nil {
					refused++
				}
			}
			if d := refused - 10*want; d < -2 || d > 2 {
				t.Errorf("%d pending, priority %d: %d of 1000 refused, not %d %%", x.pending, p, refused, want)
			}
		}
	}
}

// TestUrgentRequestsAreNeverShedFirst proves that emergency calls and priority
// services pass in the worst congestion state.
func TestUrgentRequestsAreNeverShedFirst(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.Congestion.Diameter.Enabled = true
		s.Levels.Enabled = true
	})
	r.pendings[DiameterService], r.load = 20000, 100
	r.pass(3 * time.Second)
	q := rxRequest("AAR", 15)
	if r.Gate(DiameterService).Admit(q) == nil {
		t.Fatal("a request of the lowest priority is served")
	}
	q.Urgent = true
	if r.Gate(DiameterService).Admit(q) != nil {
		t.Error("an emergency call is refused")
	}
}

// TestOverloadLevelsShed proves overload control on both interfaces: the
// default thresholds, the discard policy by priority and by percentage, and the
// Diameter load shedding profile.
func TestOverloadLevelsShed(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.Levels.Enabled, s.PolicyMapping.Enabled = true, true })
	for _, x := range []struct {
		pending, level, sbi, rx int
	}{{1000, 0, 32, 32}, {1300, 1, 24, 13}, {1600, 2, 18, 11}, {1900, 3, 14, 6}, {1786, 3, 14, 6}, {1700, 2, 18, 11}, {100, 0, 32, 32}} {
		r.pendings = [services]int{x.pending, x.pending}
		r.pass(2 * time.Second)
		for svc, want := range map[Service]int{ManagementService: x.sbi, DiameterService: x.rx} {
			if got := r.parts[svc].overload; got != x.level {
				t.Errorf("%s with %d pending: L%d", svc, x.pending, got)
			}
			if got := r.lowest(svc); got != want {
				t.Errorf("%s at L%d refuses from %d on, not %d", svc, x.level, got, want)
			}
		}
	}
	r.change(t, func(s *Settings) {
		s.Policies = []DiscardPolicy{{Name: defaultProfile, Scheme: "PercentageBased", Policies: []Discard{{Level: "L1", Value: 25}}}}
	})
	r.pendings[ManagementService] = 1300
	refused, n := [2]int{}, 400
	for range 100 {
		for i := range n / 100 {
			if r.Gate(ManagementService).Admit(httpRequest("discover", "GET", 10+10*(i%2))) != nil {
				refused[i%2]++
			}
		}
		r.pass(100 * time.Millisecond)
	}
	if refused[0] != 0 || refused[1] < 85 || refused[1] > 105 {
		t.Errorf("of 200 each, %d of priority 10 and %d of priority 20 refused: not 25 %% of all, lowest first", refused[0], refused[1])
	}
}

// TestFailuresRaiseTheOverloadLevel proves that failures a second count, that
// refusals do not, and that the statuses which count can be chosen.
func TestFailuresRaiseTheOverloadLevel(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.Levels.Enabled = true })
	fail := func(status, n int) {
		for range n {
			r.Gate(ManagementService).Failed(status)
		}
		r.pass(time.Second)
	}
	fail(404, 2000)
	if r.parts[ManagementService].overload != 0 {
		t.Error("404 counts as a failure")
	}
	fail(500, 500)
	if r.parts[ManagementService].overload != 1 {
		t.Errorf("500 failures a second: L%d", r.parts[ManagementService].overload)
	}
	r.change(t, func(s *Settings) { s.Levels.FailureCodes = []int{404} })
	fail(500, 5000)
	fail(500, 5000)
	if r.parts[ManagementService].overload != 0 {
		t.Error("500 counts though only 404 is to")
	}
	fail(404, 1300)
	if r.parts[ManagementService].overload != 3 {
		t.Errorf("1300 failures a second: L%d", r.parts[ManagementService].overload)
	}
	r.Gate(DiameterService).Failed(5065)
	r.Gate(DiameterService).Failed(3002)
	r.Gate(DiameterService).Failed(5012)
	if n := r.Gate(DiameterService).failures.Load(); n != 2 {
		t.Errorf("%d failures on Diameter", n)
	}
}

// TestLevelsAreDerivedFromCapacity proves the formulas.
func TestLevelsAreDerivedFromCapacity(t *testing.T) {
	p := LevelProfile{Name: "x", Capacity: Capacity{CPU: 61, Pending: 2100, TPS: 8400}}
	rows := p.derived()
	want := []LevelThreshold{
		{"L1", Resources{48, 1260, 420, 0}, Resources{45, 1050, 252, 0}},
		{"L2", Resources{54, 1575, 840, 0}, Resources{51, 1470, 672, 0}},
		{"L3", Resources{57, 1890, 1260, 0}, Resources{55, 1785, 1008, 0}},
	}
	for i := range want {
		if rows[i] != want[i] {
			t.Errorf("%+v, not %+v", rows[i], want[i])
		}
	}
}

// TestLevelsOfACapacityShed proves that a profile which has a capacity and no
// levels has those that are derived from it.
func TestLevelsOfACapacityShed(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.Levels.Enabled = true
		s.LevelProfiles = []LevelProfile{{Name: defaultProfile, Capacity: Capacity{Pending: 1000}}}
	})
	for pending, want := range map[int]int{599: 0, 600: 1, 750: 2, 900: 3} {
		r.pendings[DiameterService] = 0
		r.pass(time.Second)
		r.pendings[DiameterService] = pending
		r.pass(time.Second)
		if got := r.parts[DiameterService].overload; got != want {
			t.Errorf("%d pending of 1000: L%d", pending, got)
		}
	}
}

// TestMemoryCounts proves that memory raises congestion states and overload
// levels where a profile looks at it.
func TestMemoryCounts(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.Thresholds[0].States = []Threshold{{State: CongestionL1, Memory: 50}, {State: Congested, Memory: 70}}
		s.Levels.Enabled = true
		s.LevelProfiles[0].Levels = []LevelThreshold{{"L1", Resources{Memory: 60}, Resources{Memory: 55}}}
	})
	for _, x := range []struct {
		memory float64
		level  Level
		loaded int
	}{{40, Normal, 0}, {52, CongestionL1, 0}, {75, Congested, 1}, {56, CongestionL1, 1}, {40, Normal, 0}} {
		r.memory = x.memory
		r.pass(3 * time.Second)
		if p := r.parts[ManagementService]; p.congestion.level != x.level || p.overload != x.loaded {
			t.Errorf("%v %%: %s, L%d", x.memory, p.congestion.level, p.overload)
		}
	}
}

// TestSamplesAreConfigured proves that the interval and the count of samples
// decide how soon a state changes.
func TestSamplesAreConfigured(t *testing.T) {
	for _, x := range []struct {
		interval, count int
		after           time.Duration
	}{{50, 1, 50 * time.Millisecond}, {100, 3, 300 * time.Millisecond}, {1000, 2, 2 * time.Second}} {
		r := newRig(t, func(s *Settings) {
			s.Congestion.Diameter.StateCalculationInterval, s.Congestion.Diameter.StateChangeSampleCount = x.interval, x.count
		})
		r.pass(2 * time.Second)
		r.pendings[DiameterService] = 1 << 20
		began := r.now
		for r.parts[DiameterService].congestion.level == Normal {
			r.tick(1)
		}
		if took := r.now.Sub(began); took > x.after || took < x.after-time.Duration(x.interval)*time.Millisecond {
			t.Errorf("%+v: after %s", x, took)
		}
	}
}

// TestPodProtection proves the states of the entrance.
func TestPodProtection(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.Protection.Enabled = true })
	for _, x := range []struct {
		cpu, memory float64
		pending     int
		want        int
	}{{50, 10, 10, 32}, {90, 10, 10, 24}, {50, 85, 10, 24}, {50, 10, 1001, 24}, {50, 10, 5001, 1}, {99, 10, 10, 1}, {50, 95, 10, 1}, {50, 10, 10, 32}} {
		r.load, r.memory, r.pendings[ManagementService] = x.cpu, x.memory, x.pending
		r.pass(1500 * time.Millisecond)
		if got := r.lowest(ManagementService); got != x.want {
			t.Errorf("%+v: refuses from %d on", x, got)
		}
	}
}

// TestOperationalStateDecides proves the controlled shutdown on both
// interfaces and towards others.
func TestOperationalStateDecides(t *testing.T) {
	r := newRig(t, func(*Settings) {})
	for _, x := range []struct {
		state                Operation
		begin, other, egress bool
	}{{OperationNormal, true, true, true}, {OperationPartial, false, true, true}, {OperationComplete, false, false, false}, {OperationNormal, true, true, true}} {
		r.change(t, func(s *Settings) { s.Shutdown.State = x.state })
		got := [...]bool{
			r.Gate(ManagementService).Admit(httpRequest("register", "POST", 0)) == nil,
			r.Gate(ManagementService).Admit(httpRequest("discover", "GET", 0)) == nil,
			r.Gate(DiameterService).Admit(rxRequest("AAR", 0)) == nil,
			r.Gate(DiameterService).Admit(rxRequest("STR", 0)) == nil,
			r.MaySend("http://x/"),
		}
		if want := [...]bool{x.begin, x.other, x.begin, x.other, x.egress}; got != want {
			t.Errorf("%s: %v", x.state, got)
		}
	}
	r.change(t, func(s *Settings) { s.Shutdown.State, s.Shutdown.Enabled = OperationComplete, false })
	if r.Gate(ManagementService).Admit(httpRequest("register", "POST", 0)) != nil {
		t.Error("the state counts though the feature is off")
	}
}

// TestRouteLimits proves the rate limit: what was too much in one period is
// refused in the next, priorities up to the bound always pass, and other routes
// are left alone.
func TestRouteLimits(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.RateLimiting.Enabled = true
		s.Routes[0].Rate = 100
	})
	var served, urgent, other int
	const seconds = 10
	for range seconds * 20 {
		for range 20 { // 400 a second
			if r.Gate(ManagementService).Admit(httpRequest("register", "POST", 25)) == nil {
				served++
			}
		}
		if r.Gate(ManagementService).Admit(httpRequest("register", "POST", 24)) != nil {
			urgent++
		}
		if r.Gate(ManagementService).Admit(httpRequest("discover", "GET", 31)) != nil {
			other++
		}
		r.tick(1)
	}
	// The first period passes whole.
	if want := 400 + (seconds-1)*100; served < want-30 || served > want+30 {
		t.Errorf("%d served, not about %d", served, want)
	}
	if urgent+other != 0 {
		t.Errorf("%d of a protected priority and %d of another route refused", urgent, other)
	}
}

// TestNodeProfile proves the load and overload profile: the states by
// tolerance, the reduction between minimum and maximum, self-protection with
// its exclusions, and both profiles only together.
func TestNodeProfile(t *testing.T) {
	p := Default().NodeProfiles[0]
	for load, want := range map[int]struct {
		state     nodeLevel
		reduction int
	}{0: {nodeNormal, 0}, 79: {nodeNormal, 0}, 80: {nodeOverloaded, 10}, 85: {nodeOverloaded, 40}, 90: {nodeOverloaded, 70}, 94: {nodeOverloaded, 94}, 95: {selfProtection, 100}, 100: {selfProtection, 100}} {
		if state, reduction := p.at(load); state != want.state || reduction != want.reduction {
			t.Errorf("%d %%: %s, %d %%", load, state, reduction)
		}
	}
	r := newRig(t, func(s *Settings) {
		s.Node = Node{OverloadProfile: defaultProfile}
		s.ExcludeProfiles[0].DNNs = []string{"ims"}
	})
	r.load = 100
	r.pass(30 * time.Second)
	if r.node.state != nodeNormal {
		t.Error("an overload profile works without a load profile")
	}
	r.change(t, func(s *Settings) { s.Node.LoadProfile = defaultProfile })
	r.pass(12 * time.Second)
	if r.node.state != selfProtection || r.node.load < 99 {
		t.Fatalf("%s at %d %%", r.node.state, r.node.load)
	}
	urgent, ims := rxRequest("AAR", 15), rxRequest("AAR", 15)
	urgent.Urgent, ims.DNN = true, "ims"
	for name, x := range map[string]struct {
		gate   Service
		r      *admission.Request
		served bool
	}{
		"new session":     {DiameterService, rxRequest("AAR", 15), false},
		"session-delete":  {DiameterService, rxRequest("STR", 15), true},
		"modification":    {DiameterService, rxRequest("RAR", 15), false},
		"high priority":   {DiameterService, rxRequest("RAR", 2), true},
		"priority 6":      {DiameterService, rxRequest("RAR", 3), false},
		"emergency":       {DiameterService, urgent, true},
		"excluded DNN":    {DiameterService, ims, true},
		"registration":    {ManagementService, httpRequest("register", "POST", 10), false},
		"registration, 5": {ManagementService, httpRequest("register", "POST", 5), true},
		"deregistration":  {ManagementService, httpRequest("deregister", "DELETE", 31), true},
	} {
		if got := r.Gate(x.gate).Admit(x.r) == nil; got != x.served {
			t.Errorf("%s: served %v", name, got)
		}
	}
	r.load = 10
	r.pass(11 * time.Second)
	if r.Gate(DiameterService).Admit(rxRequest("AAR", 15)) != nil {
		t.Error("self-protection does not end")
	}
}

// TestAdaptiveSheddingServesWhatCanBeServed proves adaptive shedding with a
// simulated server that can do a fixed number of requests a second: whatever
// comes, about that much is served, highest priority first, and nothing is
// refused soon after the load has gone.
func TestAdaptiveSheddingServesWhatCanBeServed(t *testing.T) {
	const capacity = 1000.0
	r := newRig(t, func(s *Settings) {
		s.Adaptive.Diameter = AdaptiveService{Enabled: true, CPU: 95, Pending: 100, Interval: 100}
	})
	run := func(offered float64, d time.Duration) (served [3]float64, came [3]float64) {
		credit, queue := 0.0, 0.0
		for range int(d / tickInterval) {
			for credit += offered * tickInterval.Seconds(); credit >= 1; credit-- {
				class := int(r.used/time.Microsecond+time.Duration(credit)) % 3
				q := rxRequest("AAR", admission.Absent)
				q.OCPriority = []int{2, 15, 25}[class]
				came[class]++
				if r.Gate(DiameterService).Admit(q) == nil {
					served[class]++
					queue++
				}
			}
			done := min(queue, capacity*tickInterval.Seconds())
			queue -= done
			r.pendings[DiameterService] = int(queue)
			r.load = 100 * done / (capacity * tickInterval.Seconds())
			r.tick(1)
		}
		return served, came
	}
	run(500, 5*time.Second)
	if n := r.parts[DiameterService].adaptive.reduction; n != 0 {
		t.Fatalf("%v refused at half the capacity", n)
	}
	for _, factor := range []float64{1.5, 2, 3, 5} {
		run(factor*capacity, 10*time.Second)
		served, came := run(factor*capacity, 20*time.Second)
		total := (served[0] + served[1] + served[2]) / 20
		if total < .85*capacity || total > 1.05*capacity {
			t.Errorf("%v times the capacity: %v a second served", factor, total)
		}
		if factor < 3 && served[0] < .999*came[0] {
			t.Errorf("%v times the capacity: %v of %v with the highest priority served", factor, served[0], came[0])
		}
		if served[2]/came[2] > served[1]/came[1] || served[1]/came[1] > served[0]/came[0] {
			t.Errorf("%v times the capacity: not by priority: %v of %v", factor, served, came)
		}
	}
	run(500, 5*time.Second)
	if n := r.parts[DiameterService].adaptive.reduction; n != 0 {
		t.Errorf("%v is still refused five seconds after the load has gone", n)
	}
}

// TestAnswersAreConfigured proves the answers to what is shed: status, cause
// and Retry-After, error code profiles, Diameter results with vendor, and the
// defaults for unsupported values.
func TestAnswersAreConfigured(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.Congestion.Management.Enabled, s.Congestion.Diameter.Enabled = true, true })
	r.pendings = [services]int{1000, 20000}
	r.pass(2 * time.Second)
	refused := func() *admission.Refusal { return r.Gate(ManagementService).Admit(httpRequest("register", "POST", 31)) }
	if f := refused(); f == nil || f.Status != 503 || f.Cause != "NF_CONGESTION" || f.RetryAfter != time.Second || !strings.Contains(f.Detail, "bsf1: is in CONGESTED") {
		t.Errorf("%+v", f)
	}
	for code, want := range map[int]int{404: 404, 427: 503, 429: 429, 430: 503, 511: 511, 512: 503, 200: 503, 307: 503} {
		r.change(t, func(s *Settings) { s.Management.Advanced.ResponseCode, s.Management.Advanced.Cause = code, "X" })
		if f := refused(); f.Status != want || f.Cause != "X" {
			t.Errorf("configured %d: %+v", code, f)
		}
	}
	r.change(t, func(s *Settings) {
		s.ErrorCodes = []ErrorCodeProfile{{"e", 429, "NF_CONGESTION_RISK", "T", "D", 7}}
		s.Shedding[0].ErrorCodeProfile = "e"
	})
	if f := refused(); *f != (admission.Refusal{Status: 429, Cause: "NF_CONGESTION_RISK", Title: "T", Detail: "D", RetryAfter: 7 * time.Second}) {
		t.Errorf("%+v", f)
	}
	for _, x := range []struct {
		code, vendor     int
		want, wantVendor uint32
	}{{3004, 0, 3004, 0}, {5997, 21274, 5997, 21274}, {5065, 10415, 5065, 10415}, {1234, 0, 3004, 0}, {2001, 0, 3004, 0}, {6000, 10415, 3004, 0}} {
		r.change(t, func(s *Settings) { s.Diameter.ResponseCode, s.Diameter.VendorID = x.code, x.vendor })
		if f := r.Gate(DiameterService).Admit(rxRequest("AAR", 15)); f.Result != x.want || f.Vendor != x.wantVendor {
			t.Errorf("%+v: %+v", x, f)
		}
	}
}

// TestOnlyLoadIsPressure proves that a service whose operator refuses requests,
// by the operational state or a rate, is not under pressure, and that one which
// sheds load is.
func TestOnlyLoadIsPressure(t *testing.T) {
	for name, x := range map[string]struct {
		change  func(*Settings)
		pending int
		pressed bool
	}{
		"nothing":           {func(*Settings) {}, 0, false},
		"partial shutdown":  {func(s *Settings) { s.Shutdown.State = OperationPartial }, 0, false},
		"complete shutdown": {func(s *Settings) { s.Shutdown.State = OperationComplete }, 0, false},
		"rate limit":        {func(s *Settings) { s.RateLimiting.Enabled, s.Routes[0].Rate = true, 1 }, 0, false},
		"congestion":        {func(s *Settings) { s.Congestion.Management.Enabled = true }, 1e5, true},
	} {
		r := newRig(t, x.change)
		r.pendings[ManagementService] = x.pending
		for range 60 {
			r.Gate(ManagementService).Admit(httpRequest("register", "POST", 31))
			r.tick(1)
		}
		if got := r.Gate(ManagementService).Pressed(); got != x.pressed {
			t.Errorf("%s: %v", name, got)
		}
	}
}
