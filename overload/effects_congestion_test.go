package overload

import (
	"fmt"
	"net/http"
	"time"
)

func congestionEffects() []effect {
	congested := func(svc Service) func(*Settings) { return func(s *Settings) { s.congestionOf(svc).Enabled = true } }
	first := map[Service]int{ManagementService: 14, DiameterService: 15}
	list := both(func(svc Service, name string) []effect {
		setting := func(member string) string { return "congestionControl " + name + "." + member }
		full := crowd(1e5, svc)
		return []effect{
			{setting("enabled"), nobody, full, shedFrom(svc), 32, congested(svc), first[svc]},
			{setting("stateCalculationInterval"), congested(svc), nil, within(time.Second, full, sheds(svc)), true,
				func(s *Settings) { s.congestionOf(svc).StateCalculationInterval = 1000 }, false},
			{setting("stateChangeSampleCount"), congested(svc), nil, within(time.Second, full, sheds(svc)), true,
				func(s *Settings) { s.congestionOf(svc).StateChangeSampleCount = 10 }, false},
			{setting("thresholdProfile"), func(s *Settings) {
				congested(svc)(s)
				s.Thresholds = append(s.Thresholds, ThresholdProfile{"other", []Threshold{{State: Congested, Pending: 1e6}}})
			}, full, shedFrom(svc), first[svc], func(s *Settings) { s.congestionOf(svc).ThresholdProfile = "other" }, 32},
			{setting("loadSheddingProfile"), func(s *Settings) {
				congested(svc)(s)
				s.Shedding = append(s.Shedding, SheddingProfile{Name: "other", Rules: []SheddingRule{{Congested, 3, 31, 0}}})
			}, full, shedFrom(svc), first[svc], func(s *Settings) { s.congestionOf(svc).LoadSheddingProfile = "other" }, 3},
		}
	})
	const svc = ManagementService
	threshold := func(x Threshold) func(*Settings) {
		return func(s *Settings) { congested(svc)(s); s.Thresholds[0].States = []Threshold{x} }
	}
	rule := func(x SheddingRule) func(*Settings) {
		return func(s *Settings) { congested(svc)(s); s.Shedding[0].Rules = []SheddingRule{x} }
	}
	states, rules := "thresholdProfiles [].states[].", "loadSheddingRules [].rules[]."
	full := crowd(1e5, svc)
	return append(list, []effect{
		{states + "state", threshold(Threshold{Danger, 50, 0, 0}), use(60, 0), shedFrom(svc), 30, threshold(Threshold{CongestionL1, 50, 0, 0}), 24},
		{states + "cpu", threshold(Threshold{Danger, 50, 0, 0}), use(60, 0), shedFrom(svc), 30, threshold(Threshold{Danger, 70, 0, 0}), 32},
		{states + "queue", threshold(Threshold{Danger, 0, 50, 0}), crowd(60, svc), shedFrom(svc), 30, threshold(Threshold{Danger, 0, 70, 0}), 32},
		{states + "memory", threshold(Threshold{Danger, 0, 0, 50}), use(0, 60), shedFrom(svc), 30, threshold(Threshold{Danger, 0, 0, 70}), 32},
		{rules + "state", rule(SheddingRule{Congested, 9, 31, 0}), full, shedFrom(svc), 9, rule(SheddingRule{CongestionL2, 9, 31, 0}), 32},
		{rules + "discardPriority", rule(SheddingRule{Congested, 9, 31, 0}), full, shedFrom(svc), 9, rule(SheddingRule{Congested, 10, 31, 0}), 10},
		{rules + "discardPriorityTo", rule(SheddingRule{Congested, 9, 20, 100}), full, shedOf(svc, 21), 0, rule(SheddingRule{Congested, 9, 21, 100}), 100},
		{rules + "discardPercentage", rule(SheddingRule{Congested, 9, 31, 40}), full, shedOf(svc, 21), 40, rule(SheddingRule{Congested, 9, 31, 60}), 60},
		{"loadSheddingRules [].errorCodeProfile", func(s *Settings) { congested(svc)(s); errorCode(s) }, full, answerTo(svc, httpRequest("register", http.MethodPost, 31)), "503 NF_CONGESTION Congestion 1s",
			func(s *Settings) { s.Shedding[0].ErrorCodeProfile = "e" }, "429 C T 7s"},
	}...)
}

// errorCode adds the error code profile e.
func errorCode(s *Settings) { s.ErrorCodes = []ErrorCodeProfile{{"e", 429, "C", "T", "D", 7}} }

func levelEffects() []effect {
	const m, d = ManagementService, DiameterService
	on := func(s *Settings) { s.Levels.Enabled, s.PolicyMapping.Enabled = true, true }
	full := crowd(1300, m, d) // L1 of the default profile
	other := func(s *Settings) {
		on(s)
		s.LevelProfiles = append(s.LevelProfiles, LevelProfile{Name: "other", Capacity: Capacity{Pending: 1e6}})
	}
	failing := func(code int) func(*rig) {
		return func(r *rig) {
			for range 50 {
				for range 100 {
					r.Gate(m).Failed(code)
				}
				r.tick(1)
			}
		}
	}
	level := func(change func(*LevelThreshold)) func(*Settings) {
		return func(s *Settings) {
			on(s)
			l := LevelThreshold{Level: "L1"}
			if change(&l); l.Onset == (Resources{}) {
				l.Onset = Resources{60, 60, 60, 60}
			}
			s.LevelProfiles[0].Levels = []LevelThreshold{l}
		}
	}
	capacity := func(c Capacity) func(*Settings) {
		return func(s *Settings) { on(s); s.LevelProfiles[0] = LevelProfile{Name: defaultProfile, Capacity: c} }
	}
	policy := func(scheme string, d Discard) func(*Settings) {
		return func(s *Settings) {
			on(s)
			s.Policies = append(s.Policies[:1:1], DiscardPolicy{"other", scheme, []Discard{d}})
			s.PolicyMapping.Policy = "other"
		}
	}
	shed := func(x RxShed) func(*Settings) {
		return func(s *Settings) { on(s); s.RxShedding[0].Rules = []RxShed{x} }
	}
	// falls goes over an onset of 60 and back to 50.
	falls := func(raise func(r *rig, n float64)) func(*rig) {
		return func(r *rig) { raise(r, 70); r.pass(5 * time.Second); raise(r, 50) }
	}
	cpu := func(r *rig, n float64) { r.load = n }
	memory := func(r *rig, n float64) { r.memory = n }
	pending := func(r *rig, n float64) { r.pendings[m] = int(n) }
	failed := func(r *rig, n float64) {
		for range 20 {
			for range int(n) / 20 {
				r.Gate(m).Failed(500)
			}
			r.tick(1)
		}
	}
	// The level is looked at in the second after the last failures.
	lastFailures := func(r *rig) any { failed(r, 140); failed(r, 100); return r.lowest(m) }
	few := func(r *rig) any { failed(r, 140); failed(r, 140); return r.lowest(m) }
	levels, rules := "overloadLevelThresholdProfiles [].levels[].", "diameterLoadSheddingProfiles [].overloadLoadSheddingRules[]."
	onset := func(a, b Resources) (x, y func(*Settings)) {
		return level(func(l *LevelThreshold) { l.Onset = a }), level(func(l *LevelThreshold) { l.Onset = b })
	}
	abatement := func(b Resources) func(*Settings) { return level(func(l *LevelThreshold) { l.Abatement = b }) }
	step := func(setting string, load func(*rig), see func(*rig) any, a, b Resources) effect {
		given, change := onset(a, b)
		return effect{levels + "onset." + setting, given, load, see, 24, change, 32}
	}
	return []effect{
		{"overloadLevelThreshold enabled", nobody, full, shedFrom(d), 32, on, 13},
		{"overloadLevelThreshold managementProfile", other, full, shedFrom(m), 24, func(s *Settings) { s.Levels.Management = "other" }, 32},
		{"overloadLevelThreshold diameterProfile", other, full, shedFrom(d), 13, func(s *Settings) { s.Levels.Diameter = "other" }, 32},
		{"overloadLevelThreshold samplingPeriod", on, nil, within(time.Second, full, sheds(d)), true, func(s *Settings) { s.Levels.SamplingPeriod = 10000 }, false},
		{"overloadLevelThreshold failureCodes", on, failing(404), func(r *rig) any { failing(404)(r); return r.lowest(m) }, 32,
			func(s *Settings) { s.Levels.FailureCodes = []int{404} }, 14},
		{"overloadLevelThresholdProfiles [].capacity.maxCpu", capacity(Capacity{CPU: 50}), use(41, 0), shedFrom(d), 13, capacity(Capacity{CPU: 60}), 32},
		{"overloadLevelThresholdProfiles [].capacity.maxPending", capacity(Capacity{Pending: 2000}), full, shedFrom(d), 13, capacity(Capacity{Pending: 3000}), 32},
		{"overloadLevelThresholdProfiles [].capacity.maxTps", capacity(Capacity{TPS: 2000}), nil, few, 24, capacity(Capacity{TPS: 4000}), 32},
		{levels + "level", func(s *Settings) {
			on(s)
			s.LevelProfiles[0].Levels = []LevelThreshold{{Level: "L1", Onset: Resources{Pending: 50}}}
		}, crowd(70, m), shedFrom(m), 24,
			func(s *Settings) {
				s.LevelProfiles[0].Levels = []LevelThreshold{{Level: "L1", Onset: Resources{Pending: 50}}, {Level: "L2", Onset: Resources{Pending: 60}}}
			}, 18},
		step("cpu", use(55, 0), shedFrom(m), Resources{CPU: 50}, Resources{CPU: 60}),
		step("pendingMessageCount", crowd(55, m), shedFrom(m), Resources{Pending: 50}, Resources{Pending: 60}),
		step("failureCount", nil, few, Resources{Failures: 100}, Resources{Failures: 200}),
		step("memory", use(0, 55), shedFrom(m), Resources{Memory: 50}, Resources{Memory: 60}),
		{levels + "abatement.cpu", abatement(Resources{CPU: 55}), falls(cpu), shedFrom(m), 32, abatement(Resources{CPU: 45}), 24},
		{levels + "abatement.pendingMessageCount", abatement(Resources{Pending: 55}), falls(pending), shedFrom(m), 32, abatement(Resources{Pending: 45}), 24},
		{levels + "abatement.failureCount", level(func(l *LevelThreshold) { l.Onset.Failures, l.Abatement.Failures = 120, 110 }), nil, lastFailures, 32,
			level(func(l *LevelThreshold) { l.Onset.Failures, l.Abatement.Failures = 120, 90 }), 24},
		{levels + "abatement.memory", abatement(Resources{Memory: 55}), falls(memory), shedFrom(m), 32, abatement(Resources{Memory: 45}), 24},
		{"ocPolicyMapping enabled", func(s *Settings) { s.Levels.Enabled = true }, full, shedFrom(m), 32, on, 24},
		{"ocPolicyMapping policyName", func(s *Settings) {
			policy("PriorityBased", Discard{Level: "L1", Value: 5})(s)
			s.PolicyMapping.Policy = defaultProfile
		}, full, shedFrom(m), 24, func(s *Settings) { s.PolicyMapping.Policy = "other" }, 5},
		{"ocDiscardPolicies [].scheme", policy("PriorityBased", Discard{Level: "L1", Value: 20}), full, arrivals(10, 30), "0 and 100", policy("PercentageBased", Discard{Level: "L1", Value: 20}), "0 and 40"},
		{"ocDiscardPolicies [].policies[].level", policy("PriorityBased", Discard{Level: "L1", Value: 20}), full, shedFrom(m), 20, policy("PriorityBased", Discard{Level: "L2", Value: 20}), 32},
		{"ocDiscardPolicies [].policies[].value", policy("PriorityBased", Discard{Level: "L1", Value: 20}), full, shedFrom(m), 20, policy("PriorityBased", Discard{Level: "L1", Value: 21}), 21},
		{"ocDiscardPolicies [].policies[].errorCodeProfile", func(s *Settings) { errorCode(s); policy("PriorityBased", Discard{Level: "L1", Value: 20})(s) }, full,
			answerTo(m, httpRequest("register", http.MethodPost, 31)), "503 NF_CONGESTION Congestion 1s", policy("PriorityBased", Discard{"L1", 20, "e"}), "429 C T 7s"},
		{"diameterSettings loadSheddingProfile", on, full, shedFrom(d), 13, func(s *Settings) { s.Diameter.LoadSheddingProfile = "" }, 32},
		{rules + "level", shed(RxShed{"L1", 9, 0, ""}), full, shedFrom(d), 9, shed(RxShed{"L2", 9, 0, ""}), 32},
		{rules + "discardPriority", shed(RxShed{"L1", 9, 0, ""}), full, shedFrom(d), 9, shed(RxShed{"L1", 10, 0, ""}), 10},
		{rules + "discardPercentage", shed(RxShed{"L1", 9, 30, ""}), full, shedOf(d, 20), 30, shed(RxShed{"L1", 9, 0, ""}), 100},
		{rules + "ansWithResultCode", shed(RxShed{"L1", 9, 0, ""}), full, answerTo(d, rxRequest("AAR", 15)), "3004 of 0", shed(RxShed{"L1", 9, 0, "DIAMETER_UNABLE_TO_COMPLY"}), "5012 of 0"},
	}
}

// arrivals sees how many of a hundred requests of each of two priorities are
// refused, when as many come of both.
func arrivals(first, second int) func(*rig) any {
	return func(r *rig) any {
		var refused [2]int
		for round := range 100 {
			for range 50 {
				for i, p := range []int{first, second} {
					if r.Gate(ManagementService).Admit(httpRequest("discover", http.MethodGet, p)) != nil && round >= 20 {
						refused[i]++
					}
				}
			}
			r.tick(1)
		}
		return fmt.Sprintf("%d and %d", (refused[0]+20)/40, (refused[1]+20)/40)
	}
}
