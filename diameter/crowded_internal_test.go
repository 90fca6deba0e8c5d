package diameter

import "testing"

// TestLookupsKeepRoomForWhatMatters proves that the queue of lookups has room
// for every priority while it is less than half full, and from then on for the
// higher ones the longer.
func TestLookupsKeepRoomForWhatMatters(t *testing.T) {
	g := &Gateway{lookups: make(chan *lookup, 100)}
	for n, highest := range map[int]int{0: 31, 50: 31, 51: 30, 75: 15, 90: 6, 99: 0, 100: 0} {
		for len(g.lookups) > 0 {
			<-g.lookups
		}
		for range n {
			g.lookups <- nil
		}
		for p := range 32 {
			if got := g.crowded(p); got != (p > highest) {
				t.Errorf("%d of 100 wait, priority %d: crowded %v", n, p, got)
			}
		}
	}
}
