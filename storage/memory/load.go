package memory

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"bsfd/bsf"
)

// Loader fills empty tables from a durable copy. LoadRecord may run on several
// goroutines; nothing else may use the tables before Finish.
type Loader struct {
	t  *Tables
	mu sync.Mutex // arena and order
	in []ref
}

// Load returns a Loader.
func (t *Tables) Load() *Loader { return &Loader{t: t} }

// LoadScratch is what one goroutine of a load uses again for each record.
type LoadScratch struct {
	contents []byte
	keys     []bsf.Key
	profile  []byte // the last profile seen, and its number
	number   uint32
	record   bsf.Record
}

// LoadRecord adds a record in the form of AppendRecord.
func (l *Loader) LoadRecord(src []byte, s *LoadScratch) error {
	b := l.t.bindings
	head, profile, body, err := splitRecord(src)
	if err != nil {
		return err
	}
	if err := l.acquire(profile, s); err != nil {
		return err
	}
	r := &s.record
	*r = bsf.Record{}
	if err := decodeInto(r, head, body); err != nil {
		return err
	}
	s.contents = append(append(s.contents[:0], head...), body...)
	binary.LittleEndian.PutUint32(s.contents[offProfile:], s.number)
	l.mu.Lock()
	at, err := b.arena.put(s.contents)
	l.in = append(l.in, at)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	s.keys = r.Keys(s.keys[:0])
	l.index(b.idHash(r.ID), at)
	for _, k := range s.keys {
		l.index(b.keyHash(k), at)
		if k.Kind == bsf.KeyPrefix {
			b.lengths.counter(k.Prefix).Add(1)
		}
	}
	b.count.Add(1)
	return nil
}

// acquire finds the number of a profile; neighbours often share theirs.
func (l *Loader) acquire(profile []byte, s *LoadScratch) (err error) {
	p := l.t.bindings.profiles
	if s.profile != nil && bytes.Equal(profile, s.profile) {
		p.mu.Lock()
		p.all[s.number].uses++
		p.mu.Unlock()
		return nil
	}
	s.number, err = p.acquire(profile)
	s.profile = append(s.profile[:0], profile...)
	return err
}

func (l *Loader) index(h hash, at ref) {
	shard := &l.t.bindings.index.shards[h.shard()]
	shard.mu.Lock()
	shard.add(h.tag(), at)
	shard.mu.Unlock()
}

// LoadDocument adds a document in the form of AppendDocument.
func (l *Loader) LoadDocument(src []byte) error {
	d, err := DecodeDocument(src)
	if err != nil {
		return err
	}
	return l.t.documents.replace(nil, d)
}

// LoadEvent adds an event.
func (l *Loader) LoadEvent(e *bsf.Event) { l.t.events.put(e) }

// Finish puts the records in order.
func (l *Loader) Finish() {
	b := l.t.bindings
	slices.SortFunc(l.in, func(x, y ref) int {
		switch {
		case b.before(x, y):
			return -1
		case b.before(y, x):
			return 1
		}
		return 0
	})
	for _, at := range l.in {
		b.order.Load(at)
	}
	l.in = nil
}
