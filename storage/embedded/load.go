package embedded

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"

	"bsfd/storage/memory"
)

// loadBlock is how many records one goroutine takes at a time.
const loadBlock = 2048

// block is a run of records, back to back.
type block struct {
	data []byte
	ends []int
}

// load builds the lookup side from the store: one goroutine reads, all others
// decode and index.
func (s *Store) load(ctx context.Context, progress Progress) error {
	start := time.Now()
	loader := s.Load()
	if err := s.loadBindings(ctx, loader, progress); err != nil {
		return err
	}
	loader.Finish()
	err := s.scan(spaceDocument, func(_, v []byte) error { return loader.LoadDocument(v) })
	if err != nil {
		return err
	}
	err = s.scan(spaceEvent, func(_, v []byte) error {
		e, err := decodeEvent(v)
		if err == nil {
			loader.LoadEvent(e)
		}
		return err
	})
	n, _ := s.Count(ctx)
	s.log.Info().Int64("bindings", n).Dur("took", time.Since(start)).Msg("storage loaded")
	return err
}

func (s *Store) loadBindings(ctx context.Context, loader *memory.Loader, progress Progress) error {
	total, err := s.db.EstimateDiskUsage([]byte{spaceBinding}, []byte{spaceBinding + 1})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	blocks := make(chan *block, 2*runtime.GOMAXPROCS(0))
	for range max(1, runtime.GOMAXPROCS(0)) {
		group.Go(func() error {
			var scratch memory.LoadScratch
			for b := range blocks {
				at := 0
				for _, end := range b.ends {
					if err := loader.LoadRecord(b.data[at:end], &scratch); err != nil {
						return fmt.Errorf("stored binding: %w", err)
					}
					at = end
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(blocks)
		return s.readBindings(ctx, blocks, float64(total), progress)
	})
	return group.Wait()
}

// readBindings cuts the stored bindings into blocks.
func (s *Store) readBindings(ctx context.Context, blocks chan<- *block, total float64, progress Progress) error {
	var records int64
	var bytes float64
	b := &block{}
	flush := func() error {
		select {
		case blocks <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		records += int64(len(b.ends))
		progress(records, min(bytes/max(total, 1), 1))
		b = &block{data: make([]byte, 0, len(b.data)), ends: make([]int, 0, loadBlock)}
		return nil
	}
	err := s.scan(spaceBinding, func(_, v []byte) error {
		b.data = append(b.data, v...)
		b.ends = append(b.ends, len(b.data))
		bytes += float64(len(v))
		if len(b.ends) == loadBlock {
			return flush()
		}
		return nil
	})
	if err == nil && len(b.ends) > 0 {
		err = flush()
	}
	return err
}

// scan visits every key of a key space in order.
func (s *Store) scan(space byte, visit func(k, v []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = visit(it.Key(), v)
		}
		if err != nil {
			_ = it.Close()
			return err
		}
	}
	return it.Close()
}
