package embedded

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"bsfd/bsf"
	"bsfd/storage/memory"
)

// op is a change that waits for the committer.
type op struct {
	// plan decides what the change does, against the state of the moment. It
	// may run again when a change before it in the batch touches the same.
	plan     func(*memory.Tables) (memory.Change, error)
	deadline time.Time // when the consumer stops waiting; zero when it did not say
	change   memory.Change
	err      error
	settled  atomic.Bool
	done     chan error
}

// settle answers the caller, unless that has happened.
func (o *op) settle(err error) {
	if o.settled.CompareAndSwap(false, true) {
		o.done <- err
	}
}

// maxBatch bounds the changes of one batch.
const maxBatch = 1024

// do queues a change and waits until it is durable and visible.
func (s *Store) do(ctx context.Context, plan func(*memory.Tables) (memory.Change, error)) error {
	o := &op{plan: plan, done: make(chan error, 1)}
	if at, ok := ctx.Deadline(); ok {
		o.deadline = at
	}
	s.mu.Lock()
	if s.closed || s.hanging {
		s.mu.Unlock()
		return bsf.ErrUnavailable
	}
	s.queue = append(s.queue, o)
	first := len(s.queue) == 1
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return <-o.done
}

// commitLoop is the one goroutine that changes anything.
func (s *Store) commitLoop() {
	var batch, again []*op
	guards := make(map[uint64]struct{})
	for {
		if len(again) == 0 {
			select {
			case <-s.wake:
			case <-s.stop:
				if s.waiting() == 0 {
					return
				}
			}
		}
		batch = s.gather(append(batch[:0], again...))
		again = again[:0]
		if len(batch) > 0 {
			again = s.commit(batch, again, guards)
		}
	}
}

func (s *Store) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// gather takes what waits. Requests that are being decoded right now arrive
// within microseconds, so it lets them run as long as the queue grows: with 64
// callers that makes one sync of eighty instead of eighty of one.
func (s *Store) gather(batch []*op) []*op {
	const (
		yields = 64 // at most
		idle   = 4  // without growth
	)
	seen, still := s.waiting(), 0
	for i := 0; i < yields && still < idle && seen < maxBatch; i++ {
		runtime.Gosched()
		n := s.waiting()
		if still++; n > seen {
			seen, still = n, 0
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), max(0, maxBatch-len(batch)))
	batch = append(batch, s.queue[:n]...)
	rest := copy(s.queue, s.queue[n:])
	clear(s.queue[rest:])
	s.queue = s.queue[:rest]
	s.current = slices.Clone(batch)
	if rest > 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return batch
}

// commit plans, writes, publishes and answers one batch. Changes that depend
// on an earlier one of the batch are returned in again.
func (s *Store) commit(batch, again []*op, guards map[uint64]struct{}) []*op {
	start := time.Now()
	s.began.Store(start.UnixNano())
	defer s.began.Store(0)
	low := s.space.isLow(start)
	clear(guards)
	b := s.db.NewBatch()
	written := batch[:0:0]
	for _, o := range batch {
		switch {
		case !o.deadline.IsZero() && start.After(o.deadline):
			o.err = bsf.ErrExpired
		case !s.planned(o, guards):
			again = append(again, o)
			continue
		case o.err == nil && low && (o.change.PutBinding != nil || o.change.PutDocument != nil):
			o.err = bsf.ErrFull
		case o.err == nil:
			o.err = add(b, &o.change)
		}
		if o.err != nil || o.change.Empty() {
			o.settle(o.err)
			continue
		}
		for _, g := range o.change.Guards {
			guards[g] = struct{}{}
		}
		written = append(written, o)
	}
	if len(written) == 0 {
		_ = b.Close()
		return again
	}
	err := b.Commit(pebble.Sync)
	_ = b.Close()
	s.metrics.batch.Observe(float64(len(written)))
	s.metrics.latency.Observe(time.Since(start).Seconds())
	for _, o := range written {
		if err == nil {
			o.err = s.Apply(&o.change)
		} else {
			o.err = err
		}
		o.settle(o.err)
	}
	return again
}

// planned plans an op and reports whether it is independent of the batch.
func (s *Store) planned(o *op, guards map[uint64]struct{}) bool {
	o.change, o.err = o.plan(s.Tables)
	for _, g := range o.change.Guards {
		if _, taken := guards[g]; taken {
			return false
		}
	}
	return true
}

// add puts a change into a batch.
func add(b *pebble.Batch, c *memory.Change) error {
	var key [20]byte
	var value [1024]byte
	for _, id := range c.DropBindings {
		if c.PutBinding != nil && c.PutBinding.ID == id {
			continue
		}
		if err := b.Delete(bindingKey(key[:0], id), nil); err != nil {
			return err
		}
	}
	if r := c.PutBinding; r != nil {
		if err := b.Set(bindingKey(key[:0], r.ID), memory.AppendRecord(value[:0], r), nil); err != nil {
			return err
		}
	}
	for _, d := range c.DropDocuments {
		if err := b.Delete(documentKey(key[:0], d.Kind, d.ID), nil); err != nil {
			return err
		}
	}
	if d := c.PutDocument; d != nil {
		if err := b.Set(documentKey(key[:0], d.Kind, d.ID), memory.AppendDocument(nil, d), nil); err != nil {
			return err
		}
	}
	for _, e := range c.PutEvents {
		v, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := b.Set(eventKey(key[:0], e.ID), v, nil); err != nil {
			return err
		}
	}
	for _, id := range c.DropEvents {
		if err := b.Delete(eventKey(key[:0], id), nil); err != nil {
			return err
		}
	}
	return nil
}

// watch tells callers when a commit hangs, so that they answer within their
// deadline. What is being committed may still become durable: its outcome is
// unknown. What waits behind it is not begun.
func (s *Store) watch() {
	const looks = 10
	t := time.NewTicker(s.cfg.Timeout / looks)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			began := s.began.Load()
			s.noteHang(began != 0 && now.UnixNano()-began > int64(s.cfg.Timeout))
		}
	}
}

func (s *Store) noteHang(hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case hangs && !s.hanging:
		s.log.Error().Msg("disk does not answer")
		for _, o := range s.current {
			o.settle(bsf.ErrTimeout)
		}
		for _, o := range s.queue {
			o.settle(bsf.ErrUnavailable)
		}
		clear(s.queue)
		s.queue = s.queue[:0]
	case !hangs && s.hanging:
		s.log.Info().Msg("disk answers again")
	}
	s.hanging = hangs
}
