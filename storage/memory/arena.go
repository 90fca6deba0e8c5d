package memory

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// ref is the place of a slot in an arena, in units of 16 bytes; 0 is no place.
type ref uint32

const (
	unit       = 16
	chunkSize  = 1 << 20
	maxChunks  = 1 << 16 // 64 GiB, all that a ref can name
	slotHeader = 4       // length of the contents
	maxSlot    = chunkSize / 2
)

// arena hands out slots of any size up to maxSlot from large chunks. Freed
// slots are used again for contents of the same size in units. Only the writer
// allocates and frees; readers may read slots that the index still names.
type arena struct {
	chunks [maxChunks]atomic.Pointer[[chunkSize]byte]
	n      int                   // chunks in use
	next   int                   // first free byte of the last chunk
	free   [maxSlot/unit + 1]ref // first freed slot, by size in units
	used   int64                 // bytes in slots
}

// put stores the contents in a new slot.
func (a *arena) put(contents []byte) (ref, error) {
	size := (slotHeader + len(contents) + unit - 1) / unit
	if size >= len(a.free) {
		return 0, fmt.Errorf("a record of %d bytes is too large", len(contents))
	}
	r := a.free[size]
	if r != 0 {
		a.free[size] = ref(binary.LittleEndian.Uint32(a.at(r)))
	} else if r = a.bump(size); r == 0 {
		return 0, fmt.Errorf("the arena is full")
	}
	slot := a.at(r)
	binary.LittleEndian.PutUint32(slot, uint32(len(contents)))
	copy(slot[slotHeader:], contents)
	a.used += int64(size * unit)
	return r, nil
}

// bump takes a slot from the end of the arena, or returns 0 when it is full.
func (a *arena) bump(size int) ref {
	if a.n == 0 || a.next+size*unit > chunkSize {
		if a.n == maxChunks {
			return 0
		}
		a.chunks[a.n].Store(new([chunkSize]byte))
		a.next = 0
		if a.n == 0 {
			a.next = unit // place 0 is no place
		}
		a.n++
	}
	r := ref((a.n-1)*(chunkSize/unit) + a.next/unit)
	a.next += size * unit
	return r
}

// at is the memory from a slot to the end of its chunk.
func (a *arena) at(r ref) []byte {
	const perChunk = chunkSize / unit
	return a.chunks[r/perChunk].Load()[r%perChunk*unit:]
}

// get returns the contents of a slot; they stay valid until it is freed.
func (a *arena) get(r ref) []byte {
	slot := a.at(r)
	return slot[slotHeader : slotHeader+binary.LittleEndian.Uint32(slot)]
}

// drop frees a slot.
func (a *arena) drop(r ref) {
	slot := a.at(r)
	size := (slotHeader + int(binary.LittleEndian.Uint32(slot)) + unit - 1) / unit
	binary.LittleEndian.PutUint32(slot, uint32(a.free[size]))
	a.free[size] = r
	a.used -= int64(size * unit)
}
