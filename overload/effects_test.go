package overload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bsfd/internal/admission"
	"bsfd/internal/settings"
)

// effect is what a setting does: what is seen under a load before it is changed
// through the configuration API, and after.
type effect struct {
	// setting is the resource and the member. "*" stands for both services.
	setting string
	// given is set before and after.
	given func(*Settings)
	load  func(*rig)
	see   func(*rig) any
	// before is what is seen with given, after what is seen once change has
	// been made, too.
	before any
	change func(*Settings)
	after  any
}

// settled is a time after which every state follows a load.
const settled = 12 * time.Second

// TestEverySettingHasAnEffect proves that each setting, changed through the
// configuration API, changes what is seen of the running module, and that none
// is forgotten here.
func TestEverySettingHasAnEffect(t *testing.T) {
	proven := make(map[string]bool)
	for _, e := range slices.Concat(congestionEffects(), levelEffects(), priorityEffects(), answerEffects(), routeEffects(), adaptiveEffects(), nodeEffects(), peerEffects()) {
		proven[e.setting] = true
		t.Run(e.setting, func(t *testing.T) {
			r := newRig(t, func(s *Settings) {
				if e.given != nil {
					e.given(s)
				}
			})
			look := func() any {
				if e.load != nil {
					e.load(r)
				}
				r.pass(settled)
				return e.see(r)
			}
			if got := look(); got != e.before {
				t.Errorf("before the change: %v, not %v", got, e.before)
			}
			r.change(t, e.change)
			if got := look(); got != e.after {
				t.Errorf("after the change: %v, not %v", got, e.after)
			}
		})
	}
	for _, row := range settings.Describe(Default()) {
		if name := row.Section + " " + row.Member; !proven[name] && selectable(row) {
			t.Errorf("%s: nothing shows its effect", name)
		}
	}
}

// selectable reports whether a setting can have two values with different
// meanings: lists of objects have their members, names are referred to, and one
// allowed value is no choice.
func selectable(row settings.Row) bool {
	if row.Member == "[]" || row.Range == "name" {
		return false
	}
	for _, other := range settings.Describe(Default()) {
		if other.Section == row.Section && strings.HasPrefix(other.Member, row.Member+"[]") {
			return false
		}
	}
	return row.Range == "" || strings.ContainsAny(row.Range, "|.")
}

// both makes the effects on the two services.
func both(make func(svc Service, name string) []effect) []effect {
	return append(make(ManagementService, "management"), make(DiameterService, "diameter")...)
}

// crowd lets requests of a service pile up.
func crowd(n int, list ...Service) func(*rig) {
	return func(r *rig) {
		for _, s := range list {
			r.pendings[s] = n
		}
	}
}

// use sets what is used of CPU and memory.
func use(cpu, memory float64) func(*rig) {
	return func(r *rig) { r.load, r.memory = cpu, memory }
}

// shedFrom sees the highest priority that is refused.
func shedFrom(svc Service) func(*rig) any {
	return func(r *rig) any { return r.lowest(svc) }
}

// shedOf sees how many of a hundred requests of a priority are refused.
func shedOf(svc Service, priority int) func(*rig) any {
	return func(r *rig) any {
		refused := 0
		for range 1000 {
			q := httpRequest("register", "POST", priority)
			q.OCPriority = priority
			if r.Gate(svc).Admit(q) != nil {
				refused++
			}
		}
		return (refused + 5) / 10
	}
}

// answerTo sees the answer to a request, or that it is served.
func answerTo(svc Service, q *admission.Request) func(*rig) any {
	return func(r *rig) any {
		f := r.Gate(svc).Admit(q)
		switch {
		case f == nil:
			return "served"
		case svc == DiameterService:
			return fmt.Sprintf("%d of %d", f.Result, f.Vendor)
		}
		return fmt.Sprintf("%d %s %s %s", f.Status, f.Cause, f.Title, f.RetryAfter)
	}
}

// after sees how long it takes until something is so, from when the load
// comes after a time without any.
func after(load func(*rig), so func(*rig) bool) func(*rig) any {
	return func(r *rig) any {
		r.load, r.memory, r.pendings = 0, 0, [services]int{}
		r.pass(time.Minute)
		began := r.now
		for load(r); !so(r) && r.now.Sub(began) < time.Minute; {
			r.tick(1)
		}
		return r.now.Sub(began)
	}
}

// within sees whether that takes no longer than a time.
func within(limit time.Duration, load func(*rig), so func(*rig) bool) func(*rig) any {
	took := after(load, so)
	return func(r *rig) any { return took(r).(time.Duration) <= limit }
}

// sheds reports whether anything is refused.
func sheds(svc Service) func(*rig) bool {
	return func(r *rig) bool { return r.lowest(svc) < priorities }
}

// nobody changes nothing.
func nobody(*Settings) {}
