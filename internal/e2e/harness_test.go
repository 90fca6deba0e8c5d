// Package e2e tests the program as its users meet it: the real binary in a
// process of its own, over the wire.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bsfd/internal/spectest"
)

// program is the program under test.
var program string

func TestMain(m *testing.M) {
	// Tests that run beside others mostly wait for processes.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	dir, err := os.MkdirTemp("", "bsfd-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "bsfd")
	args := []string{"build", "-o", program}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "bsfd")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "the program does not build:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is a running bsfd.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	sbi  string // URL of the service-based interface
	oam  string
	done chan struct{}

	mu   sync.Mutex
	log  bytes.Buffer
	exit int
}

// launch starts bsfd with free ports and waits until it is ready.
func launch(t testing.TB, args ...string) *process {
	t.Helper()
	p := begin(t, args...)
	if !p.waitFor(`"message":"ready"`, 60*time.Second) {
		t.Fatalf("bsfd is not ready:\n%s", p.logs())
	}
	p.sbi, p.oam = p.address("sbi"), p.address("oam")
	return p
}

// begin starts bsfd and does not wait. It is killed when the test ends.
func begin(t testing.TB, args ...string) *process {
	t.Helper()
	full := append([]string{"serve", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--diameter.listen", "127.0.0.1:0"}, args...)
	p := &process{t: t, cmd: exec.Command(program, full...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 exitcode=66")
	p.cmd.Dir = t.TempDir()
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log.Write(append(lines.Bytes(), '\n'))
			p.mu.Unlock()
		}
		err := p.cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			p.exit = exit.ExitCode()
		}
	}()
	t.Cleanup(func() {
		p.kill()
		if strings.Contains(p.logs(), "DATA RACE") {
			t.Errorf("data race:\n%s", p.logs())
		}
	})
	return p
}

func (p *process) logs() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// address finds what a component listens on.
func (p *process) address(component string) string {
	for line := range strings.SplitSeq(p.logs(), "\n") {
		var l struct{ Component, Address, Message string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Component == component && l.Message == "listening" {
			return l.Address
		}
	}
	return ""
}

// waitFor waits until the log has a text, or the process ends.
func (p *process) waitFor(text string, limit time.Duration) bool {
	ended := false
	eventually(limit, func() bool {
		select {
		case <-p.done:
			ended = true
		default:
		}
		return ended || strings.Contains(p.logs(), text)
	})
	return strings.Contains(p.logs(), text)
}

// eventually polls a condition until it holds or the limit passes.
func eventually(limit time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}

func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// kill ends the process as a crash would.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop ends the process with SIGTERM and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(60 * time.Second):
		p.t.Fatalf("bsfd does not stop:\n%s", p.logs())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// newClient returns a client for HTTP/2, with prior knowledge in clear text.
func newClient(config *tls.Config) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: config}
	tr.Protocols.SetHTTP2(true)
	tr.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// answer is a response, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return m
}

const base = "/nbsf-management/v1"

// request sends one request; headers come in pairs.
func request(c *http.Client, method, url, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body == "" {
		req.Body, req.ContentLength = nil, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			req.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

// do sends a request and fails the test when there is no answer.
func do(t testing.TB, c *http.Client, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := request(c, method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

// metric reads the value of a metric line that begins with name.
func (p *process) metric(name string) string {
	p.t.Helper()
	a := do(p.t, http.DefaultClient, "GET", p.oam+"/metrics", "")
	for line := range strings.SplitSeq(string(a.body), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return rest
		}
	}
	return ""
}

// count is the value of a metric as a number, 0 when it is not there.
func (p *process) count(name string) (n int) {
	p.t.Helper()
	_, _ = fmt.Sscan(p.metric(name), &n)
	return n
}

// binding is a registration of UE n.
func binding(n int, extra ...string) string {
	return fmt.Sprintf(`{"supi":"imsi-00101%010d","ipv4Addr":"10.%d.%d.%d","dnn":"internet","snssai":{"sst":1,"sd":"0000AB"},`+
		`"pcfFqdn":"pcf1.example.com","pcfId":"54804518-4191-46b3-955c-ac631f953ed8"%s}`,
		n, n>>16&255, n>>8&255, n&255, strings.Join(append([]string{""}, extra...), ","))
}

func ipv4(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }

// shared is a folder of reference material that may lie beside the sources.
func shared(t testing.TB, path ...string) string { return spectest.Shared(t, "../..", path...) }
