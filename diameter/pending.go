package diameter

import (
	"errors"
	"sync"
	"time"

	"bsfd/diameter/rx"
)

// pending is a request that waits for an answer.
type pending struct {
	hopByHop uint32 // on the connection it went out on
	kind     kind
	// from and fromHop are where the answer goes.
	from    *conn
	fromHop uint32
	// msg is the request as it went out.
	msg    []byte
	target target
	// dest is the Destination-Host in msg.
	dest string
	// tried are the peers that have got it, the present one last.
	tried    []*peer
	attempts int
	followed int // redirects
	// doic is set when the sender honours overload reports, actsFor when this
	// node does so for it, realmRouted when the request named no host.
	doic, actsFor, realmRouted bool

	sent     time.Time // the first time
	deadline time.Time

	prev, next *pending
}

// keptBytes is the largest buffer that an idle pending keeps.
const keptBytes = 4096

// pendingPool recycles pendings, so that the path of a message allocates
// nothing.
type pendingPool struct{ pool sync.Pool }

func (pp *pendingPool) get() *pending {
	if p, ok := pp.pool.Get().(*pending); ok {
		return p
	}
	return new(pending)
}

func (pp *pendingPool) put(p *pending) {
	msg, tried := p.msg[:0], p.tried[:0]
	if cap(msg) > keptBytes {
		msg = nil
	}
	clear(tried[:cap(tried)])
	*p = pending{msg: msg, tried: tried}
	pp.pool.Put(p)
}

// pendings are the requests that wait for an answer on one connection, found
// by Hop-by-Hop Identifier. The identifiers count up, so that one is not used
// again for a long time and a late answer matches nothing.
type pendings struct {
	mu     sync.Mutex
	slots  []*pending // by the low bits of the identifier
	last   uint32
	count  int
	max    int
	closed bool
	// oldest and newest are the ends of the list of a kind, whose members all
	// wait equally long.
	oldest, newest [kinds]*pending
}

// start sets where the identifiers begin.
func (t *pendings) start(first uint32, limit int) { t.last, t.max = first, limit }

// addResult is what came of an attempt to add.
type addResult int

const (
	added     addResult = iota
	tableFull           // too many wait for an answer, or to be written
	tableClosed
)

// add gives the request an identifier, keeps it and appends its message to the
// outbox. All in one step: once the table is unlocked the answer may come, or
// the connection may end, and the pending belongs to another.
func (t *pendings) add(p *pending, out *outbox) addResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return tableClosed
	case t.count >= t.max:
		return tableFull
	case 2*(t.count+1) > len(t.slots):
		t.grow()
	}
	mask := uint32(len(t.slots) - 1)
	t.last++
	for t.slots[t.last&mask] != nil {
		t.last++
	}
	p.hopByHop = t.last
	t.slots[t.last&mask] = p
	t.count++
	t.link(p)
	rx.SetHopByHop(p.msg, p.hopByHop)
	err := out.add(p.msg)
	if err == nil {
		return added
	}
	t.remove(p)
	if errors.Is(err, errSlow) {
		// Whether the peer is slow or dead shows when nothing is written.
		return tableFull
	}
	return tableClosed
}

func (t *pendings) grow() {
	const least = 64
	old := t.slots
	t.slots = make([]*pending, max(least, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, p := range old {
		if p != nil {
			// Two that differed in the low bits differ in more of them.
			t.slots[p.hopByHop&mask] = p
		}
	}
}

func (t *pendings) link(p *pending) {
	if p.prev = t.newest[p.kind]; p.prev != nil {
		p.prev.next = p
	} else {
		t.oldest[p.kind] = p
	}
	p.next = nil
	t.newest[p.kind] = p
}

// take removes the request with the identifier, nil when there is none.
func (t *pendings) take(hopByHop uint32) *pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.slots) == 0 {
		return nil
	}
	p := t.slots[hopByHop&uint32(len(t.slots)-1)]
	if p == nil || p.hopByHop != hopByHop {
		return nil
	}
	t.remove(p)
	return p
}

func (t *pendings) remove(p *pending) {
	t.slots[p.hopByHop&uint32(len(t.slots)-1)] = nil
	t.count--
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		t.oldest[p.kind] = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		t.newest[p.kind] = p.prev
	}
	p.prev, p.next = nil, nil
}

// expired removes and returns those whose time is over.
func (t *pendings) expired(now time.Time) (list []*pending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.oldest {
		for p := t.oldest[k]; p != nil && !p.deadline.After(now); p = t.oldest[k] {
			t.remove(p)
			list = append(list, p)
		}
	}
	return list
}

// drain removes and returns all, oldest first by kind. After a drain that
// closes, nothing can be added.
func (t *pendings) drain(closing bool) (list []*pending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = t.closed || closing
	for k := range t.oldest {
		for p := t.oldest[k]; p != nil; p = t.oldest[k] {
			t.remove(p)
			list = append(list, p)
		}
	}
	return list
}

// len is how many wait.
func (t *pendings) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}
