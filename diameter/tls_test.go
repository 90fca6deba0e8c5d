package diameter_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// selfSigned writes a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, host string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLSVersions proves that the versions of TLS are bounded for the node and
// for each peer, on connections that come in.
func TestTLSVersions(t *testing.T) {
	cert, key := selfSigned(t, "bsf.epc.example")
	n := start(t, func(c *diameter.Config) {
		c.Listen, c.ListenTLS = nil, []string{"127.0.0.1:0"}
		c.TLS.CertFile, c.TLS.KeyFile = cert, key
		c.Peers = []diameter.Peer{
			{Host: "new.epc.example", MinTLS: "1.3"}, {Host: "old.epc.example", MaxTLS: "1.2"}, {Host: "any.epc.example"},
		}
	})
	for _, x := range []struct {
		host    string
		version uint16
		want    uint32
	}{
		{"new.epc.example", tls.VersionTLS13, 2001}, {"new.epc.example", tls.VersionTLS12, 5017},
		{"old.epc.example", tls.VersionTLS12, 2001}, {"old.epc.example", tls.VersionTLS13, 5017},
		{"any.epc.example", tls.VersionTLS12, 2001}, {"any.epc.example", tls.VersionTLS13, 2001},
	} {
		c, err := tls.Dial("tcp", n.address, &tls.Config{InsecureSkipVerify: true, MinVersion: x.version, MaxVersion: x.version})
		if err != nil {
			t.Fatal(err)
		}
		node, err := rxnode.Join(c, rxnode.Identity{Host: x.host, Realm: "epc.example"}, nil)
		got := rx.Base(rx.Success)
		if refused := (*rxnode.Refused)(nil); errors.As(err, &refused) {
			got = refused.Result
			_ = c.Close()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != rx.Base(x.want) {
			t.Errorf("%s with %s: %s", x.host, tls.VersionName(x.version), got)
		}
		if node != nil {
			if s := n.state(x.host); s.Transport != diameter.TLS {
				t.Errorf("%+v", s)
			}
			node.Close()
			until(t, "it is closed", func() bool { return n.state(x.host).State == diameter.StateClosed })
		}
	}
	if _, err := tls.Dial("tcp", n.address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("TLS 1.1: %v", err)
	}
	if n.metric("dgw_tls_cert_expiration_seconds") < float64(time.Now().Unix()) {
		t.Error("no expiry")
	}
}

// TestRenewedCertificate proves that a peer with a connection to the old
// certificate is disconnected with a DPR after the time that is set, and sees
// the new one when it connects again.
func TestRenewedCertificate(t *testing.T) {
	cert, key := selfSigned(t, "first.epc.example")
	n := start(t, func(c *diameter.Config) {
		c.Listen, c.ListenTLS = nil, []string{"127.0.0.1:0"}
		c.TLS.CertFile, c.TLS.KeyFile, c.TLS.CloseAfter = cert, key, time.Millisecond
	})
	join := func() (subject string) {
		c, err := tls.Dial("tcp", n.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		node, err := rxnode.Join(c, rxnode.Identity{Host: "af.ims.example", Realm: "ims.example"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Close)
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := join(); got != "first.epc.example" {
		t.Fatal(got)
	}
	freshCert, freshKey := selfSigned(t, "second.epc.example")
	for from, to := range map[string]string{freshCert: cert, freshKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	n.gateway.Reload()
	until(t, "the peer is disconnected", func() bool { return n.state("af.ims.example").State == diameter.StateClosed })
	if got := join(); got != "second.epc.example" {
		t.Errorf("the new connection sees %s", got)
	}
	n.open("af.ims.example")
}
