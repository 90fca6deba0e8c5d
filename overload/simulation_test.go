package overload

import (
	"math/rand/v2"
	"testing"
	"time"

	"bsfd/internal/admission"
)

// plant is a simulated server: requests wait in a socket, in order, until there
// is time for them; one that is served takes a unit of work, one that is
// refused a part of it. It is the worst case of a gateway: all priorities on
// one connection, and the refusals themselves cost much.
type plant struct {
	rig      *rig
	capacity float64 // units of work a second
	refusal  float64 // part of a unit that a refusal takes
	queue    []queued
	credit   float64
	due      float64
	empty    time.Time
	rng      *rand.Rand

	came, served [3]float64
	late         float64
}

type queued struct {
	class int
	at    time.Time
}

// simulated time passes in steps of this size between two ticks.
const simStep = 5 * time.Millisecond

// run offers a load for a while.
func (p *plant) run(offered float64, d time.Duration) {
	now := p.rig.now
	for range int(d / tickInterval) {
		used := 0.0
		for range int(tickInterval / simStep) {
			now = now.Add(simStep)
			for p.due += offered * simStep.Seconds() * (.8 + .4*p.rng.Float64()); p.due >= 1; p.due-- {
				class := [10]int{0, 1, 1, 1, 2, 2, 2, 2, 2, 2}[p.rng.IntN(10)]
				p.came[class]++
				p.queue = append(p.queue, queued{class, now})
			}
			used += p.work(now)
		}
		p.rig.backlog = now.Sub(p.empty)
		p.rig.load = 100 * used / (p.capacity * tickInterval.Seconds())
		p.rig.tick(1)
		now = p.rig.now
	}
}

// work does what there is time for.
func (p *plant) work(now time.Time) (used float64) {
	p.credit = min(p.credit, 0) + p.capacity*simStep.Seconds()
	for p.credit > 0 && len(p.queue) > 0 {
		q := p.queue[0]
		p.queue = p.queue[1:]
		r := rxRequest("AAR", admission.Absent)
		r.OCPriority = []int{2, 14, 24}[q.class]
		cost := 1.0
		switch {
		case p.rig.Gate(DiameterService).Admit(r) != nil:
			cost = p.refusal
		case now.Sub(q.at) > time.Second:
			p.late++
		default:
			p.served[q.class]++
		}
		p.credit -= cost
		used += cost
	}
	if len(p.queue) == 0 {
		p.empty = now
	}
	return used
}

// TestAdaptiveSheddingComesNearTheBest proves adaptive shedding where refusals
// cost a seventh of the work: as much as can be served is, but for a part, the
// high priority is served whole where that is possible at all, and what is
// shed ends soon after the load has.
func TestAdaptiveSheddingComesNearTheBest(t *testing.T) {
	for _, factor := range []float64{1, 1.5, 2, 3} {
		const capacity, refusal = 10000.0, .15
		r := newRig(t, func(s *Settings) { s.Adaptive.Diameter.Enabled = true })
		p := &plant{rig: r, capacity: capacity, refusal: refusal, empty: r.now, rng: rand.New(rand.NewPCG(1, 2))}
		p.run(capacity/2, 5*time.Second)
		p.run(factor*capacity, 10*time.Second)
		p.came, p.served, p.late = [3]float64{}, [3]float64{}, 0
		const seconds = 20
		p.run(factor*capacity, seconds*time.Second)
		got := (p.served[0] + p.served[1] + p.served[2]) / seconds / capacity
		best := min(1, (1-refusal*factor)/(1-refusal))
		t.Logf("%v times: served %.2f of the capacity, at best %.2f; high %.4f, medium %.4f, low %.4f, late %.0f", factor, got, best,
			p.served[0]/p.came[0], p.served[1]/p.came[1], p.served[2]/p.came[2], p.late)
		if got < .85*best {
			t.Errorf("%v times: served %.2f of the capacity, at best it were %.2f", factor, got, best)
		}
		if p.served[0] < .998*p.came[0] {
			t.Errorf("%v times: %.4f of the high priority served", factor, p.served[0]/p.came[0])
		}
		p.run(capacity/2, 5*time.Second)
		if n := r.parts[DiameterService].adaptive.reduction; n != 0 {
			t.Errorf("%v times: %v is still refused five seconds after the load has gone", factor, n)
		}
	}
}
