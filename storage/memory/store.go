package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bsfd/bsf"
)

// Store is the engine that keeps nothing when the process ends.
type Store struct {
	*Tables
	mu sync.Mutex // one writer
}

// New returns an empty store.
func New() *Store { return &Store{Tables: NewTables()} }

// apply finishes a planned change under the writer's lock.
func (s *Store) apply(c *Change) error {
	if err := s.Apply(c); err != nil {
		return fmt.Errorf("%w: %v", bsf.ErrFull, err)
	}
	return nil
}

// Create implements bsf.BindingStore.
func (s *Store) Create(_ context.Context, r *bsf.Record, rules bsf.Rules) (bsf.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, out := s.PlanCreate(r, rules)
	return out, s.apply(&c)
}

// Update implements bsf.BindingStore.
func (s *Store) Update(_ context.Context, id bsf.ID, rules bsf.Rules, change func(bsf.Record) (*bsf.Record, error)) (bsf.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, out, err := s.PlanUpdate(id, rules, change)
	if err != nil {
		return bsf.Outcome{}, err
	}
	return out, s.apply(&c)
}

// Delete implements bsf.BindingStore.
func (s *Store) Delete(_ context.Context, id bsf.ID) (bsf.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, out, err := s.PlanDelete(id)
	if err != nil {
		return bsf.Outcome{}, err
	}
	return out, s.apply(&c)
}

// Touch implements bsf.BindingPager.
func (s *Store) Touch(_ context.Context, id bsf.ID, audited time.Time, attempts uint8) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.PlanTouch(id, audited, attempts)
	if err != nil {
		return err
	}
	return s.apply(&c)
}

// CreateDocument implements bsf.DocumentStore.
func (s *Store) CreateDocument(_ context.Context, d *bsf.Document, replace []bsf.ID, ev *bsf.Event) (*bsf.Document, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, holder := s.PlanCreateDocument(d, replace, ev)
	return holder, len(c.PutEvents) > 0, s.apply(&c)
}

// UpdateDocument implements bsf.DocumentStore.
func (s *Store) UpdateDocument(_ context.Context, kind bsf.Kind, id bsf.ID, change func(bsf.Document) (*bsf.Document, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.PlanUpdateDocument(kind, id, change)
	if err != nil {
		return err
	}
	return s.apply(&c)
}

// DeleteDocument implements bsf.DocumentStore.
func (s *Store) DeleteDocument(_ context.Context, kind bsf.Kind, id bsf.ID, ev func(bsf.Document) *bsf.Event) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.PlanDeleteDocument(kind, id, ev)
	if err != nil {
		return false, err
	}
	return len(c.PutEvents) > 0, s.apply(&c)
}

// Finish implements bsf.EventQueue.
func (s *Store) Finish(_ context.Context, id bsf.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(&Change{DropEvents: []bsf.ID{id}})
}

// Find implements bsf.BindingStore.
func (t *Tables) Find(_ context.Context, key bsf.Key) ([]*bsf.Record, error) {
	return t.bindings.find(key), nil
}

// Stale implements bsf.BindingPager.
func (t *Tables) Stale(_ context.Context, before time.Time, after bsf.Cursor, limit int) ([]*bsf.Record, error) {
	end := before.UnixMicro()
	return t.bindings.page(after, limit,
		func(head []byte) bool { return audited(head) >= end },
		func([]byte) bool { return true }), nil
}

// HeldBy implements bsf.BindingPager.
func (t *Tables) HeldBy(_ context.Context, holder bsf.Holder, after bsf.Cursor, limit int) ([]*bsf.Record, error) {
	profiles := t.bindings.profiles.held(holder)
	if len(profiles) == 0 {
		return nil, nil
	}
	return t.bindings.page(after, limit,
		func([]byte) bool { return false },
		func(head []byte) bool { return profiles[profileOf(head)] }), nil
}

// Count implements bsf.BindingPager.
func (t *Tables) Count(context.Context) (int64, error) { return t.bindings.count.Load(), nil }

// FindDocuments implements bsf.DocumentStore.
func (t *Tables) FindDocuments(_ context.Context, kind bsf.Kind, key string) ([]bsf.Document, error) {
	found := t.documents.find(kind, key)
	docs := make([]bsf.Document, len(found))
	for i, d := range found {
		docs[i] = *d
	}
	return docs, nil
}

// Claim implements bsf.EventQueue.
func (t *Tables) Claim(_ context.Context, limit int) ([]*bsf.Event, error) {
	return t.events.claim(limit), nil
}

// Ready implements the readiness probe: memory always answers.
func (s *Store) Ready(context.Context) error { return nil }

// Close implements io.Closer; there is nothing to keep.
func (s *Store) Close() error { return nil }
