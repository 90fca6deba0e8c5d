package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bsfd/internal/peertest"
	"bsfd/internal/pgtest"
)

func subscription(uri, id string, n int, events ...string) string {
	return fmt.Sprintf(`{"events":["%s"],"notifUri":"%s","notifCorreId":"%s","supi":"imsi-00101%010d",`+
		`"snssaiDnnPairs":{"snssai":{"sst":1,"sd":"0000AB"},"dnn":"internet"}}`, strings.Join(events, `","`), uri, id, n)
}

const (
	pduUp, pduDown   = "PCF_PDU_SESSION_BINDING_REGISTRATION", "PCF_PDU_SESSION_BINDING_DEREGISTRATION"
	ueUp, ueDown     = "PCF_UE_BINDING_REGISTRATION", "PCF_UE_BINDING_DEREGISTRATION"
	pairUp, pairDown = "SNSSAI_DNN_BINDING_REGISTRATION", "SNSSAI_DNN_BINDING_DEREGISTRATION"
)

// events lists the events of notifications, those of one together.
func events(list []peertest.Notification) (names []string) {
	for _, n := range list {
		var one []string
		for _, e := range n.Body["eventNotifs"].([]any) {
			one = append(one, e.(map[string]any)["event"].(string))
		}
		names = append(names, strings.Join(one, "+"))
	}
	return names
}

func await(t *testing.T, c *peertest.Consumer, n int) []peertest.Notification {
	t.Helper()
	if !eventually(20*time.Second, func() bool { return len(c.Received()) >= n }) {
		t.Fatalf("%d notifications, want %d: %v", len(c.Received()), n, events(c.Received()))
	}
	return c.Received()
}

// TestNotifications proves NBSF-081, NBSF-082, NBSF-085, NBSF-087 and SBI-020,
// SBI-031 on every engine.
func TestNotifications(t *testing.T) {
	for name, flags := range engines(t) {
		t.Run(name, func(t *testing.T) {
			p := launch(t, flags(t)...)
			c := newClient(nil)
			consumer := peertest.NewConsumer(t)
			for _, s := range []string{
				subscription(consumer.URL+"/cb", "c7", 1, pduUp, pduDown, pairUp, pairDown, ueUp, ueDown),
				subscription(consumer.URL+"/other", "c8", 2, pduUp),
			} {
				if a := do(t, c, "POST", p.sbi+base+"/subscriptions", s); a.status != 201 {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
			register := func(path, body string) string {
				a := do(t, c, "POST", p.sbi+base+path, body)
				if a.status != 201 {
					t.Fatalf("%d %s", a.status, a.body)
				}
				return a.header.Get("Location")
			}
			first := register("/pcfBindings", binding(1))
			second := register("/pcfBindings", strings.Replace(binding(1), ipv4(1), "10.9.9.9", 1))
			register("/pcfBindings", strings.Replace(binding(1), "internet", "ims", 1))
			do(t, c, "DELETE", first, "")
			do(t, c, "DELETE", second, "")
			ue := register("/pcf-ue-bindings", fmt.Sprintf(`{"supi":"imsi-00101%010d","pcfForUeFqdn":"pcf3.example.com"}`, 1))
			do(t, c, "DELETE", ue, "")
			got := await(t, consumer, 6)
			want := []string{pduUp + "+" + pairUp, pduUp, pduDown, pduDown + "+" + pairDown, ueUp, ueDown}
			if g := events(got); strings.Join(g, " ") != strings.Join(want, " ") {
				t.Errorf("got  %v\nwant %v", g, want)
			}
			n := got[0]
			if n.Path != "/cb" || n.Proto != "HTTP/2.0" || n.Body["notifCorreId"] != "c7" || n.Body["pcfId"] != "54804518-4191-46b3-955c-ac631f953ed8" ||
				n.Header.Get("3gpp-Sbi-Callback") != "Nbsf_Management_myNotification" || !strings.HasPrefix(n.Header.Get("User-Agent"), "BSF-") {
				t.Errorf("%+v", n)
			}
			info := n.Body["eventNotifs"].([]any)[0].(map[string]any)["pcfForPduSessInfos"].([]any)[0].(map[string]any)
			if info["ipv4Addr"] != ipv4(1) || info["dnn"] != "internet" || info["pcfFqdn"] != "pcf1.example.com" {
				t.Errorf("%v", info)
			}
		})
	}
}

// TestNotificationsSurviveACrash proves delivery at least once across a
// restart of a durable engine.
func TestNotificationsSurviveACrash(t *testing.T) {
	for name, flags := range map[string][]string{
		"embedded": {"--storage.dataDir", t.TempDir()},
		"postgres": {"--storage.engine", "postgres", "--storage.postgres.dsn", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "postgres" {
				flags[3] = pgtest.Start(t).Database("bsfd")
			}
			consumer := peertest.NewConsumer(t)
			consumer.Answer(func(*http.Request) (int, string) { return 503, "" })
			p := launch(t, append(flags, "--notifications.backoff", "10s")...)
			c := newClient(nil)
			do(t, c, "POST", p.sbi+base+"/subscriptions", subscription(consumer.URL+"/cb", "c7", 1, pduUp, pduDown))
			location := do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1)).header.Get("Location")
			do(t, c, "DELETE", location, "")
			// The second event may be claimed by then, or not.
			if !eventually(10*time.Second, func() bool { return p.metric(`ocbsf_notification_total{result="failed"}`) != "" }) {
				t.Fatal("no attempt")
			}
			p.kill()
			consumer.Answer(nil)
			p = launch(t, flags...)
			if !eventually(45*time.Second, func() bool { return len(consumer.Received()) >= 2 }) {
				t.Fatalf("got %v", events(consumer.Received()))
			}
			if got := events(consumer.Received()); got[0] != pduUp || got[1] != pduDown {
				t.Errorf("order: %v", got)
			}
			p.stop()
		})
	}
}

// TestNotificationRedirects proves NBSF-086, SBI-060, SBI-061 and SBI-062.
func TestNotificationRedirects(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--notifications.backoff", "10ms", "--notifications.attempts", "2", "--notifications.goneAttempts", "1")
	c := newClient(nil)
	old, fresh := peertest.NewConsumer(t), peertest.NewConsumer(t)
	var asked atomic.Int64
	old.Answer(func(r *http.Request) (int, string) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/loop"):
			return 307, old.URL + "/loop"
		case strings.HasPrefix(r.URL.Path, "/chain"):
			return 307, old.URL + "/chain" + r.URL.Path
		case strings.HasPrefix(r.URL.Path, "/gone"):
			return 404, ""
		case strings.HasPrefix(r.URL.Path, "/moved"):
			asked.Add(1)
			return 308, fresh.URL + "/new"
		}
		return 307, fresh.URL + r.URL.Path
	})
	n := 0
	up := func(path string) {
		n++
		do(t, c, "POST", p.sbi+base+"/subscriptions", subscription(old.URL+path, "c7", n, pduUp))
		do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(n))
	}
	up("/temporary")
	if got := await(t, fresh, 1); got[0].Path != "/temporary" {
		t.Errorf("path %s", got[0].Path)
	}
	up("/moved")
	await(t, fresh, 2)
	if !eventually(5*time.Second, func() bool {
		do(t, c, "POST", p.sbi+base+"/pcfBindings", strings.Replace(binding(n), ipv4(n), "10.8.8.8", 1))
		return len(fresh.Received()) >= 4
	}) || asked.Load() > 2 {
		t.Errorf("the old address was asked %d times", asked.Load())
	}
	up("/loop")
	up("/chain")
	if !eventually(10*time.Second, func() bool { return p.metric(`ocbsf_notification_total{result="given_up"}`) == "2" }) {
		t.Errorf("loops are followed: %s", p.metric(`ocbsf_notification_total{result="given_up"}`))
	}
	up("/gone")
	if !p.waitFor("receiver does not know the subscription, removed", 10*time.Second) {
		t.Error("the subscription stays")
	}
}

// TestDeadReceivers proves that 10,000 subscriptions to receivers that do not
// answer slow neither registrations nor the notifications of others.
func TestDeadReceivers(t *testing.T) {
	const subscriptions = 10000
	p := launch(t, "--storage.engine", "memory", "--notifications.timeout", "500ms", "--notifications.attempts", "2", "--notifications.backoff", "100ms")
	// A listener that never accepts more than its backlog: connections hang.
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	c := newClient(nil)
	consumer := peertest.NewConsumer(t)
	var failed atomic.Int64
	parallel(64, subscriptions, func(i int) {
		// Every receiver is a host of its own: 127.x.y.z all lead to the hole.
		uri := fmt.Sprintf("http://127.%d.%d.1:%d/cb", 1+i>>8, i&255, hole.Addr().(*net.TCPAddr).Port)
		if a, err := request(c, "POST", p.sbi+base+"/subscriptions", subscription(uri, "dead", 1000+i, pduUp)); err != nil || a.status != 201 {
			failed.Add(1)
		}
	})
	do(t, c, "POST", p.sbi+base+"/subscriptions", subscription(consumer.URL+"/cb", "alive", 1, pduUp))
	start := time.Now()
	parallel(64, subscriptions, func(i int) {
		if a, err := request(c, "POST", p.sbi+base+"/pcfBindings", binding(1000+i)); err != nil || a.status != 201 {
			failed.Add(1)
		}
	})
	took := time.Since(start)
	if failed.Load() > 0 {
		t.Fatalf("%d requests failed", failed.Load())
	}
	do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1))
	await(t, consumer, 1)
	t.Logf("%d registrations took %s", subscriptions, took)
}

// parallel calls do for 0..n-1 on some goroutines.
func parallel(workers, n int, do func(i int)) {
	var next atomic.Int64
	done := make(chan struct{})
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		}()
	}
	for range workers {
		<-done
	}
}
