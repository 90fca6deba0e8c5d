package diameter

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

// sessions remembers which PCF has which Rx session, for requests that do not
// say so. It is a memory and no truth: what it forgets is looked up again.
// There may be a million of them, so an entry is small and holds no pointer.
type sessions struct {
	cfg    Sessions
	seed   maphash.Seed
	shards [sessionShards]sessionShard
	hosts  hostNumbers
	// swept is the shard that was looked through last.
	swept int
	due   time.Time
}

const sessionShards = 64

// sessionKey is a hash of a Session-Id under a secret seed. With a million
// sessions the chance that two are taken for each other is one in 30 million.
type sessionKey uint64

type sessionShard struct {
	mu sync.Mutex
	m  map[sessionKey]session
}

type session struct {
	pcf, af uint32 // numbers of hosts
	used    uint32 // seconds since 1970
}

// hostNumbers gives hosts numbers.
type hostNumbers struct {
	mu      sync.RWMutex
	numbers map[string]uint32
	names   []string
}

// maxHosts bounds the hosts that get a number.
const maxHosts = 1 << 20

// number is the number of the host; ok is false when there are too many.
func (h *hostNumbers) number(host string) (n uint32, ok bool) {
	h.mu.RLock()
	n, ok = h.numbers[host]
	h.mu.RUnlock()
	if ok {
		return n, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, ok := h.numbers[host]; ok {
		return n, true
	}
	if len(h.names) >= maxHosts {
		return 0, false
	}
	n = uint32(len(h.names))
	h.numbers[host] = n
	h.names = append(h.names, host)
	return n, true
}

func (h *hostNumbers) name(n uint32) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.names[n]
}

// spellings are the numbers that a host has, one for each way in which it was
// spelled.
func (h *hostNumbers) spellings(host string) map[uint32]bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	found := make(map[uint32]bool)
	for n, name := range h.names {
		if strings.EqualFold(name, host) {
			found[uint32(n)] = true
		}
	}
	return found
}

func newSessions(cfg Sessions) *sessions {
	s := &sessions{cfg: cfg, seed: maphash.MakeSeed(), hosts: hostNumbers{numbers: make(map[string]uint32)}}
	for i := range s.shards {
		s.shards[i].m = make(map[sessionKey]session)
	}
	return s
}

func (s *sessions) find(id []byte) (sessionKey, *sessionShard) {
	k := maphash.Bytes(s.seed, id)
	return sessionKey(k), &s.shards[k%sessionShards]
}

// put notes the PCF and the AF of a session.
func (s *sessions) put(id []byte, pcf, af string, now time.Time) {
	p, ok := s.hosts.number(pcf)
	a, known := s.hosts.number(af)
	if !ok || !known || s.cfg.Max == 0 {
		return
	}
	k, shard := s.find(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if len(shard.m) >= max(1, s.cfg.Max/sessionShards) {
		if _, there := shard.m[k]; !there {
			shard.evict()
		}
	}
	shard.m[k] = session{p, a, uint32(now.Unix())}
}

// evict forgets the oldest of a few.
func (h *sessionShard) evict() {
	var oldest sessionKey
	n := 0
	for k, x := range h.m {
		if n == 0 || x.used < h.m[oldest].used {
			oldest = k
		}
		if n++; n == 8 {
			break
		}
	}
	delete(h.m, oldest)
}

// pcf is the PCF of a session.
func (s *sessions) pcf(id []byte) (host string, ok bool) {
	k, shard := s.find(id)
	shard.mu.Lock()
	x, ok := shard.m[k]
	shard.mu.Unlock()
	if !ok {
		return "", false
	}
	return s.hosts.name(x.pcf), true
}

// forget forgets a session.
func (s *sessions) forget(id []byte) {
	k, shard := s.find(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.m, k)
}

// forgetHost forgets the sessions of a host that has lost them.
func (s *sessions) forgetHost(host string) {
	spelled := s.hosts.spellings(host)
	if len(spelled) == 0 {
		return
	}
	for i := range s.shards {
		s.shards[i].forgetIf(func(x session) bool { return spelled[x.pcf] || spelled[x.af] })
	}
}

func (h *sessionShard) forgetIf(gone func(session) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, x := range h.m {
		if gone(x) {
			delete(h.m, k)
		}
	}
}

// sweepInterval is how often one shard is looked through for sessions that are
// too old.
const sweepInterval = time.Second

// sweep looks through one shard when it is time.
func (s *sessions) sweep(now time.Time) {
	if now.Before(s.due) {
		return
	}
	s.due = now.Add(sweepInterval)
	s.swept = (s.swept + 1) % sessionShards
	before := now.Add(-s.cfg.MaxAge).Unix()
	s.shards[s.swept].forgetIf(func(x session) bool { return int64(x.used) < before })
}

// len is how many sessions are remembered.
func (s *sessions) len() (n int) {
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += len(s.shards[i].m)
		s.shards[i].mu.Unlock()
	}
	return n
}
