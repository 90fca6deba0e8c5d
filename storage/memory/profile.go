package memory

import (
	"sync"

	"bsfd/bsf"
)

// profiles interns what the sessions of one PCF share. A profile lives as long
// as a record refers to it.
type profiles struct {
	mu    sync.RWMutex
	byKey map[string]uint32
	all   []profile
	free  []uint32
}

type profile struct {
	key     string
	binding *bsf.PcfBinding // the shared attributes; never changed
	uses    int
}

func newProfiles() *profiles { return &profiles{byKey: make(map[string]uint32)} }

// acquire returns the number of the profile with these bytes and counts a use.
func (p *profiles) acquire(key []byte) (uint32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, ok := p.byKey[string(key)]; ok {
		p.all[n].uses++
		return n, nil
	}
	b, err := decodeProfile(key)
	if err != nil {
		return 0, err
	}
	fresh := profile{key: string(key), binding: b, uses: 1}
	var n uint32
	if l := len(p.free); l > 0 {
		n = p.free[l-1]
		p.free = p.free[:l-1]
		p.all[n] = fresh
	} else {
		n = uint32(len(p.all))
		p.all = append(p.all, fresh)
	}
	p.byKey[fresh.key] = n
	return n, nil
}

// release gives a use back.
func (p *profiles) release(n uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[n].uses--; p.all[n].uses == 0 {
		delete(p.byKey, p.all[n].key)
		p.all[n] = profile{}
		p.free = append(p.free, n)
	}
}

// binding returns the shared attributes of a profile in use.
func (p *profiles) binding(n uint32) *bsf.PcfBinding {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.all[n].binding
}

// held returns the profiles of a holder.
func (p *profiles) held(h bsf.Holder) map[uint32]bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	found := make(map[uint32]bool)
	for n, x := range p.all {
		if x.uses > 0 && (h.PcfId != "" && string(x.binding.PcfId) == h.PcfId ||
			h.PcfSetId != "" && string(x.binding.PcfSetId) == h.PcfSetId) {
			found[uint32(n)] = true
		}
	}
	return found
}
