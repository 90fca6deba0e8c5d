package postgres

import (
	"context"
	"runtime"
	"sync"
)

// gatherer hands whatever waits to its workers in batches. A worker that finds
// the queue growing lets the callers run a little longer, so that batches fill
// under load and a lone request does not wait.
type gatherer[T any] struct {
	work  func(context.Context, []T)
	limit int

	mu    sync.Mutex
	queue []T
	wake  chan struct{}
}

func newGatherer[T any](limit int, work func(context.Context, []T)) *gatherer[T] {
	return &gatherer[T]{work: work, limit: limit, wake: make(chan struct{}, 1)}
}

func (g *gatherer[T]) put(v T) {
	g.mu.Lock()
	g.queue = append(g.queue, v)
	g.mu.Unlock()
	g.signal()
}

func (g *gatherer[T]) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *gatherer[T]) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// run is one worker. When ctx ends it finishes what waits and returns.
func (g *gatherer[T]) run(ctx context.Context) {
	for {
		select {
		case <-g.wake:
		case <-ctx.Done():
			if g.waiting() == 0 {
				return
			}
		}
		if batch := g.take(); len(batch) > 0 {
			g.work(context.WithoutCancel(ctx), batch)
		}
	}
}

func (g *gatherer[T]) take() []T {
	const yields = 8
	seen := g.waiting()
	for range yields {
		runtime.Gosched()
		n := g.waiting()
		if n == seen || n >= g.limit {
			break
		}
		seen = n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.queue), g.limit)
	batch := append([]T(nil), g.queue[:n]...)
	rest := copy(g.queue, g.queue[n:])
	clear(g.queue[rest:])
	g.queue = g.queue[:rest]
	if rest > 0 {
		g.signal()
	}
	return batch
}
