package diameter

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"bsfd/diameter/rx"
)

func addrs(list ...string) (out []netip.Addr) {
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func text(v any) string { return fmt.Sprint(v) }

// box is an outbox that nobody empties.
func box(t testing.TB) *outbox {
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return newOutbox(a, 1<<30, time.Second, func(error) {})
}

// TestPendings checks the table against a plain map over random operations:
// what was added is found by its identifier exactly once, no identifier is
// used twice, and requests expire in order.
func TestPendings(t *testing.T) {
	var table pendings
	table.start(1<<32-50, 5000)
	out := box(t)
	known := make(map[uint32]*pending)
	used := make(map[uint32]bool)
	now := time.Unix(1e9, 0)
	for range 50000 {
		now = now.Add(time.Millisecond)
		switch rand.IntN(5) {
		case 0, 1, 2:
			p := &pending{kind: kind(rand.IntN(kinds)), msg: make([]byte, rx.HeaderLen), deadline: now.Add(4 * time.Second)}
			if got := table.add(p, out); got != added {
				if got != tableFull || len(known) != 5000 {
					t.Fatalf("add: %d with %d", got, len(known))
				}
				continue
			}
			if used[p.hopByHop] {
				t.Fatalf("identifier %d twice", p.hopByHop)
			}
			used[p.hopByHop], known[p.hopByHop] = true, p
		case 3:
			for id, p := range known {
				if table.take(id) != p || table.take(id) != nil {
					t.Fatal("take")
				}
				delete(known, id)
				break
			}
		case 4:
			for _, p := range table.expired(now) {
				if p.deadline.After(now) || known[p.hopByHop] != p {
					t.Fatal("expired too early")
				}
				delete(known, p.hopByHop)
			}
			for _, p := range known {
				if !p.deadline.After(now) {
					t.Fatal("not expired in time")
				}
			}
		}
		if table.len() != len(known) {
			t.Fatalf("%d, want %d", table.len(), len(known))
		}
	}
	if got := len(table.drain(true)); got != len(known) {
		t.Errorf("%d drained, want %d", got, len(known))
	}
	if got := table.add(&pending{msg: make([]byte, rx.HeaderLen)}, out); got != tableClosed {
		t.Errorf("add after the end: %d", got)
	}
}

// TestSessions checks the bound of the memory of sessions, and its ages.
func TestSessions(t *testing.T) {
	s := newSessions(Sessions{Max: 640, MaxAge: time.Hour})
	now := time.Unix(1e9, 0)
	for i := range 10000 {
		s.put([]byte(fmt.Sprint(i)), "pcf", "af", now)
	}
	if n := s.len(); n > 640 || n < 600 {
		t.Errorf("%d sessions", n)
	}
	if host, ok := s.pcf([]byte("9999")); !ok || host != "pcf" {
		t.Error("the last session is forgotten")
	}
	for range 2 * sessionShards {
		now = now.Add(time.Minute)
		s.sweep(now)
	}
	if n := s.len(); n != 0 {
		t.Errorf("%d sessions after their time", n)
	}
	none := newSessions(Sessions{})
	none.put([]byte("1"), "pcf", "af", now)
	if none.len() != 0 {
		t.Error("a memory of nothing remembers")
	}
}
