package e2e

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// otp is a running peer on the diameter application of Erlang/OTP.
type otp struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer for what the peer prints.
func (o *otp) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(b)
}

func (o *otp) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.String()
}

// startOTP starts a third-party peer in a role, pcf or af.
func startOTP(t *testing.T, role, host, realm string, args ...string) *otp {
	t.Helper()
	script := filepath.Join(shared(t, "peers", "diameter"), "rx_peer.escript")
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no Erlang here (apt-get install erlang-diameter erlang-dev): skipping")
	}
	o := &otp{t: t, done: make(chan struct{})}
	o.cmd = exec.Command("escript", append([]string{script, role, "--origin-host", host, "--realm", realm}, args...)...)
	o.cmd.Stdout, o.cmd.Stderr = o, o
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.done)
		_ = o.cmd.Wait()
	}()
	t.Cleanup(func() { o.signal(syscall.SIGKILL); <-o.done })
	return o
}

func (o *otp) signal(s syscall.Signal) { _ = o.cmd.Process.Signal(s) }

// says waits for a text.
func (o *otp) says(text string) {
	o.t.Helper()
	if !eventually(60*time.Second, func() bool { return strings.Contains(o.text(), text) }) {
		o.t.Fatalf("no %q in:\n%s", text, o.text())
	}
}

// wait waits for the end and returns the exit code.
func (o *otp) wait() int {
	o.t.Helper()
	select {
	case <-o.done:
	case <-time.After(3 * time.Minute):
		o.t.Fatalf("the peer does not end:\n%s", o.text())
	}
	return o.cmd.ProcessState.ExitCode()
}

// want checks the exit code and that the peer has printed all of the lines.
func (o *otp) want(code int, lines ...string) {
	o.t.Helper()
	if got := o.wait(); got != code {
		o.t.Errorf("exit code %d:\n%s", got, o.text())
	}
	for _, l := range lines {
		if !regexp.MustCompile(`(?m)^` + l + `$`).MatchString(o.text()) {
			o.t.Errorf("no line %q in:\n%s", l, o.text())
		}
	}
}

// otpPCF starts a PCF on a free port.
func otpPCF(t *testing.T, host string, args ...string) (*otp, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	o := startOTP(t, "pcf", host, "epc.example", append([]string{"--listen", address}, args...)...)
	o.says("ready")
	return o, address
}

// otpAF starts an AF.
func otpAF(t *testing.T, address string, args ...string) *otp {
	t.Helper()
	return startOTP(t, "af", "af.ims.example", "ims.example", append([]string{"--connect", address, "--dest-realm", "epc.example"}, args...)...)
}

// peerLine is a configured peer of bsfd that it dials.
func peerLine(host, address, more string) string {
	return fmt.Sprintf("    - {host: %s, realm: epc.example, address: '%s', connect: true%s}\n", host, address, more)
}

// TestOTPSessions proves RX-001, RX-003, RX-036 and RX-038 between two
// third-party peers: 1,000 sessions with AAR and STR, a RAR and an ASR back in
// each, by IPv4 address and by IPv6 prefix, and the errors.
func TestOTPSessions(t *testing.T) {
	t.Parallel()
	_, pcf := otpPCF(t, "pcf.epc.example", "--rar", "10", "--asr", "40")
	p, address := launchRx(t, "  allowedRealms: [ims.example]\n  peers:\n"+peerLine("pcf.epc.example", pcf, ""))
	p.atPCF("pcf.epc.example", 1, 1001)
	p.peerIs("pcf.epc.example", "Open")
	otpAF(t, address, "--count", "1000", "--window", "64", "--hold", "2000", "--ip", "10.0.0.1").want(0,
		"aar 2001: 1000", "str 2001: 1000", "'RAR' received: 1000", "'ASR' received: 1000", `disconnect: \d{1,3} ms .*`)
	otpAF(t, address, "--count", "500", "--window", "32", "--ip", "", "--ipv6-prefix", "2001:db8:0:1::/64").want(0, "aar 2001: 500", "str 2001: 500")
	otpAF(t, address, "--count", "5", "--ip", "", "--ipv6-prefix", "2001:db8:0:1::5/128", "--ipv6-long", "--ip-range", "1", "--dnn", "internet", "--drmp", "3").want(0, "aar 2001: 5")
	otpAF(t, address, "--count", "3", "--ip", "10.99.0.1", "--expect", "5065").want(0, `aar {experimental,5065}: 3`)
	otpAF(t, address, "--ip", "10.0.0.1", "--imsi", "001010000000001", "--count", "1").want(0, "aar 2001: 1")
	otpAF(t, address, "--ip", "10.0.0.1", "--imsi", "001019999999999", "--expect", "5065").want(0, `aar {experimental,5065}: 1`)
	otpAF(t, address, "--ip", "", "--expect", "5005").want(0, "aar 5005: 1")
	otpAF(t, address, "--dest-host", "nobody.epc.example", "--expect", "3002").want(0, "aar 3002: 1")
	otpAF(t, address, "--dest-realm", "nowhere.example", "--expect", "3003").want(0, "aar 3003: 1")
	if got := p.metric("ocbsf_diam_pending_requests"); got != "0" {
		t.Errorf("%s pending", got)
	}
}

// certificateOf issues a certificate for a host.
func (a *authority) certificateOf(host string, names ...string) (cert, key string) {
	a.t.Helper()
	cert, key = filepath.Join(a.dir, host+".pem"), filepath.Join(a.dir, host+".key")
	a.issueFor(cert, key, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert, key
}

// TestOTPOverTLS proves RX-063 with third-party peers: TLS from the first
// octet in both directions, certificates of both sides, their names, and a
// reload.
func TestOTPOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	own, ownKey := ca.certificateOf("bsf.epc.example", "bsf.epc.example")
	pcfCert, pcfKey := ca.certificateOf("pcf.epc.example")
	afCert, afKey := ca.certificateOf("af.ims.example", "af.ims.example")
	_, pcf := otpPCF(t, "pcf.epc.example", "--tls-cert", pcfCert, "--tls-key", pcfKey, "--tls-ca", ca.file)
	p, _ := launchRx(t, fmt.Sprintf("  allowedRealms: [ims.example]\n  listenTls: ['127.0.0.1:0']\n  listen: []\n"+
		"  tls: {certFile: %s, keyFile: %s, caFile: %s, mutual: true}\n  peers:\n", own, ownKey, ca.file)+
		peerLine("pcf.epc.example", pcf, ", transport: tls, minTlsVersion: '1.2', maxTlsVersion: '1.2'")+
		peerLine("other.epc.example", pcf, ", transport: tls"), "--diameter.listen", "")
	address := strings.TrimPrefix(p.address("diameter"), "tls://")
	p.atPCF("pcf.epc.example", 1, 101)
	p.peerIs("pcf.epc.example", "Open")
	otpAF(t, address, "--count", "100", "--ip", "10.0.0.1", "--tls-cert", afCert, "--tls-key", afKey, "--tls-ca", ca.file).want(0, "aar 2001: 100", "str 2001: 100")
	// The certificate names another host than the CER.
	otpAF(t, address, "--wait", "3000", "--tls-cert", pcfCert, "--tls-key", pcfKey, "--tls-ca", ca.file).want(2)
	// TCP to a port for TLS.
	otpAF(t, address, "--wait", "3000").want(2)
	if got := p.peer("other.epc.example"); !strings.Contains(got.LastError, "other.epc.example") {
		t.Errorf("a peer with the certificate of another: %+v", got)
	}
	ca.certificateOf("bsf.epc.example", "bsf.epc.example")
	p.signal(syscall.SIGHUP)
	if !p.waitFor("certificates read again", 10*time.Second) {
		t.Error(p.logs())
	}
	otpAF(t, address, "--count", "1", "--ip", "10.0.0.1", "--tls-cert", afCert, "--tls-key", afKey, "--tls-ca", ca.file).want(0)
	if err := os.WriteFile(own, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	if !p.waitFor("the old certificates stay", 10*time.Second) {
		t.Error(p.logs())
	}
	otpAF(t, address, "--count", "1", "--ip", "10.0.0.1", "--tls-cert", afCert, "--tls-key", afKey, "--tls-ca", ca.file).want(0)
	if got := p.metric(`dgw_tls_cert_expiration_seconds{file="` + own + `",subject="CN=bsf.epc.example"}`); got == "" {
		t.Error("no expiry metric")
	}
}

// TestOTPFailover proves RX-067 with third-party peers: a peer that is killed
// with requests in hand loses them to the alternate, which sees the T bit.
func TestOTPFailover(t *testing.T) {
	t.Parallel()
	first, address1 := otpPCF(t, "a.epc.example", "--ignore", "1", "--print")
	second, address2 := otpPCF(t, "b.epc.example", "--print")
	p, address := launchRx(t, "  allowedRealms: [ims.example]\n  timers: {response: 30s}\n  routes:\n"+
		"    - {host: 'pcf*', priority: 1, peers: [a.epc.example]}\n    - {host: 'pcf*', priority: 2, peers: [b.epc.example]}\n  peers:\n"+
		peerLine("a.epc.example", address1, "")+peerLine("b.epc.example", address2, ""))
	p.atPCF("pcf.epc.example", 1, 11)
	p.peerIs("a.epc.example", "Open")
	p.peerIs("b.epc.example", "Open")
	af := otpAF(t, address, "--count", "10", "--window", "10", "--ip", "10.0.0.1", "--timeout", "20000")
	if !eventually(30*time.Second, func() bool { return strings.Count(first.text(), "AAR ") == 10 }) {
		t.Fatalf("%s\n%s", first.text(), af.text())
	}
	first.signal(syscall.SIGKILL)
	af.want(0, "aar 2001: 10", "str 2001: 10")
	if got := len(regexp.MustCompile(`(?m)^AAR T `).FindAllString(second.text(), -1)); got != 10 {
		t.Errorf("%d requests with the T bit:\n%s", got, second.text())
	}
	if strings.Contains(first.text(), "AAR T ") {
		t.Error("the T bit on a first transmission")
	}
	if got := p.metric(`ocbsf_diam_request_network_total{msgType="AAR",retry="true",retryReason="connection"}`); got != "10" {
		t.Errorf("%s retries counted", got)
	}
}

// TestOTPKilled proves that a PCF and an AF that are killed in mid-load leave
// nothing behind: every request of the AF is answered, and service goes on
// when they are back.
func TestOTPKilled(t *testing.T) {
	t.Parallel()
	pcf, pcfAddress := otpPCF(t, "pcf.epc.example")
	p, address := launchRx(t, "  allowedRealms: [ims.example]\n  peers:\n"+peerLine("pcf.epc.example", pcfAddress, ""))
	p.atPCF("pcf.epc.example", 1, 101)
	p.peerIs("pcf.epc.example", "Open")
	af := otpAF(t, address, "--count", "3000", "--rate", "500", "--window", "64", "--ip", "10.0.0.1", "--ip-range", "100")
	if !eventually(30*time.Second, func() bool { return p.count(`ocbsf_diam_request_received_total{msgType="AAR"}`) > 100 }) {
		t.Fatal(af.text())
	}
	pcf.signal(syscall.SIGKILL)
	p.peerIs("pcf.epc.example", "Closed")
	again := startOTP(t, "pcf", "pcf.epc.example", "epc.example", "--listen", pcfAddress)
	again.says("ready")
	af.wait()
	out := af.text()
	if !strings.Contains(out, "3000 sessions") || !strings.Contains(out, "aar 3002:") || strings.Contains(out, "timeout") || strings.Contains(out, "failover") || strings.Contains(out, "malformed") {
		t.Errorf("%s", out)
	}
	p.peerIs("pcf.epc.example", "Open")
	dying := otpAF(t, address, "--count", "3000", "--rate", "500", "--window", "64", "--ip", "10.0.0.1", "--ip-range", "100")
	dying.says("up:")
	dying.signal(syscall.SIGKILL)
	<-dying.done
	p.peerIs("af.ims.example", "Closed")
	if !eventually(20*time.Second, func() bool { return p.metric("ocbsf_diam_pending_requests") == "0" }) {
		t.Errorf("%s pending", p.metric("ocbsf_diam_pending_requests"))
	}
	otpAF(t, address, "--count", "100", "--ip", "10.0.0.1").want(0, "aar 2001: 100")
}

// TestOTPWatchdog proves RX-064 and RX-065 with third-party peers: an idle
// connection lives on watchdogs of both sides, and a peer that hangs is found
// out, with an answer to what it had.
func TestOTPWatchdog(t *testing.T) {
	t.Parallel()
	pcf, pcfAddress := otpPCF(t, "pcf.epc.example", "--watchdog", "60000")
	p, address := launchRx(t, "  allowedRealms: [ims.example]\n  peers:\n"+peerLine("pcf.epc.example", pcfAddress, ""))
	p.atPCF("pcf.epc.example", 1, 2)
	p.peerIs("pcf.epc.example", "Open")
	idle := otpAF(t, address, "--count", "1", "--ip", "10.0.0.1", "--linger", "19000", "--watchdog", "60000")
	idle.want(0, `base protocol: .*DWA send [23].*DWR recv [23].*`)
	pcf.signal(syscall.SIGSTOP)
	otpAF(t, address, "--count", "1", "--ip", "10.0.0.1", "--expect", "3002", "--timeout", "15000").want(0, "aar 3002: 1")
	if !eventually(40*time.Second, func() bool { return strings.Contains(p.logs(), "the watchdog was not answered") }) {
		t.Errorf("%+v\n%s", p.peer("pcf.epc.example"), p.logs())
	}
	if !strings.Contains(p.logs(), "no answer to the watchdog, requests go elsewhere") {
		t.Error(p.logs())
	}
	pcf.signal(syscall.SIGCONT)
	if !eventually(60*time.Second, func() bool { x := p.peer("pcf.epc.example"); return x.State == "Open" && x.Watchdog == "OKAY" }) {
		t.Errorf("%+v\n%s", p.peer("pcf.epc.example"), p.logs())
	}
	otpAF(t, address, "--count", "1", "--ip", "10.0.0.1").want(0, "aar 2001: 1")
}

// TestRelayOnEitherSide proves RX-031, RX-032 and RX-038 with freeDiameter as
// a relay before the AF and before the PCF.
func TestRelayOnEitherSide(t *testing.T) {
	t.Parallel()
	peers := shared(t, "peers", "diameter")
	for _, need := range []string{"freeDiameterd", "escript", "unshare", "ip", "openssl", "curl"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("no %s here (apt-get install freediameterd freediameter-extensions erlang-diameter erlang-dev openssl iproute2 curl): skipping", need)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root: skipping")
	}
	out, err := exec.Command(filepath.Join("testdata", "dra.sh"), program, peers).CombinedOutput()
	if err != nil || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v\n%s", err, out)
	}
}
