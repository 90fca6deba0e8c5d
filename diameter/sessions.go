package diameter

import (
	"hash/maphash"
	"sync"
	"time"
)

// sessions remembers which PCF has which Rx session, for requests that do not
// say so. It is a memory and no truth: what it forgets is looked up again.
type sessions struct {
	cfg    Sessions
	seeds  [2]maphash.Seed
	shards [sessionShards]sessionShard
	// swept is the shard that was looked through last.
	swept int
	due   time.Time
}

const sessionShards = 64

// sessionKey stands for a Session-Id. Two of the same key are as unlikely as
// two equal random numbers of 128 bits.
type sessionKey [2]uint64

type sessionShard struct {
	mu sync.Mutex
	m  map[sessionKey]session
}

type session struct {
	pcf, af string
	used    int64 // seconds since 1970
}

func newSessions(cfg Sessions) *sessions {
	s := &sessions{cfg: cfg, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range s.shards {
		s.shards[i].m = make(map[sessionKey]session)
	}
	return s
}

func (s *sessions) find(id []byte) (sessionKey, *sessionShard) {
	k := sessionKey{maphash.Bytes(s.seeds[0], id), maphash.Bytes(s.seeds[1], id)}
	return k, &s.shards[k[0]%sessionShards]
}

// put notes the PCF and the AF of a session.
func (s *sessions) put(id []byte, pcf, af string, now time.Time) {
	if s.cfg.Max == 0 {
		return
	}
	k, shard := s.find(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if _, known := shard.m[k]; !known && len(shard.m) >= max(1, s.cfg.Max/sessionShards) {
		shard.evict()
	}
	shard.m[k] = session{pcf, af, now.Unix()}
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
	defer shard.mu.Unlock()
	x, ok := shard.m[k]
	return x.pcf, ok
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
	for i := range s.shards {
		s.shards[i].forgetIf(func(x session) bool { return x.pcf == host || x.af == host })
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
	s.shards[s.swept].forgetIf(func(x session) bool { return x.used < before })
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
