package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bsfd/internal/tgpp"
)

// runCommand runs a subcommand to its end.
func runCommand(t *testing.T, env []string, args ...string) (exit int, output string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bsfd.yaml")
	if err := os.WriteFile(file, []byte("sbi:\n  listne: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		exit int
		says string
	}{
		{"version", nil, []string{"version"}, 0, "bsfd "},
		{"help", nil, []string{"-h"}, 0, "--sbi.listen"},
		{"unknown command", nil, []string{"fly"}, 2, "fly"},
		{"unknown flag", nil, []string{"serve", "--sbi.listne", "x"}, 2, "sbi.listne"},
		{"unknown key in the file", nil, []string{"check", "--config", file}, 2, "sbi.listne"},
		{"missing file", nil, []string{"check", "--config", "/nonexistent.yaml"}, 2, "/nonexistent.yaml"},
		{"unknown variable", []string{"BSFD_SBI_LISTNE=x"}, []string{"check"}, 2, "BSFD_SBI_LISTNE"},
		{"wrong value", nil, []string{"check", "--bsf.sameAddress", "maybe"}, 2, "bsf.sameAddress"},
		{"wrong type", nil, []string{"check", "--sbi.maxBodyBytes", "many"}, 2, "maxBodyBytes"},
		{"wrong address", nil, []string{"check", "--sbi.listen", "8000"}, 2, "sbi.listen"},
		{"unknown engine", []string{"BSFD_STORAGE_ENGINE=cards"}, []string{"check"}, 2, "storage.engine"},
		{"certificate without key", nil, []string{"check", "--sbi.tls.certFile", "x"}, 2, "sbi.tls.keyFile"},
		{"missing certificate", nil, []string{"check", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--sbi.tls.certFile", "/x", "--sbi.tls.keyFile", "/y"}, 1, "MISSING"},
		{"migrate without postgres", nil, []string{"migrate"}, 2, "storage.engine"},
		{"unreachable database", nil, []string{"check", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--storage.engine", "postgres", "--storage.postgres.dsn", "postgres://x@127.0.0.1:1/x"}, 1, "FAIL  database reachable"},
		{"check passes", nil, []string{"check", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0"}, 0, "ok    free space"},
		{"bench refuses other hosts", nil, []string{"bench", "--sbi", "http://192.0.2.1:80"}, 2, "loopback"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exit, out := runCommand(t, c.env, c.args...)
			if exit != c.exit || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", exit, c.exit, c.says, out)
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	exit, out := runCommand(t, nil, "serve", "--sbi.listen", l.Addr().String(), "--oam.listen", "127.0.0.1:0", "--storage.engine", "memory")
	if exit != 1 || !strings.Contains(out, "sbi.listen") {
		t.Errorf("exit %d: %s", exit, out)
	}
}

func TestOperatorInterface(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--sbi.listen", "127.0.0.1:0,[::1]:0")
	for path, says := range map[string]string{
		"/livez": `"live":true`, "/readyz": `"ready":true`, "/version": `"go":"go`, "/metrics": "ocbsf_bindings 0",
	} {
		if a := do(t, http.DefaultClient, "GET", p.oam+path, ""); a.status != 200 || !strings.Contains(string(a.body), says) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if exit, out := runCommand(t, nil, "health", "--oam.listen", strings.TrimPrefix(p.oam, "http://")); exit != 0 {
		t.Errorf("health: exit %d: %s", exit, out)
	}
	if exit, _ := runCommand(t, nil, "health", "--oam.listen", "127.0.0.1:1"); exit != 1 {
		t.Errorf("health of nothing: exit %d", exit)
	}
	if !strings.Contains(p.logs(), "http://[::1]:") {
		t.Error("no IPv6 listener")
	}
	// The same listener speaks HTTP/1.1, for curl.
	if a := do(t, http.DefaultClient, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
		t.Errorf("HTTP/1.1: %d", a.status)
	}
}

// TestDrain proves SBI-012: requests under way finish, new ones get 503 and the
// connection is told to go away.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, "--storage.dataDir", dir, "--sbi.drainDelay", "2s")
	c := newClient(nil)
	slow, body := io.Pipe()
	finished := make(chan answer, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.Background(), "POST", p.sbi+base+"/pcfBindings", slow)
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			t.Errorf("the request under way: %v", err)
			finished <- answer{}
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		finished <- answer{resp.StatusCode, resp.Header, b}
	}()
	half := binding(1)
	if _, err := io.WriteString(body, half[:20]); err != nil {
		t.Fatal(err)
	}
	if !eventually(5*time.Second, func() bool { return p.metric("ocbsf_ingress_pending") == "1" }) {
		t.Fatal("the request does not arrive")
	}
	p.signal(syscall.SIGTERM)
	if !p.waitFor("stopping", 5*time.Second) {
		t.Fatal("the signal is not noticed")
	}
	other := newClient(nil)
	var refused answer
	if !eventually(5*time.Second, func() bool {
		refused = do(t, other, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", "")
		return refused.status == 503
	}) {
		t.Errorf("new requests get %d", refused.status)
	}
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if a := do(t, http.DefaultClient, "GET", p.oam+"/readyz", ""); a.status != 503 {
		t.Errorf("readyz: %d", a.status)
	}
	_, _ = io.WriteString(body, half[20:])
	_ = body.Close()
	if a := <-finished; a.status != 201 {
		t.Errorf("the request under way gets %d %s", a.status, a.body)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.logs())
	}
	p = launch(t, "--storage.dataDir", dir)
	if a := do(t, newClient(nil), "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(1), ""); a.status != 200 {
		t.Errorf("after the restart: %d", a.status)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--sbi.drainDelay", "1m", "--process.gracePeriod", "1m")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.sbi, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !eventually(5*time.Second, func() bool { return p.metric("ocbsf_http_connections") == "1" }) {
		t.Fatal("the connection is not counted")
	}
	p.signal(syscall.SIGTERM)
	if !p.waitFor("stopping", 5*time.Second) {
		t.Fatal("the signal is not noticed")
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		t.Error("the second signal does not end it")
	}
}

func TestInstanceIdStays(t *testing.T) {
	dir := t.TempDir()
	id := func() string {
		p := launch(t, "--storage.dataDir", dir, "--sbi.listen", "127.0.0.1:0")
		defer p.stop()
		a := do(t, newClient(nil), "GET", p.sbi+base+"/pcfBindings", "")
		return a.header.Get("Server")
	}
	if a, b := id(), id(); a != b || len(a) != len("BSF-")+36 {
		t.Errorf("%s, then %s", a, b)
	}
}

// TestLateArrival proves SBI-070 and SBI-072.
func TestLateArrival(t *testing.T) {
	p := launch(t, "--storage.engine", "memory")
	off := launch(t, "--storage.engine", "memory", "--sbi.lateArrival=false")
	c := newClient(nil)
	past, now := tgpp.FormatTimestamp(time.Now().Add(-time.Minute)), tgpp.FormatTimestamp(time.Now())
	for i, h := range []struct {
		name                       string
		origination, sender, limit string
		status                     int
	}{
		{"late by the sender", "", past, "5000", 504},
		{"late by the originator", past, now, "5000", 504},
		{"in time", "", now, "5000", 201},
		{"no limit", past, past, "", 201},
		{"no timestamp", "", "", "5000", 201},
		{"negative limit", past, past, "-1", 201},
		{"limit of six digits", past, past, "100000", 201},
		{"malformed timestamp", "", "Sun, 04 Aug 2019 08:49:37 GMT", "1", 201},
		{"wrong day of the week", "", "Mon, 04 Aug 2019 08:49:37.845 GMT", "1", 201},
		{"zone IST", "", time.Now().Add(-time.Minute).UTC().Add(19800*time.Second).Format("Mon, 02 Jan 2006 15:04:05.000") + " IST", "5000", 504},
	} {
		t.Run(h.name, func(t *testing.T) {
			headers := []string{"3gpp-Sbi-Max-Rsp-Time", h.limit}
			if h.origination != "" {
				headers = append(headers, "3gpp-Sbi-Origination-Timestamp", h.origination)
			}
			if h.sender != "" {
				headers = append(headers, "3gpp-Sbi-Sender-Timestamp", h.sender)
			}
			a := do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(i), headers...)
			if a.status != h.status || h.status == 504 && a.json(t)["cause"] != "TIMED_OUT_REQUEST" {
				t.Errorf("%d %s", a.status, a.body)
			}
			if h.status == 504 {
				if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(i), ""); a.status != 204 {
					t.Error("the late request was processed")
				}
				if a := do(t, c, "POST", off.sbi+base+"/pcfBindings", binding(i), headers...); a.status != 201 {
					t.Errorf("switched off: %d", a.status)
				}
			}
		})
	}
}

// TestCollision proves SBI-071 over the wire.
func TestCollision(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--bsf.collision.enabled")
	c := newClient(nil)
	const field = "3gpp-Sbi-Origination-Timestamp"
	older, newer := tgpp.FormatTimestamp(time.Now().Add(-time.Second)), tgpp.FormatTimestamp(time.Now())
	second := strings.Replace(binding(1), "953ed8", "953ed9", 1)
	if a := do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1), field, newer); a.status != 201 {
		t.Fatalf("%d", a.status)
	}
	a := do(t, c, "POST", p.sbi+base+"/pcfBindings", second, field, older)
	if a.status != 403 || a.json(t)["cause"] != "EXISTING_BINDING_INFO_FOUND" || a.json(t)["title"] != "Existing binding information found in DB" {
		t.Errorf("older: %d %s", a.status, a.body)
	}
	if a := do(t, c, "POST", p.sbi+base+"/pcfBindings", second, field, tgpp.FormatTimestamp(time.Now().Add(time.Second))); a.status != 201 {
		t.Errorf("newer: %d %s", a.status, a.body)
	}
	if got := p.metric(`ocbsf_binding_removed_total{reason="collision"}`); got != "1" {
		t.Errorf("metric: %q", got)
	}
}

func TestRevalidation(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--log.showUeIdentifier")
	c := newClient(nil)
	register := func(body string) string {
		a := do(t, c, "POST", p.sbi+base+"/pcfBindings", body, "x-oc-binding-revalidation", "true")
		if a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.header.Get("Location")
	}
	first := register(binding(1))
	if again := register(binding(1)); again != first {
		t.Errorf("an unchanged binding gets a new id")
	}
	if changed := register(strings.Replace(binding(1), "pcf1.example", "pcf2.example", 1)); changed == first {
		t.Error("a changed binding keeps its id")
	}
	for name, want := range map[string]string{
		"ocbsf_binding_revalidation_request_total":                      "3",
		"ocbsf_binding_revalidation_pcfBinding_missing_total":           "1",
		`ocbsf_binding_revalidation_response_total{result="duplicate"}`: "1",
		`ocbsf_binding_revalidation_response_total{result="recreated"}`: "1",
		`ocbsf_binding_removed_total{reason="revalidated"}`:             "1",
	} {
		if got := p.metric(name); got != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
	if !strings.Contains(p.logs(), `"marker":{"name":"BINDING"}`) || !strings.Contains(p.logs(), "Binding Audit:") ||
		!strings.Contains(p.logs(), "imsi-001010000000001") {
		t.Errorf("log:\n%s", p.logs())
	}
}

func TestMultipleMatchesLatest(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--bsf.sameAddress", "keep", "--bsf.multipleMatches", "latest")
	c := newClient(nil)
	for _, fqdn := range []string{"pcf1.example", "pcf2.example", "pcf3.example"} {
		do(t, c, "POST", p.sbi+base+"/pcfBindings", strings.Replace(binding(1), "pcf1.example", fqdn, 1))
	}
	if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(1), ""); a.status != 200 || !strings.Contains(string(a.body), "pcf3.example") {
		t.Errorf("%d %s", a.status, a.body)
	}
	keep := launch(t, "--storage.engine", "memory", "--bsf.sameAddress", "keep")
	for range 2 {
		do(t, c, "POST", keep.sbi+base+"/pcfBindings", binding(1))
	}
	if a := do(t, c, "GET", keep.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(1), ""); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestErrorAnswers proves SBI-021, and that operators may change what errors say and that
// the log shows them as they want it.
func TestErrorAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bsfd.yaml")
	settings := `
nf: {fqdn: bsf1.example.com, instanceId: 00000000-0000-4000-8000-00000000000a}
errors:
  applicationErrorId: true
  serverHeaderCodes: [503]
  log: {enabled: true, rate: 0.001, maxBurst: 2}
  conditions:
    resourceNotFound: {status: 410, cause: GONE_AWAY, title: Gone, description: no longer here}
storage: {engine: memory}
sbi: {bindingHeader: "off", apiRoot: "https://bsf.example.com:8443/x"}
log: {showUeIdentifier: true}
`
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--config", file)
	c := newClient(nil)
	a := do(t, c, "DELETE", p.sbi+base+"/pcfBindings/x", "")
	m := a.json(t)
	if a.status != 410 || m["cause"] != "GONE_AWAY" || m["title"] != "Gone" || a.header.Get("Server") != "" ||
		m["detail"] != "bsf1.example.com: BSF_MGMT: no longer here: EC-BSF-MGMT-410-0111" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	a = do(t, c, "POST", p.sbi+base+"/pcfBindings", `{"supi":"imsi-001010000000001","gpsi":"msisdn-12345"}`)
	if a.status != 400 {
		t.Errorf("%d", a.status)
	}
	for range 5 {
		do(t, c, "DELETE", p.sbi+base+"/pcfBindings/x", "")
	}
	log := p.logs()
	if strings.Count(log, `"message":"error response"`) != 2 || !strings.Contains(log, `"subscriberId":"imsi-001010000000001"`) ||
		!strings.Contains(log, `"sender":"BSF-00000000-0000-4000-8000-00000000000a"`) || !strings.Contains(log, `"errorCause":"MANDATORY_IE_MISSING"`) {
		t.Errorf("log:\n%s", log)
	}
	if got := p.metric("ocbsf_error_log_dropped_total"); got != "5" {
		t.Errorf("%s lines dropped", got)
	}
	a = do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1))
	if got := a.header.Get("Location"); !strings.HasPrefix(got, "https://bsf.example.com:8443/x/nbsf-management/v1/pcfBindings/") || a.header.Get("3gpp-Sbi-Binding") != "" {
		t.Errorf("headers: %v", a.header)
	}
}

func TestCookie(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--bsf.storeCookie", "--sbi.maxCookieBytes", "100")
	c := newClient(nil)
	if a := do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1), "ocnf-service-cookie", `{"cookieOwner":"PCF-SM"}`); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if got := p.metric("ocbsf_pcf_cookie_total"); got != "1" {
		t.Errorf("metric %q", got)
	}
	a := do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(1), "ocnf-service-cookie", strings.Repeat("x", 101))
	if a.status != 400 || !bytes.Contains(a.body, []byte(`"param":"header ocnf-service-cookie"`)) {
		t.Errorf("SBI-002: %d %s", a.status, a.body)
	}
}

// TestTwoProcessesOneDirectory proves that a second process does not touch the
// data of the first.
func TestTwoProcessesOneDirectory(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, "--storage.dataDir", dir)
	exit, out := runCommand(t, nil, "serve", "--storage.dataDir", dir, "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0")
	if exit != 1 || !strings.Contains(out, "storage") {
		t.Errorf("exit %d: %s", exit, out)
	}
	if a := do(t, newClient(nil), "POST", p.sbi+base+"/pcfBindings", binding(1)); a.status != 201 {
		t.Errorf("%d", a.status)
	}
}

// TestFullDisk proves that a full disk refuses new records with a cause, loses
// nothing and heals by itself.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root: skipping")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small file system (%v, %s): skipping", err, bytes.TrimSpace(out))
	}
	defer func() { _ = exec.Command("umount", "-l", dir).Run() }()
	flags := []string{"--storage.dataDir", dir, "--storage.embedded.memTableBytes", "1048576", "--storage.embedded.reserveBytes", "4194304"}
	p := launch(t, flags...)
	c := newClient(nil)
	register := func(n int) answer { return do(t, c, "POST", p.sbi+base+"/pcfBindings", binding(n)) }
	first := register(0)
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<20); ; {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	_ = f.Close()
	acknowledged := 1
	var a answer
	if !eventually(20*time.Second, func() bool {
		if a = register(acknowledged); a.status == 201 {
			acknowledged++
		}
		return a.status != 201
	}) {
		t.Fatal("the full disk is not noticed")
	}
	if a.status != 500 || a.json(t)["cause"] != "INSUFFICIENT_RESOURCES" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := do(t, c, "DELETE", first.header.Get("Location"), ""); a.status != 204 {
		t.Errorf("deregistration on the full disk: %d %s", a.status, a.body)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if !eventually(20*time.Second, func() bool {
		a := register(acknowledged)
		if a.status == 201 {
			acknowledged++
		}
		return a.status == 201
	}) {
		t.Fatalf("service does not resume:\n%s", p.logs())
	}
	p.kill()
	p = launch(t, flags...)
	for n := range acknowledged {
		want := 200
		if n == 0 {
			want = 204
		}
		if a := do(t, c, "GET", fmt.Sprintf("%s%s/pcfBindings?ipv4Addr=%s", p.sbi, base, ipv4(n)), ""); a.status != want {
			t.Errorf("UE %d: %d", n, a.status)
		}
	}
}
