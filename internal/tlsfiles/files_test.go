package tlsfiles

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// write makes a certificate that ends at a time, with its key.
func write(t *testing.T, dir, name string, end time.Time) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := Files{CertFile: filepath.Join(dir, name+".pem"), KeyFile: filepath.Join(dir, name+".key")}
	for file, block := range map[string]*pem.Block{
		f.CertFile: {Type: "CERTIFICATE", Bytes: der}, f.KeyFile: {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestStates(t *testing.T) {
	dir := t.TempDir()
	good := write(t, dir, "good", time.Now().Add(time.Hour))
	old := write(t, dir, "old", time.Now().Add(-time.Minute))
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files Files
		want  State
		fails bool
	}{
		"nothing":              {Files{}, Valid, false},
		"valid":                {good, Valid, false},
		"with authorities":     {Files{good.CertFile, good.KeyFile, good.CertFile}, Valid, false},
		"authorities alone":    {Files{CAFile: good.CertFile}, Valid, false},
		"expired":              {old, Expired, false},
		"no certificate":       {Files{CertFile: filepath.Join(dir, "x"), KeyFile: good.KeyFile}, Missing, true},
		"no key":               {Files{CertFile: good.CertFile, KeyFile: filepath.Join(dir, "x")}, Missing, true},
		"no authorities":       {Files{CAFile: filepath.Join(dir, "x")}, Missing, true},
		"a key of another":     {Files{CertFile: good.CertFile, KeyFile: old.KeyFile}, Corrupt, true},
		"no PEM":               {Files{CertFile: junk, KeyFile: junk}, Corrupt, true},
		"authorities, no PEM":  {Files{CAFile: junk}, Corrupt, true},
		"a directory for file": {Files{CAFile: dir}, Corrupt, true},
	} {
		b, state, err := c.files.Load(time.Now())
		if state != c.want || (err != nil) != c.fails || (b == nil) != c.fails {
			t.Errorf("%s: %v, %s, %v", name, b, state, err)
		}
	}
}

func TestReloadKeepsTheLastGoodFiles(t *testing.T) {
	dir := t.TempDir()
	f := write(t, dir, "a", time.Now().Add(time.Hour))
	g := Gauges{
		Expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "e"}, []string{"file", "subject"}),
		State:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "s"}, []string{"file", "state"}),
	}
	s := NewStore(f, g)
	if s.Current() != nil {
		t.Error("something was read before the first reload")
	}
	if state, err := s.Reload(); err != nil || state != Valid {
		t.Fatal(state, err)
	}
	first := s.Current()
	if err := os.WriteFile(f.CertFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if state, err := s.Reload(); err == nil || state != Corrupt || s.Current() != first {
		t.Errorf("%s %v", state, err)
	}
	if testutil.ToFloat64(g.State.WithLabelValues(f.CertFile, string(Corrupt))) != 1 || testutil.ToFloat64(g.State.WithLabelValues(f.CertFile, string(Valid))) != 0 {
		t.Error("the state is not told")
	}
	end := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	write(t, dir, "a", end)
	if state, err := s.Reload(); err != nil || state != Valid || s.Current() == first {
		t.Errorf("%s %v", state, err)
	}
	opened := time.Now().Add(-time.Hour)
	if !s.Outdated(opened, time.Nanosecond) || s.Outdated(opened, time.Hour) || s.Outdated(opened, 0) || s.Outdated(time.Now().Add(time.Hour), time.Nanosecond) {
		t.Error("which connections are outdated")
	}
	if got := testutil.ToFloat64(g.Expiry.WithLabelValues(f.CertFile, "CN=a")); got != float64(end.Unix()) {
		t.Errorf("expires %v", got)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		low, high string
		l, h      uint16
		fails     bool
	}{
		{"1.2", "1.3", tls.VersionTLS12, tls.VersionTLS13, false}, {"1.3", "1.3", tls.VersionTLS13, tls.VersionTLS13, false},
		{"1.3", "1.2", 0, 0, true}, {"1.1", "1.3", 0, 0, true}, {"1.2", "", 0, 0, true},
	} {
		l, h, err := Versions(c.low, c.high)
		if l != c.l || h != c.h || (err != nil) != c.fails {
			t.Errorf("%s to %s: %x %x %v", c.low, c.high, l, h, err)
		}
	}
}
