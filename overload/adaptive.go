package overload

import "time"

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
	limit     float64 // requests a second, 0 for no limit
	reduction float64 // part of the arrivals that is too much, 0 to 1
	stress    float64 // of the resource that is used most, 1 is what is aimed at
}

// How the limit follows the stress.
const (
	// steepest is the largest part of the limit that one interval takes away.
	steepest = .3
	// slack is the stress below which more is let in.
	slack = .95
	// growth is the part of the limit that an interval without stress adds.
	growth = .04
)

func (s *Settings) adaptiveOf(svc Service) *AdaptiveService {
	if svc == DiameterService {
		return &s.Adaptive.Diameter
	}
	return &s.Adaptive.Management
}

// step adjusts the limit once an interval.
func (a *adaptive) step(g *Gate, cfg *AdaptiveService, t *tally, now time.Time, u Usage, pending int) {
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
	a.stress = stress(cfg, cpu, pending, u.Delay)
	served := rate * (1 - a.reduction)
	switch {
	case a.stress > 1:
		if a.limit == 0 || a.limit > served {
			a.limit = served
		}
		a.limit *= 1 - steepest*min(a.stress-1, 1)
	case a.limit > 0 && a.stress < slack:
		a.limit += growth*a.limit + 1
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

// stress is how much of what is aimed at is used of the scarcest resource.
func stress(cfg *AdaptiveService, cpu float64, pending int, delay time.Duration) (worst float64) {
	if cfg.CPU > 0 {
		aim := float64(cfg.CPU)
		worst = cpu / aim
		if cpu > aim && aim < 100 {
			// What is left above the aim is all there is to tell from.
			worst = 1 + (cpu-aim)/(100-aim)
		}
	}
	if cfg.Pending > 0 {
		worst = max(worst, float64(pending)/float64(cfg.Pending))
	}
	if cfg.Delay > 0 {
		worst = max(worst, float64(delay.Microseconds())/float64(cfg.Delay))
	}
	return worst
}
