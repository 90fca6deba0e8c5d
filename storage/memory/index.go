package memory

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
)

// hash is the hash of a lookup key. Its top bits choose the shard, its low 32
// bits are the tag under which the shard keeps the key. Two keys with one tag
// in one shard are not told apart: whoever looks up checks what it finds.
type hash uint64

func (h hash) shard() uint8 { return uint8(h >> 56) }
func (h hash) tag() uint32  { return uint32(h) }

// index maps key hashes to places in an arena, any number of places a key.
type index struct {
	seed   maphash.Seed
	shards [256]shard
}

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

// hash returns the hash of a key in its canonical bytes.
func (x *index) hash(key []byte) hash { return hash(maphash.Bytes(x.seed, key)) }

// maxInline is how many places of one tag stand in the table itself. Keys with
// more, such as the SUPI of a test subscriber, move to a list of their own, so
// that they never form long runs.
const maxInline = 8

// inList marks the one entry of a tag whose places are in a list.
const inList ref = 1<<32 - 1

// shard is a part of an index: an open-addressing table of 8-byte entries, tag
// and place, with linear probing.
type shard struct {
	mu    sync.Mutex
	table []uint64
	used  int
	lists map[uint32][]ref
}

func entry(tag uint32, r ref) uint64 { return uint64(tag)<<32 | uint64(r) }
func entryTag(e uint64) uint32       { return uint32(e >> 32) }
func entryRef(e uint64) ref          { return ref(uint32(e)) }

// find appends the places of a tag to dst. The lock is held.
func (s *shard) find(tag uint32, dst []ref) []ref {
	if len(s.table) == 0 {
		return dst
	}
	mask := uint32(len(s.table) - 1)
	for i := s.home(tag); s.table[i] != 0; i = (i + 1) & mask {
		if e := s.table[i]; entryTag(e) == tag {
			if entryRef(e) == inList {
				return append(dst, s.lists[tag]...)
			}
			dst = append(dst, entryRef(e))
		}
	}
	return dst
}

// home is where the run of a tag begins. The low bits of the tag are spread by
// a multiplication, because entries of one table share their length.
func (s *shard) home(tag uint32) uint32 {
	return uint32(uint64(tag) * 0x9E3779B97F4A7C15 >> (64 - bits.Len(uint(len(s.table)-1))))
}

// add notes a place for a tag. The lock is held.
func (s *shard) add(tag uint32, r ref) {
	if list, ok := s.lists[tag]; ok {
		s.lists[tag] = append(list, r)
		return
	}
	var same [maxInline + 1]ref
	if found := s.find(tag, same[:0]); len(found) == maxInline {
		list := append(slices.Clone(found), r)
		for _, f := range found {
			s.removeEntry(entry(tag, f))
		}
		if s.lists == nil {
			s.lists = make(map[uint32][]ref)
		}
		s.lists[tag] = list
		r = inList
	}
	s.addEntry(entry(tag, r))
}

func (s *shard) addEntry(e uint64) {
	if (s.used+1)*4 > len(s.table)*3 {
		s.resize(max(8, 2*len(s.table)))
	}
	mask := uint32(len(s.table) - 1)
	i := s.home(entryTag(e))
	for s.table[i] != 0 {
		i = (i + 1) & mask
	}
	s.table[i] = e
	s.used++
}

func (s *shard) resize(size int) {
	old := s.table
	s.table, s.used = make([]uint64, size), 0
	for _, e := range old {
		if e != 0 {
			s.addEntry(e)
		}
	}
}

// remove forgets a place of a tag. The lock is held.
func (s *shard) remove(tag uint32, r ref) {
	list, ok := s.lists[tag]
	if !ok {
		s.removeEntry(entry(tag, r))
		return
	}
	if i := slices.Index(list, r); i >= 0 {
		list[i] = list[len(list)-1]
		list = list[:len(list)-1]
	}
	s.lists[tag] = list
	if len(list) == 0 {
		delete(s.lists, tag)
		s.removeEntry(entry(tag, inList))
	}
}

// removeEntry takes an entry out and closes the gap in its run.
func (s *shard) removeEntry(e uint64) {
	if len(s.table) == 0 {
		return
	}
	mask := uint32(len(s.table) - 1)
	i := s.home(entryTag(e))
	for s.table[i] != e {
		if s.table[i] == 0 {
			return
		}
		i = (i + 1) & mask
	}
	s.used--
	for j := i; ; {
		j = (j + 1) & mask
		if s.table[j] == 0 {
			break
		}
		// An entry may move into the gap unless its home lies behind the gap.
		if h := s.home(entryTag(s.table[j])); (j-h)&mask >= (j-i)&mask {
			s.table[i] = s.table[j]
			i = j
		}
	}
	s.table[i] = 0
	if len(s.table) > 64 && s.used*8 < len(s.table) {
		s.resize(len(s.table) / 2)
	}
}

// lockSet is the shards that a change touches, locked in order.
type lockSet [4]uint64

func (l *lockSet) add(h hash) { l[h.shard()/64] |= 1 << (h.shard() % 64) }

func (x *index) lock(l *lockSet)   { l.each(x, (*shard).lock) }
func (x *index) unlock(l *lockSet) { l.each(x, (*shard).unlock) }

func (s *shard) lock()   { s.mu.Lock() }
func (s *shard) unlock() { s.mu.Unlock() }

func (l *lockSet) each(x *index, do func(*shard)) {
	for w, word := range l {
		for ; word != 0; word &= word - 1 {
			do(&x.shards[w*64+bits.TrailingZeros64(word)])
		}
	}
}
