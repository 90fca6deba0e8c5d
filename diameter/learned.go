package diameter

import "sync"

// learned remembers by which peer a host was seen that is no peer itself: the
// way to it, where no route names one.
type learned struct {
	mu sync.RWMutex
	m  map[string]string
}

// maxLearned bounds the hosts that are remembered.
const maxLearned = 65536

func newLearned() *learned { return &learned{m: make(map[string]string)} }

// note notes that the host was seen behind the peer. It allocates only for
// what is new.
func (l *learned) note(host []byte, peer string) {
	l.mu.RLock()
	old := l.m[string(host)]
	l.mu.RUnlock()
	if old == peer {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.m) >= maxLearned {
		for k := range l.m {
			delete(l.m, k)
			break
		}
	}
	l.m[string(host)] = peer
}

// get is the peer behind which the host was seen, or empty.
func (l *learned) get(host string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.m[host]
}
