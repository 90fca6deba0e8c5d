package overload

import (
	"math"
	"testing"
)

// TestLevelChangesAfterSamplesInARow proves the machine of congestion states:
// every transition, up and down, takes the configured number of samples in a
// row, and a sample of the present level begins anew.
func TestLevelChangesAfterSamplesInARow(t *testing.T) {
	const count = 3
	for from := Normal; from < levels; from++ {
		for to := Normal; to < levels; to++ {
			m := machine{level: from}
			for i := 1; i < count; i++ {
				if m.note(to, count) {
					t.Errorf("%s to %s: changed after %d samples", from, to, i)
				}
			}
			if changed := m.note(to, count); changed != (from != to) || m.level != to {
				t.Errorf("%s to %s: changed %v, is %s", from, to, changed, m.level)
			}
		}
	}
	m := machine{}
	for range 10 {
		m.note(Congested, 3)
		m.note(Congested, 3)
		m.note(Normal, 3)
	}
	if m.level != Normal {
		t.Errorf("%s though no three samples came in a row", m.level)
	}
}

// TestLevelDoesNotFlap proves that a load that swings around a threshold, or
// between two levels, leaves the state alone, and that one which swings between
// two levels above the present one still raises it.
func TestLevelDoesNotFlap(t *testing.T) {
	for name, x := range map[string]struct {
		start   Level
		samples []Level
		want    Level
		changes int
	}{
		"around a threshold":       {Normal, []Level{Danger, Normal}, Normal, 0},
		"saw-tooth over all":       {CongestionL1, []Level{Normal, Danger, CongestionL1, CongestionL2, Congested}, CongestionL1, 0},
		"between two above":        {Normal, []Level{CongestionL1, CongestionL2}, CongestionL1, 1},
		"between two below":        {Congested, []Level{Danger, Normal}, Danger, 1},
		"down to normal and again": {Danger, []Level{Normal, Normal, Normal, Normal, Danger}, Danger, 0},
	} {
		m, changes := machine{level: x.start}, 0
		for i := range 1000 {
			if m.note(x.samples[i%len(x.samples)], 5) {
				changes++
			}
		}
		if m.level != x.want || changes != x.changes {
			t.Errorf("%s: %s after %d changes", name, m.level, changes)
		}
	}
}

// TestOverloadLevelHasOnsetAndAbatement proves the levels of overload control:
// they rise at an onset, at once over several, and fall only below the
// abatement.
func TestOverloadLevelHasOnsetAndAbatement(t *testing.T) {
	onset, abatement := []int{0, 44, 49, 52}, []int{0, 41, 47, 50}
	var s stepped
	for i, x := range []struct {
		use  float64
		want int
	}{
		{43.9, 0}, {44, 1}, {42, 1}, {41, 1}, {40.9, 0},
		{60, 3}, {50, 3}, {49.9, 2}, {47, 2}, {46, 1}, {48.9, 1}, {49, 2}, {10, 0}, {52, 3}, {0, 0},
	} {
		if got := s.note(x.use, onset, abatement); got != x.want {
			t.Errorf("step %d: %v gives L%d, not L%d", i, x.use, got, x.want)
		}
	}
	// Without an abatement it ends below its onset.
	var bare stepped
	for use, want := range []int{0, 0, 2, 2, 0} {
		if got := bare.note([]float64{43, 10, 60, 49, 10}[use], []int{0, 44, 49}, []int{0, 0, 0}); got != want {
			t.Errorf("step %d: L%d, not L%d", use, got, want)
		}
	}
	// A resource that is not looked at has no level.
	if got := new(stepped).note(1e9, []int{0, 0, 0, 0}, []int{0, 0, 0, 0}); got != 0 {
		t.Errorf("L%d without an onset", got)
	}
}

// TestShareIsExactAndSpread proves that a share is met exactly over time, that
// what is refused is spread evenly, and that no regular pattern of senders is
// hit more often than others.
func TestShareIsExactAndSpread(t *testing.T) {
	const n = 100000
	for _, s := range []share{0, 1, 100, 1250, 3333, 5000, 6667, 9000, 9999, whole} {
		var p picker
		refused, longest, run := 0, 0, 0
		var bySender [4]int
		for i := range n {
			if p.pick(s) {
				refused++
				bySender[i%4]++
				run++
				longest = max(longest, run)
			} else {
				run = 0
			}
		}
		want := n * int(s) / whole
		if d := refused - want; d < -2 || d > 2 {
			t.Errorf("share %d: %d of %d refused, not %d", s, refused, n, want)
		}
		if s <= whole/2 && longest > 2 {
			t.Errorf("share %d: %d refused in a row", s, longest)
		}
		for i, k := range bySender {
			if d := math.Abs(float64(k) - float64(want)/4); d > 5*math.Sqrt(float64(want)/4)+1 {
				t.Errorf("share %d: sender %d was refused %d times of %d", s, i, k, want)
			}
		}
	}
}

// TestLowestPriorityIsReducedFirst proves the loss algorithm: SBI-042, the
// reduction is of all requests and takes the lowest priority first.
func TestLowestPriorityIsReducedFirst(t *testing.T) {
	var arrivals [priorities]float64
	arrivals[5], arrivals[15], arrivals[25] = 100, 200, 700
	for _, x := range []struct {
		reduction    float64
		p5, p15, p25 share
	}{
		{0, 0, 0, 0}, {.35, 0, 0, 5000}, {.7, 0, 0, whole}, {.8, 0, 5000, whole}, {.95, 5000, whole, whole}, {1, whole, whole, whole}, {2, whole, whole, whole},
	} {
		got := lowestFirst(&arrivals, x.reduction)
		if got[5] != x.p5 || got[15] != x.p15 || got[25] != x.p25 {
			t.Errorf("%v: %d %d %d", x.reduction, got[5], got[15], got[25])
		}
	}
}
