package overload

import (
	"net/http"
	"time"
)

func routeEffects() []effect {
	const m = ManagementService
	route := func(change func(*Route)) func(*Settings) {
		return func(s *Settings) {
			errorCode(s)
			s.RateLimiting.Enabled = true
			x := Route{ID: "r", Path: "pcfBindings", Method: "POST", Rate: 100}
			change(&x)
			s.Routes = []Route{x}
		}
	}
	asIs := route(func(*Route) {})
	// flow sees how many of 20 seconds' requests, 200 a second, are served in a
	// second.
	flow := func(message, method string, priority int) func(*rig) any {
		return func(r *rig) any {
			served := 0
			for range 20 {
				served = 0
				for range 20 {
					for range 10 {
						if r.Gate(m).Admit(httpRequest(message, method, priority)) == nil {
							served++
						}
					}
					r.tick(1)
				}
			}
			return (served + 5) / 10 * 10
		}
	}
	posts := flow("register", http.MethodPost, 20)
	// soon sees whether requests are refused within two seconds of a burst.
	soon := func(r *rig) any {
		r.pass(30 * time.Second)
		for range 40 {
			for range 20 {
				if r.Gate(m).Admit(httpRequest("register", http.MethodPost, 20)) != nil {
					return true
				}
			}
			r.tick(1)
		}
		return false
	}
	refusal := func(r *rig) any {
		posts(r)
		for {
			if got := answerTo(m, httpRequest("register", http.MethodPost, 20))(r); got != "served" {
				return got
			}
		}
	}
	protect := func(change func(*ProtectionState)) func(*Settings) {
		return func(s *Settings) {
			errorCode(s)
			x := ProtectionState{Name: "DoC", CPU: 50, Memory: 50, Pending: 50, DiscardPriority: 10}
			change(&x)
			s.Protection.Enabled, s.Protection.States = true, []ProtectionState{x}
		}
	}
	guarded := protect(func(*ProtectionState) {})
	on := func(s *Settings) { s.Protection.Enabled = true }
	full := crowd(1e5, m)
	states := "podProtection states[]."
	state := func(r *rig) any { return r.parts[m].protection.level }
	return []effect{
		{"routeLevelRateLimiting enabled", asIs, nil, posts, 100, func(s *Settings) { s.RateLimiting.Enabled = false }, 200},
		{"routeLevelRateLimiting samplingPeriod", asIs, nil, soon, true, func(s *Settings) { s.RateLimiting.SamplingPeriod = 10000 }, false},
		{"routesConfiguration [].path", asIs, nil, posts, 100, route(func(r *Route) { r.Path = "pcf-ue-bindings" }), 200},
		{"routesConfiguration [].path", route(func(r *Route) { r.Path = "pcf-mbs-bindings" }), nil, flow("mbs_register", http.MethodPost, 20), 100, asIs, 200},
		{"routesConfiguration [].path", route(func(r *Route) { r.Path = "pcf-ue-bindings" }), nil, flow("ue_register", http.MethodPost, 20), 100, asIs, 200},
		{"routesConfiguration [].path", route(func(r *Route) { r.Path = "subscriptions" }), nil, flow("subscribe", http.MethodPost, 20), 100, asIs, 200},
		{"routesConfiguration [].method", asIs, nil, posts, 100, route(func(r *Route) { r.Method = "DELETE" }), 200},
		{"routesConfiguration [].method", route(func(r *Route) { r.Method = "DELETE" }), nil, flow("deregister", http.MethodDelete, 20), 100, asIs, 200},
		{"routesConfiguration [].method", route(func(r *Route) { r.Method = "PATCH" }), nil, flow("update", http.MethodPatch, 20), 100, asIs, 200},
		{"routesConfiguration [].method", route(func(r *Route) { r.Method, r.Path = "PUT", "subscriptions" }), nil, flow("resubscribe", http.MethodPut, 20), 100, asIs, 200},
		{"routesConfiguration [].rate", asIs, nil, posts, 100, route(func(r *Route) { r.Rate = 150 }), 150},
		{"routesConfiguration [].sbiPriority", asIs, nil, posts, 100, route(func(r *Route) { r.PriorityBound = 20 }), 200},
		{"routesConfiguration [].errorCodeProfile", asIs, nil, refusal, "429 NF_CONGESTION_RISK Too many requests 1s", route(func(r *Route) { r.ErrorCodeProfile = "e" }), "429 C T 7s"},
		{"podProtection enabled", nobody, full, shedFrom(m), 32, on, 1},
		{"podProtection monitoringInterval", on, nil, within(time.Second, full, sheds(m)), true, func(s *Settings) { s.Protection.MonitoringInterval = 1000 }, false},
		{"podProtection stateChangeSampleCount", on, nil, within(time.Second, full, sheds(m)), true, func(s *Settings) { s.Protection.StateChangeSampleCount = 20 }, false},
		{states + "name", guarded, full, state, Danger, protect(func(p *ProtectionState) { p.Name = "Congested" }), Congested},
		{states + "cpu", guarded, use(60, 0), shedFrom(m), 10, protect(func(p *ProtectionState) { p.CPU = 70 }), 32},
		{states + "memory", guarded, use(0, 60), shedFrom(m), 10, protect(func(p *ProtectionState) { p.Memory = 70 }), 32},
		{states + "pendingMessage", guarded, crowd(60, m), shedFrom(m), 10, protect(func(p *ProtectionState) { p.Pending = 70 }), 32},
		{states + "discardPriority", guarded, full, shedFrom(m), 10, protect(func(p *ProtectionState) { p.DiscardPriority = 11 }), 11},
		{states + "errorCodeProfile", guarded, full, answerTo(m, httpRequest("register", http.MethodPost, 31)), "503 NF_CONGESTION Congestion 1s",
			protect(func(p *ProtectionState) { p.ErrorCodeProfile = "e" }), "429 C T 7s"},
	}
}

func adaptiveEffects() []effect {
	return both(func(svc Service, name string) []effect {
		// refuses sees whether some of many requests are refused within a time,
		// while the load stays as it is.
		refuses := func(load func(*rig), limit time.Duration) func(*rig) any {
			return func(r *rig) any {
				r.load, r.pendings, r.backlog = 0, [services]int{}, 0
				offer := func(d time.Duration) (refused bool) {
					for range int(d / tickInterval) {
						for range 20 {
							q := httpRequest("register", http.MethodPost, 20)
							q.OCPriority = 20
							refused = r.Gate(svc).Admit(q) != nil || refused
						}
						r.tick(1)
					}
					return refused
				}
				for range 20 {
					// Not a multiple of an interval, so that none is over just then.
					if !offer(63 * time.Second) {
						break
					}
				}
				load(r)
				return offer(limit)
			}
		}
		pending, busy := crowd(100, svc), use(60, 0)
		stuck := func(r *rig) { r.backlog = 60 * time.Millisecond }
		adaptive := func(change func(*AdaptiveService)) func(*Settings) {
			return func(s *Settings) {
				a := AdaptiveService{Enabled: true, Interval: 100}
				change(&a)
				*s.adaptiveOf(svc) = a
			}
		}
		setting := func(member string) string { return "adaptiveShedding " + name + "." + member }
		return []effect{
			{setting("enabled"), adaptive(func(a *AdaptiveService) { a.Enabled, a.Pending = false, 50 }), nil, refuses(pending, time.Second), false, adaptive(func(a *AdaptiveService) { a.Pending = 50 }), true},
			{setting("cpu"), adaptive(func(a *AdaptiveService) { a.CPU = 50 }), nil, refuses(busy, time.Second), true, adaptive(func(a *AdaptiveService) { a.CPU = 70 }), false},
			{setting("pending"), adaptive(func(a *AdaptiveService) { a.Pending = 50 }), nil, refuses(pending, time.Second), true, adaptive(func(a *AdaptiveService) { a.Pending = 150 }), false},
			{setting("backlog"), adaptive(func(a *AdaptiveService) { a.Backlog = 50 }), nil, refuses(stuck, time.Second), true, adaptive(func(a *AdaptiveService) { a.Backlog = 70 }), false},
			{setting("interval"), adaptive(func(a *AdaptiveService) { a.Pending = 50 }), nil, refuses(pending, time.Second), true, adaptive(func(a *AdaptiveService) { a.Pending, a.Interval = 50, 10000 }), false},
		}
	})
}
