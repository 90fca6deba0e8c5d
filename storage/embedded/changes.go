package embedded

import (
	"context"
	"time"

	"bsfd/bsf"
	"bsfd/storage/memory"
)

// Create implements bsf.BindingStore.
func (s *Store) Create(ctx context.Context, r *bsf.Record, rules bsf.Rules) (bsf.Outcome, error) {
	return result(ctx, s, func(t *memory.Tables, out *bsf.Outcome) (c memory.Change, err error) {
		c, *out = t.PlanCreate(r, rules)
		return c, nil
	})
}

// result runs a change that has a result beside its error. The result is the
// committer's until the change is done: a caller that stops waiting leaves it.
func result[T any](ctx context.Context, s *Store, plan func(*memory.Tables, *T) (memory.Change, error)) (T, error) {
	out := new(T)
	err := s.do(ctx, func(t *memory.Tables) (memory.Change, error) { return plan(t, out) })
	if err != nil {
		var none T
		return none, err
	}
	return *out, nil
}

// Update implements bsf.BindingStore.
func (s *Store) Update(ctx context.Context, id bsf.ID, rules bsf.Rules, change func(bsf.Record) (*bsf.Record, error)) (bsf.Outcome, error) {
	return result(ctx, s, func(t *memory.Tables, out *bsf.Outcome) (c memory.Change, err error) {
		c, *out, err = t.PlanUpdate(id, rules, change)
		return c, err
	})
}

// Delete implements bsf.BindingStore.
func (s *Store) Delete(ctx context.Context, id bsf.ID) (bsf.Outcome, error) {
	return result(ctx, s, func(t *memory.Tables, out *bsf.Outcome) (c memory.Change, err error) {
		c, *out, err = t.PlanDelete(id)
		return c, err
	})
}

// Touch implements bsf.BindingPager.
func (s *Store) Touch(ctx context.Context, id bsf.ID, audited time.Time, attempts uint8) error {
	return s.do(ctx, func(t *memory.Tables) (memory.Change, error) { return t.PlanTouch(id, audited, attempts) })
}

// created is the result of CreateDocument.
type created struct {
	holder *bsf.Document
	queued bool
}

// CreateDocument implements bsf.DocumentStore.
func (s *Store) CreateDocument(ctx context.Context, d *bsf.Document, replace []bsf.ID, ev *bsf.Event) (*bsf.Document, bool, error) {
	out, err := result(ctx, s, func(t *memory.Tables, out *created) (c memory.Change, err error) {
		c, out.holder = t.PlanCreateDocument(d, replace, ev)
		out.queued = len(c.PutEvents) > 0
		return c, nil
	})
	return out.holder, out.queued, err
}

// UpdateDocument implements bsf.DocumentStore.
func (s *Store) UpdateDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, change func(bsf.Document) (*bsf.Document, error)) error {
	return s.do(ctx, func(t *memory.Tables) (memory.Change, error) { return t.PlanUpdateDocument(kind, id, change) })
}

// DeleteDocument implements bsf.DocumentStore.
func (s *Store) DeleteDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, ev func(bsf.Document) *bsf.Event) (bool, error) {
	return result(ctx, s, func(t *memory.Tables, queued *bool) (memory.Change, error) {
		c, err := t.PlanDeleteDocument(kind, id, ev)
		*queued = len(c.PutEvents) > 0
		return c, err
	})
}

// Finish implements bsf.EventQueue.
func (s *Store) Finish(ctx context.Context, id bsf.ID) error {
	return s.do(ctx, func(*memory.Tables) (memory.Change, error) {
		return memory.Change{DropEvents: []bsf.ID{id}}, nil
	})
}
