package memory

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"bsfd/bsf"
)

// bindings is the table of PDU session bindings.
type bindings struct {
	arena    arena
	index    *index
	profiles *profiles
	count    atomic.Int64
	lengths  prefixLengths

	// order lists the records by when their session was last confirmed.
	orderMu sync.RWMutex
	order   *btree.BTreeG[ref]
}

func newBindings() *bindings {
	t := &bindings{index: newIndex(), profiles: newProfiles()}
	t.order = btree.NewBTreeGOptions(t.before, btree.Options{NoLocks: true, Degree: 64})
	return t
}

// before is the order of the age list.
func (t *bindings) before(a, b ref) bool {
	x, y := t.arena.get(a), t.arena.get(b)
	if p, q := audited(x), audited(y); p != q {
		return p < q
	}
	return string(x[offID:offID+16]) < string(y[offID:offID+16])
}

func audited(record []byte) int64 { return int64(binary.LittleEndian.Uint64(record[offAudited:])) }

// prefixLengths counts the stored prefixes by family and length, so that a
// lookup probes only lengths that occur.
type prefixLengths struct {
	v4 [33]atomic.Int64
	v6 [129]atomic.Int64
}

func (l *prefixLengths) counter(p netip.Prefix) *atomic.Int64 {
	if p.Addr().Is4() {
		return &l.v4[p.Bits()]
	}
	return &l.v6[p.Bits()]
}

// keyBytes appends the canonical bytes of a key.
func keyBytes(dst []byte, k bsf.Key) []byte {
	switch k.Kind {
	case bsf.KeyPrefix:
		dst = append(dst, byte(k.Kind), byte(k.Prefix.Bits()))
		if k.Prefix.Addr().Is4() {
			a := k.Prefix.Addr().As4()
			return append(dst, a[:]...)
		}
		a := k.Prefix.Addr().As16()
		return append(dst, a[:]...)
	case bsf.KeyMac:
		return append(append(dst, byte(k.Kind)), k.Mac[:]...)
	default:
		return append(append(dst, byte(k.Kind)), k.Supi...)
	}
}

func (t *bindings) keyHash(k bsf.Key) hash {
	var buf [64]byte
	return t.index.hash(keyBytes(buf[:0], k))
}

func (t *bindings) idHash(id bsf.ID) hash {
	var buf [17]byte
	copy(buf[1:], id[:])
	return t.index.hash(buf[:])
}

// decode returns the record at a place. A lock that keeps it there is held.
func (t *bindings) decode(at ref) *bsf.Record {
	src := t.arena.get(at)
	return decodeRecord(src, t.profiles.binding(profileOf(src)))
}

// decodeRecord reads a record whose profile is known.
func decodeRecord(src []byte, profile *bsf.PcfBinding) *bsf.Record {
	r := &bsf.Record{Binding: *profile}
	if err := decodeInto(r, src[:headSize], src[headSize:]); err != nil {
		// The bytes were written by this process and decoded before.
		panic(err)
	}
	return r
}

// scratch holds what a lookup copies out of the arena, so that records are
// decoded without a lock.
type scratch struct {
	refs  []ref
	raw   []byte
	items []rawRecord
}

// rawRecord is a copied record: where it ends in raw, and its profile.
type rawRecord struct {
	end     int
	profile *bsf.PcfBinding
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// collect copies the records that the index knows under exactly this key to
// the scratch.
func (t *bindings) collect(h hash, c *scratch) {
	s := &t.index.shards[h.shard()]
	s.mu.Lock()
	c.refs = s.find(h.tag(), c.refs[:0])
	for _, at := range c.refs {
		src := t.arena.get(at)
		c.raw = append(c.raw, src...)
		c.items = append(c.items, rawRecord{len(c.raw), t.profiles.binding(profileOf(src))})
	}
	s.mu.Unlock()
}

// decode returns the records of the scratch and gives it back.
func (c *scratch) decode() []*bsf.Record {
	var found []*bsf.Record
	at := 0
	for _, item := range c.items {
		found = append(found, decodeRecord(c.raw[at:item.end], item.profile))
		at = item.end
	}
	const keep = 1 << 20
	if cap(c.raw) <= keep {
		c.raw, c.items = c.raw[:0], c.items[:0]
		scratches.Put(c)
	}
	return found
}

// lookup returns the records that the index knows under exactly this key,
// among them, rarely, one that has another key of the same hash.
func (t *bindings) lookup(h hash) []*bsf.Record {
	c := scratches.Get().(*scratch)
	t.collect(h, c)
	return c.decode()
}

// byID returns the record and its place, or nil.
func (t *bindings) byID(id bsf.ID) (*bsf.Record, ref) {
	h := t.idHash(id)
	var refs [maxInline]ref
	s := &t.index.shards[h.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.find(h.tag(), refs[:0]) {
		if bsf.ID(t.arena.get(at)[offID:offID+16]) == id {
			return t.decode(at), at
		}
	}
	return nil, 0
}

// find returns the records that have the key or, for a prefix, one that
// contains it.
func (t *bindings) find(k bsf.Key) []*bsf.Record {
	c := scratches.Get().(*scratch)
	if k.Kind != bsf.KeyPrefix {
		t.collect(t.keyHash(k), c)
	} else {
		t.collectContaining(k.Prefix, c)
	}
	found := c.decode()
	kept := found[:0]
	for _, r := range found {
		if answers(r, k) && !contained(kept, r.ID) {
			kept = append(kept, r)
		}
	}
	return kept
}

// collectContaining copies the records that have a prefix which contains p.
func (t *bindings) collectContaining(p netip.Prefix, c *scratch) {
	for n := p.Bits(); n >= 0; n-- {
		outer := netip.PrefixFrom(p.Addr(), n)
		if t.lengths.counter(outer).Load() > 0 {
			t.collect(t.keyHash(bsf.PrefixKey(outer)), c)
		}
	}
}

func contained(list []*bsf.Record, id bsf.ID) bool {
	for _, r := range list {
		if r.ID == id {
			return true
		}
	}
	return false
}

// answers reports whether a record that the index gave really has the key.
func answers(r *bsf.Record, k bsf.Key) bool {
	if k.Kind == bsf.KeySupi {
		return r.Binding.Supi == k.Supi
	}
	for own := range r.Binding.AllKeys {
		if own == k || k.Kind == bsf.KeyPrefix && own.Kind == bsf.KeyPrefix &&
			own.Prefix.Bits() <= k.Prefix.Bits() && own.Prefix.Contains(k.Prefix.Addr()) {
			return true
		}
	}
	return false
}

// encode returns the form of a record in the arena. The profile is acquired.
func (t *bindings) encode(dst []byte, r *bsf.Record) ([]byte, error) {
	profile, err := t.profiles.acquire(appendProfile(nil, &r.Binding))
	if err != nil {
		return nil, err
	}
	return appendBody(appendHead(dst, r, profile), r), nil
}

// hashes lists the hashes of everything by which a record is found.
func (t *bindings) hashes(r *bsf.Record, dst []hash) []hash {
	dst = append(dst, t.idHash(r.ID))
	if r.Binding.Supi != "" {
		dst = append(dst, t.keyHash(bsf.SupiKey(r.Binding.Supi)))
	}
	for k := range r.Binding.AllKeys {
		dst = append(dst, t.keyHash(k))
	}
	return dst
}

// insert stores a record. The shards of its hashes are locked.
func (t *bindings) insert(r *bsf.Record, hashes []hash) error {
	var buf [512]byte
	contents, err := t.encode(buf[:0], r)
	if err != nil {
		return err
	}
	at, err := t.arena.put(contents)
	if err != nil {
		t.profiles.release(profileOf(contents))
		return err
	}
	for _, h := range hashes {
		t.index.shards[h.shard()].add(h.tag(), at)
	}
	t.countPrefixes(r, 1)
	t.count.Add(1)
	t.orderMu.Lock()
	t.order.Set(at)
	t.orderMu.Unlock()
	return nil
}

// erase removes a record at its place. The shards of its hashes are locked.
func (t *bindings) erase(r *bsf.Record, at ref, hashes []hash) {
	t.orderMu.Lock()
	t.order.Delete(at)
	t.orderMu.Unlock()
	for _, h := range hashes {
		t.index.shards[h.shard()].remove(h.tag(), at)
	}
	t.countPrefixes(r, -1)
	t.count.Add(-1)
	t.profiles.release(profileOf(t.arena.get(at)))
	t.arena.drop(at)
}

func (t *bindings) countPrefixes(r *bsf.Record, d int64) {
	for k := range r.Binding.AllKeys {
		if k.Kind == bsf.KeyPrefix {
			t.lengths.counter(k.Prefix).Add(d)
		}
	}
}

// replace makes the change from the records in old to those in fresh visible
// at once.
func (t *bindings) replace(old []bsf.ID, fresh []*bsf.Record) error {
	type victim struct {
		record *bsf.Record
		at     ref
		hashes []hash
	}
	var locks lockSet
	var victims [4]victim
	gone := victims[:0]
	var hashBuf [16]hash
	all := hashBuf[:0]
	for _, id := range old {
		if r, at := t.byID(id); r != nil {
			gone = append(gone, victim{r, at, t.hashes(r, nil)})
			for _, h := range gone[len(gone)-1].hashes {
				locks.add(h)
			}
		}
	}
	var ends [4]int
	end := ends[:0]
	for _, r := range fresh {
		all = t.hashes(r, all)
		end = append(end, len(all))
	}
	for _, h := range all {
		locks.add(h)
	}
	t.index.lock(&locks)
	defer t.index.unlock(&locks)
	for _, v := range gone {
		t.erase(v.record, v.at, v.hashes)
	}
	start := 0
	for i, r := range fresh {
		if err := t.insert(r, all[start:end[i]]); err != nil {
			return err
		}
		start = end[i]
	}
	return nil
}

// page returns up to limit records after the cursor for which want holds;
// stop ends the walk.
func (t *bindings) page(after bsf.Cursor, limit int, stop, want func(head []byte) bool) []*bsf.Record {
	t.orderMu.RLock()
	defer t.orderMu.RUnlock()
	var found []*bsf.Record
	t.orderFrom(after, func(at ref) bool {
		contents := t.arena.get(at)
		if stop(contents) {
			return false
		}
		if want(contents) {
			found = append(found, t.decode(at))
		}
		return len(found) < limit
	})
	return found
}

// orderFrom walks the order behind the cursor. The tree compares places, so
// the walk begins by halving the items on their contents.
func (t *bindings) orderFrom(after bsf.Cursor, yield func(ref) bool) {
	if after == (bsf.Cursor{}) {
		t.order.Scan(yield)
		return
	}
	pivot := after.Audited.UnixMicro()
	lo, hi := 0, t.order.Len()
	for lo < hi {
		mid := (lo + hi) / 2
		at, _ := t.order.GetAt(mid)
		c := t.arena.get(at)
		a := audited(c)
		if a < pivot || a == pivot && string(c[offID:offID+16]) <= string(after.ID[:]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if at, ok := t.order.GetAt(lo); ok {
		t.order.Ascend(at, yield)
	}
}

func profileOf(record []byte) uint32 { return binary.LittleEndian.Uint32(record[offProfile:]) }
