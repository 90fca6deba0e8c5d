package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"bsfd/bsf"
)

// Documents is where changes are kept. bsf.DocumentStore is one.
type Documents interface {
	CreateDocument(ctx context.Context, d *bsf.Document, replace []bsf.ID, ev *bsf.Event) (holder *bsf.Document, queued bool, err error)
	UpdateDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, change func(bsf.Document) (*bsf.Document, error)) error
	DeleteDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, ev func(bsf.Document) *bsf.Event) (queued bool, err error)
	FindDocuments(ctx context.Context, kind bsf.Kind, key string) ([]bsf.Document, error)
}

// Change makes a new value of a resource from the old one; both are JSON.
type Change func(old json.RawMessage) (json.RawMessage, error)

// Who makes a change.
type Who struct {
	Name string `json:"name"`
	// Remote is the address that it came from.
	Remote string `json:"remote"`
}

// Entry is one change in the audit trail.
type Entry struct {
	Time     time.Time       `json:"time"`
	Who      Who             `json:"who"`
	Resource string          `json:"resource"`
	Before   json.RawMessage `json:"before"`
	After    json.RawMessage `json:"after"`
}

// Store holds the settings: the defaults with the changes that are in storage.
type Store[T any] struct {
	name     string
	docs     Documents
	defaults T
	apply    func(T) error
	log      zerolog.Logger

	mu      sync.Mutex
	current T
	changed []byte // as it is in storage
}

// keptEntries is how many entries of the audit trail are kept.
const keptEntries = 1000

// Open reads the changes under the name from storage and applies them. apply
// checks settings and takes them over, or returns an error and does nothing.
// Changes in storage that are no longer valid are left out, with a line in the
// log.
func Open[T any](ctx context.Context, name string, docs Documents, defaults T, apply func(T) error, log zerolog.Logger) (*Store[T], error) {
	s := &Store[T]{name: name, docs: docs, defaults: defaults, apply: apply, log: log.With().Str("component", "settings").Logger(), current: defaults}
	if err := apply(defaults); err != nil {
		return nil, err
	}
	return s, s.refresh(ctx)
}

func (s *Store[T]) key() string      { return "settings:" + s.name }
func (s *Store[T]) trailKey() string { return "settingsTrail:" + s.name }

// pollInterval is how often storage is asked for changes of other instances.
const pollInterval = time.Second

// Run takes up what other instances change, until ctx ends.
func (s *Store[T]) Run(ctx context.Context) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := s.refresh(ctx); err != nil {
				s.log.Debug().Err(err).Msg("settings cannot be read")
			}
		}
	}
}

// refresh takes up what is in storage. It reads under the lock: what was read
// before a change must not take its place.
func (s *Store[T]) refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs, err := s.docs.FindDocuments(ctx, bsf.KindSetting, s.key())
	if err != nil || len(docs) == 0 {
		return err
	}
	body := docs[0].Body
	if bytes.Equal(body, s.changed) {
		return nil
	}
	v, err := s.merged(body)
	if err == nil {
		err = s.apply(v)
	}
	s.changed = body
	if err != nil {
		s.log.Error().Err(err).Msg("stored settings cannot be used; the ones before stay")
		return nil
	}
	s.current = v
	s.log.Info().Msg("settings taken over from storage")
	return nil
}

// merged are the defaults with changes, a JSON object of values by path.
func (s *Store[T]) merged(body []byte) (v T, err error) {
	v = s.defaults
	var values map[string]json.RawMessage
	if err := json.Unmarshal(body, &values); err != nil {
		return v, err
	}
	for path, raw := range values {
		f, ok := field(reflect.ValueOf(&v).Elem(), path)
		if !ok {
			s.log.Warn().Str("resource", path).Msg("a stored setting that this version does not have")
			continue
		}
		full, err := over(f, raw)
		if err != nil {
			return v, err
		}
		// A member that another version has stored is no reason to lose the rest.
		f.SetZero()
		if err := json.Unmarshal(full, f.Addr().Interface()); err != nil {
			return v, err
		}
	}
	return v, nil
}

// over is a value with the members that it does not give from what a field
// has. Lists are replaced whole.
func over(f reflect.Value, raw json.RawMessage) (json.RawMessage, error) {
	if f.Kind() == reflect.Slice {
		return raw, nil
	}
	old, err := json.Marshal(f.Interface())
	if err != nil {
		return nil, err
	}
	var to, by any
	if err := json.Unmarshal(old, &to); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &by); err != nil {
		return nil, err
	}
	return json.Marshal(merge(to, by))
}

// set decodes a value into a field. What it does not give stays as the field
// has it; a list takes nothing over. The new value shares no memory with the
// old one, which others may be reading.
func set(f reflect.Value, raw json.RawMessage) error {
	if f.Kind() == reflect.Slice {
		return setList(f, raw)
	}
	full, err := over(f, raw)
	if err != nil {
		return err
	}
	fresh := reflect.New(f.Type())
	if err := decode(full, fresh.Interface()); err != nil {
		return err
	}
	f.Set(fresh.Elem())
	return nil
}

// setList decodes a list whose elements have defaults of their own.
func setList(f reflect.Value, raw json.RawMessage) error {
	var elements []json.RawMessage
	if err := decode(raw, &elements); err != nil {
		return err
	}
	list := reflect.MakeSlice(f.Type(), len(elements), len(elements))
	for i, e := range elements {
		preset(list.Index(i))
		if err := decode(e, list.Index(i).Addr().Interface()); err != nil {
			var invalid *Invalid
			if errors.As(err, &invalid) {
				invalid.Param = fmt.Sprintf("[%d].%s", i, invalid.Param)
			}
			return err
		}
	}
	f.Set(list)
	return nil
}

// Resources lists the resources.
func (s *Store[T]) Resources() []Resource { return resources(reflect.TypeFor[T]()) }

// Get is the value of a resource as JSON, or ErrNotFound.
func (s *Store[T]) Get(path string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return value(&s.current, path)
}

func value(v any, path string) (json.RawMessage, error) {
	f, ok := field(reflect.ValueOf(v).Elem(), path)
	if !ok {
		return nil, unknownResource(path)
	}
	if f.Kind() == reflect.Slice && f.IsNil() {
		return json.RawMessage("[]"), nil
	}
	return json.Marshal(f.Interface())
}

// attempts bounds how often a change is tried while others change settings.
const attempts = 5

// Change changes a resource, stores it with an entry in the audit trail, and
// applies it. It returns the new value. Errors: *Invalid, ErrNotFound,
// ErrExists, ErrConflict and those of the store; nothing has changed then.
func (s *Store[T]) Change(ctx context.Context, who Who, path string, change Change) (json.RawMessage, error) {
	for range attempts {
		v, err := s.tryChange(ctx, who, path, change)
		if !errors.Is(err, ErrConflict) {
			return v, err
		}
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
	}
	return nil, ErrConflict
}

func (s *Store[T]) tryChange(ctx context.Context, who Who, path string, change Change) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, err := value(&s.current, path)
	if err != nil {
		return nil, err
	}
	raw, err := change(before)
	if err != nil {
		return nil, err
	}
	next := s.current
	f, _ := field(reflect.ValueOf(&next).Elem(), path)
	def, _ := field(reflect.ValueOf(&s.defaults).Elem(), path)
	f.Set(def)
	if err := set(f, raw); err != nil {
		return nil, err
	}
	after, err := value(&next, path)
	if err != nil {
		return nil, err
	}
	// Before anything is stored it must be clear that it can be applied.
	if err := s.apply(next); err != nil {
		return nil, err
	}
	if err := s.store(ctx, path, after, Entry{time.Now().UTC(), who, path, before, after}); err != nil {
		return nil, errors.Join(err, s.apply(s.current))
	}
	s.current = next
	s.log.Warn().Str("who", who.Name).Str("remote", who.Remote).Str("resource", path).
		RawJSON("before", before).RawJSON("after", after).Msg("settings changed")
	return after, nil
}

// store writes the entry and then the change, so that no change is without an
// entry.
func (s *Store[T]) store(ctx context.Context, path string, v json.RawMessage, e Entry) error {
	values := make(map[string]json.RawMessage)
	if s.changed != nil {
		if err := json.Unmarshal(s.changed, &values); err != nil {
			return err
		}
	}
	values[path] = v
	body, err := json.Marshal(values)
	if err != nil {
		return err
	}
	trail, err := s.note(ctx, e)
	if err != nil {
		return err
	}
	if err := s.replace(ctx, body); err != nil {
		_, gone := s.docs.DeleteDocument(ctx, bsf.KindHistory, trail, func(bsf.Document) *bsf.Event { return nil })
		return errors.Join(err, gone)
	}
	s.changed = body
	return nil
}

// replace writes the document, if it is still what was last read.
func (s *Store[T]) replace(ctx context.Context, body []byte) error {
	d := &bsf.Document{Kind: bsf.KindSetting, ID: bsf.NewID(), Keys: []string{s.key()}, Unique: s.key(), Body: body}
	if s.changed == nil {
		holder, _, err := s.docs.CreateDocument(ctx, d, nil, nil)
		if err == nil && holder != nil {
			err = ErrConflict
		}
		return err
	}
	docs, err := s.docs.FindDocuments(ctx, bsf.KindSetting, s.key())
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return ErrConflict
	}
	d.ID = docs[0].ID
	return s.docs.UpdateDocument(ctx, bsf.KindSetting, d.ID, func(old bsf.Document) (*bsf.Document, error) {
		if !bytes.Equal(old.Body, s.changed) {
			return nil, ErrConflict
		}
		return d, nil
	})
}

// note adds an entry to the audit trail; the oldest ones give way.
func (s *Store[T]) note(ctx context.Context, e Entry) (id bsf.ID, err error) {
	body, err := json.Marshal(e)
	if err != nil {
		return id, err
	}
	return bsf.AppendHistory(ctx, s.docs, s.trailKey(), body, keptEntries)
}

// Trail is the audit trail, oldest first.
func (s *Store[T]) Trail(ctx context.Context) ([]Entry, error) {
	docs, err := s.docs.FindDocuments(ctx, bsf.KindHistory, s.trailKey())
	if err != nil {
		return nil, err
	}
	list := make([]Entry, len(docs))
	for i, d := range docs {
		if err := json.Unmarshal(d.Body, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
