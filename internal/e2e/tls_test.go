package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	dir  string
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = filepath.Join(a.dir, "ca.pem")
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// issue writes a certificate for the loopback address and its key. The files
// are those of the one before.
func (a *authority) issue(name string, expires time.Time) (certFile, keyFile string) {
	a.t.Helper()
	return a.issueAs("", name, expires)
}

// issueAs writes a certificate and its key into files with a prefix.
func (a *authority) issueAs(prefix, name string, expires time.Time) (certFile, keyFile string) {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: expires,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certFile, keyFile = filepath.Join(a.dir, prefix+"cert.pem"), filepath.Join(a.dir, prefix+"key.pem")
	a.issueFor(certFile, keyFile, template)
	return certFile, keyFile
}

// issueFor writes a certificate of the template and its key.
func (a *authority) issueFor(certFile, keyFile string, template *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(certFile, "CERTIFICATE", der)
	a.write(keyFile, "EC PRIVATE KEY", keyDER)
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// TestTLS proves SBI-010: HTTP/2 over TLS 1.2 and 1.3 by ALPN, certificates
// that change without dropping connections, and their state as metrics.
func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	certFile, keyFile := ca.issue("first", time.Now().Add(time.Hour))
	p := launch(t, "--storage.engine", "memory", "--sbi.tls.certFile", certFile, "--sbi.tls.keyFile", keyFile)
	if !strings.HasPrefix(p.sbi, "https://") {
		t.Fatalf("address %s", p.sbi)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := newClient(&tls.Config{RootCAs: ca.pool(), MinVersion: version, MaxVersion: version})
		resp, err := c.Get(p.sbi + base + "/pcfBindings?ipv4Addr=10.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.TLS.Version != version || resp.StatusCode != 204 {
			t.Errorf("%s, TLS %x, %d", resp.Proto, resp.TLS.Version, resp.StatusCode)
		}
	}
	if c, err := tls.Dial("tcp", strings.TrimPrefix(p.sbi, "https://"), &tls.Config{RootCAs: ca.pool(), MaxVersion: tls.VersionTLS11}); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is accepted")
	}

	open := newClient(&tls.Config{RootCAs: ca.pool()})
	do(t, open, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", "")
	subject := func() string {
		c, err := tls.Dial("tcp", strings.TrimPrefix(p.sbi, "https://"), &tls.Config{RootCAs: ca.pool(), InsecureSkipVerify: true}) //nolint:gosec // an expired certificate is under test
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	state := func(s string) string {
		return p.metric(`oc_certificatemanagement_tls_certificate_info{file="` + certFile + `",state="` + s + `"}`)
	}
	reload := func(says string) {
		t.Helper()
		before := strings.Count(p.logs(), "certificates read again")
		p.signal(syscall.SIGHUP)
		if !eventually(5*time.Second, func() bool { return strings.Count(p.logs(), "certificates read again") > before }) {
			t.Fatal("SIGHUP has no effect")
		}
		if got := state(says); got != "1" {
			t.Errorf("state %s is %q", says, got)
		}
	}
	ca.issue("second", time.Now().Add(time.Hour))
	reload("VALID")
	if s := subject(); s != "second" {
		t.Errorf("new connections see %q", s)
	}
	if err := os.WriteFile(certFile, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload("CORRUPT")
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	reload("MISSING")
	if s := subject(); s != "second" {
		t.Errorf("after a broken reload new connections see %q", s)
	}
	ca.issue("third", time.Now().Add(-time.Minute))
	reload("EXPIRED")
	if a := do(t, open, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
		t.Errorf("the open connection: %d", a.status)
	}
	if !strings.Contains(string(do(t, http.DefaultClient, "GET", p.oam+"/metrics", "").body), `security_cert_x509_expiration_seconds{file="`+certFile) {
		t.Error("no metric of the expiry")
	}
}

// TestRenewedCertificate proves that connections with the old certificate go
// away after the time that is set, and that no request fails for it.
func TestRenewedCertificate(t *testing.T) {
	ca := newAuthority(t)
	certFile, keyFile := ca.issue("first", time.Now().Add(time.Hour))
	p := launch(t, "--storage.engine", "memory", "--sbi.tls.certFile", certFile, "--sbi.tls.keyFile", keyFile, "--sbi.tls.closeAfter", "100ms")
	var subject string
	c := newClient(&tls.Config{RootCAs: ca.pool(), VerifyConnection: func(s tls.ConnectionState) error {
		subject = s.PeerCertificates[0].Subject.CommonName
		return nil
	}})
	get := func() {
		t.Helper()
		if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
			t.Fatalf("%d", a.status)
		}
	}
	get()
	ca.issue("second", time.Now().Add(time.Hour))
	p.signal(syscall.SIGHUP)
	if !eventually(10*time.Second, func() bool { get(); return subject == "second" }) {
		t.Errorf("the connection still has the certificate of %q", subject)
	}
}

func TestMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	certFile, keyFile := ca.issue("server", time.Now().Add(time.Hour))
	p := launch(t, "--storage.engine", "memory", "--sbi.tls.certFile", certFile, "--sbi.tls.keyFile", keyFile,
		"--sbi.tls.clientCaFile", ca.file, "--sbi.tls.minVersion", "1.3")
	try := func(pairs ...tls.Certificate) error {
		_, err := request(newClient(&tls.Config{RootCAs: ca.pool(), Certificates: pairs}), "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", "")
		return err
	}
	load := func(a *authority) tls.Certificate {
		cert, key := a.issue("client", time.Now().Add(time.Hour))
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	if err := try(load(ca)); err != nil {
		t.Errorf("a known client: %v", err)
	}
	if try() == nil {
		t.Error("a client without a certificate is served")
	}
	if try(load(stranger)) == nil {
		t.Error("a client of another authority is served")
	}
}
