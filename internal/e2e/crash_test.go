package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCrash proves that nothing acknowledged is lost: bsfd is killed again and
// again while 64 callers register and deregister (NBSF-103).
func TestCrash(t *testing.T) {
	const rounds, callers = 20, 64
	dir := t.TempDir()
	var mu sync.Mutex
	present := make(map[int]string) // acknowledged registrations, by UE
	absent := make(map[int]bool)    // acknowledged deregistrations
	var next atomic.Int64
	for round := range rounds {
		p := launch(t, "--storage.dataDir", dir, "--storage.embedded.memTableBytes", "1048576")
		if round > 0 {
			verify(t, p, present, absent)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var acknowledged atomic.Int64
		for range callers {
			wg.Go(func() {
				c := newClient(nil)
				defer c.CloseIdleConnections()
				for {
					select {
					case <-stop:
						return
					default:
					}
					n := int(next.Add(1))
					a, err := request(c, "POST", p.sbi+base+"/pcfBindings", binding(n))
					if err != nil {
						return
					}
					if a.status != http.StatusCreated {
						t.Errorf("register: %d %s", a.status, a.body)
						return
					}
					location := a.header.Get("Location")
					id := location[strings.LastIndexByte(location, '/')+1:]
					mu.Lock()
					present[n] = id
					mu.Unlock()
					acknowledged.Add(1)
					if n%3 != 0 {
						continue
					}
					mu.Lock()
					delete(present, n) // whether it is there is open until the answer
					mu.Unlock()
					if a, err = request(c, "DELETE", location, ""); err != nil {
						return
					}
					if a.status != http.StatusNoContent {
						t.Errorf("deregister: %d", a.status)
						return
					}
					mu.Lock()
					absent[n] = true
					mu.Unlock()
				}
			})
		}
		if !eventually(20*time.Second, func() bool { return acknowledged.Load() > 300 }) {
			t.Fatalf("only %d registrations:\n%s", acknowledged.Load(), p.logs())
		}
		p.kill()
		close(stop)
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	p := launch(t, "--storage.dataDir", dir)
	verify(t, p, present, absent)
	t.Logf("%d registrations and %d deregistrations hold after %d crashes", len(present), len(absent), rounds)
}

// verify checks every acknowledged change.
func verify(t *testing.T, p *process, present map[int]string, absent map[int]bool) {
	t.Helper()
	c := newClient(nil)
	defer c.CloseIdleConnections()
	check := func(n, want int) {
		if a := do(t, c, "GET", fmt.Sprintf("%s%s/pcfBindings?ipv4Addr=%s", p.sbi, base, ipv4(n)), ""); a.status != want {
			t.Errorf("UE %d: %d, want %d", n, a.status, want)
		}
	}
	for n := range present {
		check(n, http.StatusOK)
	}
	for n := range absent {
		check(n, http.StatusNoContent)
	}
}
