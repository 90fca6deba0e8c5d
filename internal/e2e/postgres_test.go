package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bsfd/internal/pgtest"
)

// TestTwoInstances proves NBSF-064 with two processes on one database: of two
// racing registrations with the same paraCom exactly one wins.
func TestTwoInstances(t *testing.T) {
	flags := []string{"--storage.engine", "postgres", "--storage.postgres.dsn", pgtest.Start(t).Database("bsfd")}
	var instances [2]*process
	var wg sync.WaitGroup
	for i := range instances {
		// Both bring the schema up at once.
		wg.Go(func() { instances[i] = begin(t, flags...) })
	}
	wg.Wait()
	for _, p := range instances {
		if !p.waitFor(`"message":"ready"`, 60*time.Second) {
			t.Fatalf("not ready:\n%s", p.logs())
		}
		p.sbi, p.oam = p.address("sbi"), p.address("oam")
	}
	c := newClient(nil)
	for round := range 30 {
		var created, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				supi := fmt.Sprintf("imsi-00101%010d", round)
				body := with(e1, "supi", `"`+supi+`"`, "ipv4Addr", fmt.Sprintf(`"10.%d.%d.1"`, round, i), "ipv6Prefix", "",
					"pcfId", fmt.Sprintf(`"00000000-0000-4000-8000-00000000000%d"`, i), "pcfFqdn", fmt.Sprintf(`"pcf%d.example.com"`, i),
					"pcfSmFqdn", fmt.Sprintf(`"pcf%dsm.example.com"`, i), "paraCom", `{"supi":"`+supi+`","dnn":"internet","snssai":{"sst":1,"sd":"0000AB"}}`)
				a, err := request(c, "POST", instances[i%2].sbi+base+"/pcfBindings", body)
				switch {
				case err != nil:
					t.Error(err)
				case a.status == http.StatusCreated:
					created.Add(1)
				case a.status == http.StatusForbidden:
					refused.Add(1)
				default:
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
		wg.Wait()
		if created.Load() != 1 || refused.Load() != 7 {
			t.Fatalf("%d created, %d refused", created.Load(), refused.Load())
		}
	}
	// What one stores the other finds and removes.
	a := do(t, c, "POST", instances[0].sbi+base+"/pcfBindings", binding(1<<22))
	if got := do(t, c, "GET", instances[1].sbi+base+"/pcfBindings?ipv4Addr="+ipv4(1<<22), ""); got.status != 200 {
		t.Errorf("the other instance: %d", got.status)
	}
	location := strings.Replace(a.header.Get("Location"), instances[0].sbi, instances[1].sbi, 1)
	if got := do(t, c, "DELETE", location, ""); got.status != 204 {
		t.Errorf("deregistration at the other instance: %d", got.status)
	}
}

// TestDatabaseRestart proves SBI-085: requests get 503 or 504 while the database
// is away, that service resumes and that nothing acknowledged is lost.
func TestDatabaseRestart(t *testing.T) {
	server := pgtest.Start(t)
	p := launch(t, "--storage.engine", "postgres", "--storage.postgres.dsn", server.Database("bsfd"), "--storage.timeout", "2s")
	stop := make(chan struct{})
	var mu sync.Mutex
	acknowledged := make(map[int]bool)
	statuses := make(map[int]int)
	var next atomic.Int64
	var slowest atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c := newClient(nil)
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := int(next.Add(1))
				start := time.Now()
				a, err := request(c, "POST", p.sbi+base+"/pcfBindings", binding(n))
				if err != nil {
					t.Error(err)
					return
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(start))))
				mu.Lock()
				statuses[a.status]++
				if a.status == http.StatusCreated {
					acknowledged[n] = true
				}
				mu.Unlock()
			}
		})
	}
	counted := func(status int) int {
		mu.Lock()
		defer mu.Unlock()
		return statuses[status]
	}
	for round, mode := range []string{"fast", "immediate"} {
		before := counted(201)
		if !eventually(20*time.Second, func() bool { return counted(201) > before+200 }) {
			t.Fatalf("round %d: no progress: %v", round, statuses)
		}
		server.Stop(mode)
		refused := counted(503)
		if !eventually(20*time.Second, func() bool { return counted(503) > refused }) {
			t.Errorf("no 503: %v", statuses)
		}
		if a := do(t, http.DefaultClient, "GET", p.oam+"/readyz", ""); a.status != 503 {
			t.Errorf("readyz: %d", a.status)
		}
		server.Boot()
		before = counted(201)
		if !eventually(20*time.Second, func() bool { return counted(201) > before+50 }) {
			t.Fatalf("service does not resume: %v\n%s", statuses, p.logs())
		}
	}
	close(stop)
	wg.Wait()
	for status := range statuses {
		if status != 201 && status != 503 && status != 504 {
			t.Errorf("status %d", status)
		}
	}
	if d := time.Duration(slowest.Load()); d > 15*time.Second {
		t.Errorf("a request took %s", d)
	}
	c := newClient(nil)
	for n := range acknowledged {
		if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(n), ""); a.status != 200 {
			t.Fatalf("UE %d is lost: %d", n, a.status)
		}
	}
	t.Logf("%d acknowledged, answers %v, slowest %s", len(acknowledged), statuses, time.Duration(slowest.Load()))
}

func TestMigrate(t *testing.T) {
	dsn := pgtest.Start(t).Database("bsfd")
	flags := []string{"--storage.engine", "postgres", "--storage.postgres.dsn", dsn}
	for _, c := range []struct {
		args []string
		exit int
		says string
	}{
		{append([]string{"serve", "--storage.postgres.migrate=false", "--oam.listen", "127.0.0.1:0"}, flags...), 1, "run bsfd migrate"},
		{append([]string{"check", "--storage.postgres.migrate=false", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0"}, flags...), 1, "FAIL  schema"},
		{append([]string{"migrate", "--plan"}, flags...), 0, "CREATE TABLE pcf_binding"},
		{append([]string{"migrate"}, flags...), 0, "0001"},
		{append([]string{"migrate"}, flags...), 0, "up to date"},
		{append([]string{"check", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0"}, flags...), 0, "ok    rights on table pcf_binding"},
	} {
		if exit, out := runCommand(t, nil, c.args...); exit != c.exit || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", c.args[:2], exit, c.exit, c.says, out)
		}
	}
}
