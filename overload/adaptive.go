package overload

import (
	"slices"
	"time"
)

// tally is how many requests came lately, by priority.
type tally struct {
	seen   [priorities]uint64
	recent [priorities]float64 // requests a second, smoothed
}

// smoothing is the weight of the newest interval.
const smoothing = .5

// take notes the arrivals since the last call and returns how many a second
// came in all.
func (t *tally) take(g *Gate, took time.Duration) (rate float64) {
	for p := range t.seen {
		n := g.arrived[p].Load()
		now := float64(n-t.seen[p]) / took.Seconds()
		t.seen[p] = n
		t.recent[p] += smoothing * (now - t.recent[p])
		rate += t.recent[p]
	}
	return rate
}

// adaptive finds out how much can be served: it lets less in while a resource
// is used more than is aimed at, in proportion, and carefully more otherwise.
type adaptive struct {
	at        time.Time
	cpu       cpuMeter
	limit     float64    // requests a second, 0 for no limit
	reduction float64    // part of the arrivals that is too much, 0 to 1
	stress    [3]float64 // of cpu, queue and backlog; 1 is what is aimed at
	hold      int        // intervals until the limit may be cut again
	calm      int        // intervals without stress in a row
	best      float64    // requests a second that were served when that was fine, fading
}

// How the limit follows the stress.
const (
	// steepest is the largest part of the limit that one interval takes away.
	steepest = .1
	// patience is how many intervals a cut has to show its effect.
	patience = 2
	// slack is the stress below which more is let in.
	slack = .95
	// growth is the part of the limit that the first interval without stress
	// adds; the second one adds twice as much, and so on.
	growth = .01
	// least is the part of what was served before that always is: a stress that
	// has other reasons does not go away when nothing is served.
	least = .1
	// forgetting is the part of the best rate that an interval takes away.
	forgetting = .001
)

func (s *Settings) adaptiveOf(svc Service) *AdaptiveService {
	if svc == DiameterService {
		return &s.Adaptive.Diameter
	}
	return &s.Adaptive.Management
}

// step adjusts the limit once an interval.
func (a *adaptive) step(g *Gate, cfg *AdaptiveService, t *tally, now time.Time, u Usage, pending int, backlog time.Duration) {
	last := a.at
	if !due(&a.at, now, milliseconds(cfg.Interval)) || last.IsZero() {
		return
	}
	rate := t.take(g, now.Sub(last))
	cpu := a.cpu.percent(now, u)
	if !cfg.Enabled {
		a.limit, a.reduction = 0, 0
		return
	}
	a.stress = stress(cfg, cpu, pending, backlog)
	worst := slices.Max(a.stress[:])
	served := rate * (1 - a.reduction)
	switch {
	case worst > 1 && a.hold > 0:
		// What was let in before is still being worked on.
		a.hold--
	case worst > 1:
		a.hold, a.calm = patience, 0
		if a.limit == 0 || a.limit > served {
			a.limit = served
		}
		a.limit = max(a.limit*(1-steepest*min(worst-1, 1)), least*a.best)
	case a.limit > 0 && worst < slack:
		a.hold = 0
		a.calm++
		a.limit += min(growth*float64(a.calm), steepest)*a.limit + 1
	}
	a.best *= 1 - forgetting
	if worst <= 1 {
		a.best = max(a.best, served)
	}
	a.reduction = 0
	switch {
	case a.limit == 0 || rate == 0:
	case a.limit >= 2*rate:
		// Nothing has been too much for some time.
		a.limit = 0
	case a.limit < rate:
		a.reduction = 1 - a.limit/rate
	}
}

// aimNames are the labels of the resources of adaptive shedding.
var aimNames = [3]string{"cpu", "queue", "backlog"}

// stress is how much of what is aimed at is used of each resource.
func stress(cfg *AdaptiveService, cpu float64, pending int, backlog time.Duration) (s [3]float64) {
	if cfg.CPU > 0 {
		aim := float64(cfg.CPU)
		s[0] = cpu / aim
		if cpu > aim && aim < 100 {
			// What is left above the aim is all there is to tell from.
			s[0] = 1 + (cpu-aim)/(100-aim)
		}
	}
	if cfg.Pending > 0 {
		s[1] = float64(pending) / float64(cfg.Pending)
	}
	if cfg.Backlog > 0 {
		s[2] = float64(backlog.Milliseconds()) / float64(cfg.Backlog)
	}
	return s
}
