// Package heap keeps the garbage collector from trading memory for time in the
// wrong place: a small heap may grow several times over between two
// collections, a large one only by a fixed amount.
package heap

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// minGrowth is what even the smallest heap may grow by.
	minGrowth = 128 << 20
	// maxPercent bounds the growth of a heap beyond that. More than 400 gains
	// little.
	maxPercent = 400
	minPercent = 10
	interval   = time.Second
)

// Tune adjusts GOGC to the live heap until ctx ends: the heap grows by
// headroom bytes between two collections, at most to five times its size unless
// it is small.
func Tune(ctx context.Context, headroom int) error {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	t := time.NewTicker(interval)
	defer t.Stop()
	current := maxPercent
	debug.SetGCPercent(current)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		metrics.Read(sample)
		if want := percent(sample[0].Value.Uint64(), headroom); want != current {
			current = want
			debug.SetGCPercent(current)
		}
	}
}

func percent(live uint64, headroom int) int {
	live = max(live, 1<<20)
	growth := max(min(uint64(headroom), live*maxPercent/100), minGrowth)
	return max(int(growth*100/live), minPercent)
}
