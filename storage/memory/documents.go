package memory

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"bsfd/bsf"
)

// documents is the table of all other resources.
type documents struct {
	arena arena
	index *index
	// subscriptions is how many there are; with none, no event is stored.
	subscriptions atomic.Int64
}

func newDocuments() *documents { return &documents{index: newIndex()} }

// Parts of a document's key space.
const (
	partID = iota
	partKey
	partUnique
)

func (t *documents) textHash(kind bsf.Kind, part byte, text string) hash {
	var buf [80]byte
	return t.index.hash(append(append(buf[:0], byte(kind), part), text...))
}

func (t *documents) hashes(d *bsf.Document) []hash {
	list := []hash{t.textHash(d.Kind, partID, string(d.ID[:]))}
	for _, k := range d.Keys {
		list = append(list, t.textHash(d.Kind, partKey, k))
	}
	if d.Unique != "" {
		list = append(list, t.textHash(d.Kind, partUnique, d.Unique))
	}
	return list
}

// AppendDocument appends the binary form of a document, in memory and on disk.
func AppendDocument(dst []byte, d *bsf.Document) []byte {
	dst = append(append(dst, byte(d.Kind)), d.ID[:]...)
	dst = append(dst, byte(len(d.Keys)))
	for _, k := range d.Keys {
		dst = appendText(dst, k)
	}
	return append(appendText(dst, d.Unique), d.Body...)
}

// DecodeDocument reads the form that AppendDocument writes.
func DecodeDocument(src []byte) (*bsf.Document, error) {
	d := decoder{src: src}
	doc := &bsf.Document{Kind: bsf.Kind(d.byte())}
	copy(doc.ID[:], d.take(16))
	for range d.byte() {
		doc.Keys = append(doc.Keys, d.text())
	}
	doc.Unique = d.text()
	doc.Body = bytes.Clone(d.src)
	return doc, d.err
}

// lookup returns the documents under a hash that satisfy want, oldest first,
// and their places.
func (t *documents) lookup(h hash, want func(*bsf.Document) bool) (docs []*bsf.Document, places []ref) {
	s := &t.index.shards[h.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.find(h.tag(), nil) {
		d, err := DecodeDocument(t.arena.get(at))
		if err != nil {
			// The bytes were written by this process.
			panic(err)
		}
		if want(d) {
			docs, places = append(docs, d), append(places, at)
		}
	}
	slices.SortFunc(docs, func(a, b *bsf.Document) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return docs, places
}

func (t *documents) find(kind bsf.Kind, key string) []*bsf.Document {
	docs, _ := t.lookup(t.textHash(kind, partKey, key), func(d *bsf.Document) bool {
		return d.Kind == kind && slices.Contains(d.Keys, key)
	})
	return docs
}

func (t *documents) byID(kind bsf.Kind, id bsf.ID) (*bsf.Document, ref) {
	docs, places := t.lookup(t.textHash(kind, partID, string(id[:])), func(d *bsf.Document) bool {
		return d.Kind == kind && d.ID == id
	})
	if len(docs) == 0 {
		return nil, 0
	}
	return docs[0], places[0]
}

func (t *documents) byUnique(kind bsf.Kind, unique string) *bsf.Document {
	docs, _ := t.lookup(t.textHash(kind, partUnique, unique), func(d *bsf.Document) bool {
		return d.Kind == kind && d.Unique == unique
	})
	if len(docs) == 0 {
		return nil
	}
	return docs[0]
}

// replace takes the document with the key of drop out, where it exists, and
// puts fresh in; either may be absent.
func (t *documents) replace(drop *DocumentRef, fresh *bsf.Document) error {
	var locks lockSet
	var old *bsf.Document
	var at ref
	if drop != nil {
		if old, at = t.byID(drop.Kind, drop.ID); old != nil {
			for _, h := range t.hashes(old) {
				locks.add(h)
			}
		}
	}
	if fresh != nil {
		for _, h := range t.hashes(fresh) {
			locks.add(h)
		}
	}
	t.index.lock(&locks)
	defer t.index.unlock(&locks)
	if old != nil {
		for _, h := range t.hashes(old) {
			t.index.shards[h.shard()].remove(h.tag(), at)
		}
		t.arena.drop(at)
		t.countSubscription(old, -1)
	}
	if fresh == nil {
		return nil
	}
	place, err := t.arena.put(AppendDocument(nil, fresh))
	if err != nil {
		return err
	}
	for _, h := range t.hashes(fresh) {
		t.index.shards[h.shard()].add(h.tag(), place)
	}
	t.countSubscription(fresh, 1)
	return nil
}

func (t *documents) countSubscription(d *bsf.Document, n int64) {
	if d.Kind == bsf.KindSubscription {
		t.subscriptions.Add(n)
	}
}

// events is the queue of events for subscribers.
type events struct {
	mu      sync.Mutex
	all     map[bsf.ID]*bsf.Event
	waiting []*bsf.Event
}

func newEvents() *events { return &events{all: make(map[bsf.ID]*bsf.Event)} }

func (q *events) put(e *bsf.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all[e.ID] = e
	q.waiting = append(q.waiting, e)
}

func (q *events) drop(id bsf.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.all, id)
}

func (q *events) claim(limit int) []*bsf.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(limit, len(q.waiting))
	claimed := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return claimed
}
