package diameter

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/diameter/rx"
)

// certificates are the TLS files, read. They are read again on demand; a
// bundle that cannot be used leaves the last good one in place.
type certificates struct {
	files   TLSFiles
	current atomic.Pointer[bundle]
	expiry  *prometheus.GaugeVec
}

type bundle struct {
	own  []tls.Certificate
	pool *x509.CertPool
}

func newCertificates(files TLSFiles, reg prometheus.Registerer) (*certificates, error) {
	c := &certificates{files: files, expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "dgw_tls_cert_expiration_seconds", Help: "When the certificate of the Rx gateway expires, in seconds since 1970.",
	}, []string{"file", "subject"})}
	reg.MustRegister(c.expiry)
	return c, c.reload()
}

// reload reads the files again. New connections use them.
func (c *certificates) reload() error {
	b := new(bundle)
	if c.files.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
		if err != nil {
			return fmt.Errorf("tls.certFile: %w", err)
		}
		b.own = []tls.Certificate{pair}
	}
	if c.files.CAFile != "" {
		pem, err := os.ReadFile(c.files.CAFile)
		if err != nil {
			return fmt.Errorf("tls.caFile: %w", err)
		}
		b.pool = x509.NewCertPool()
		if !b.pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("tls.caFile: %s holds no certificate", c.files.CAFile)
		}
	}
	c.current.Store(b)
	c.expiry.Reset()
	for _, pair := range b.own {
		c.expiry.WithLabelValues(c.files.CertFile, pair.Leaf.Subject.String()).Set(float64(pair.Leaf.NotAfter.Unix()))
	}
	return nil
}

// Check reports why the TLS files cannot be used, or nil.
func (t TLSFiles) Check() error {
	_, err := newCertificates(t, prometheus.NewRegistry())
	return err
}

// server is the configuration for connections that come in.
func (c *certificates) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		low, high, err := tlsVersions(c.files.MinVersion, c.files.MaxVersion)
		if err != nil {
			return nil, err
		}
		b := c.current.Load()
		cfg := &tls.Config{Certificates: b.own, MinVersion: low, MaxVersion: high}
		if c.files.Mutual {
			cfg.ClientCAs, cfg.ClientAuth = b.pool, tls.RequireAndVerifyClientCert
		}
		return cfg, nil
	}}
}

// client is the configuration to dial a peer. The certificate must be one of
// the authorities and name the peer.
func (c *certificates) client(p Peer) (*tls.Config, error) {
	low, high, err := p.tlsVersions(c.files)
	if err != nil {
		return nil, err
	}
	b := c.current.Load()
	return &tls.Config{
		Certificates: b.own, MinVersion: low, MaxVersion: high, ServerName: p.Host,
		// The standard check knows no certificate that has its name in the
		// subject alone; VerifyConnection makes the same check with it.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return verify(state, b.pool, p.Host)
		},
	}, nil
}

// verify checks the chain of the peer and its name.
func verify(state tls.ConnectionState, pool *x509.CertPool, host string) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the peer has no certificate")
	}
	opts := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	leaf := state.PeerCertificates[0]
	if _, err := leaf.Verify(opts); err != nil {
		return err
	}
	return named(leaf, host)
}

// named checks that the certificate is for the host. One without alternative
// names has its name in the subject.
func named(leaf *x509.Certificate, host string) error {
	if len(leaf.DNSNames) == 0 && strings.EqualFold(leaf.Subject.CommonName, host) {
		return nil
	}
	return leaf.VerifyHostname(host)
}

// checkSecurity checks a connection that came in against its peer: the version
// of TLS that is configured for it, and with mutual TLS that the certificate
// names the host that the CER names.
func (c *conn) checkSecurity(p *peer) error {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	state, files := t.ConnectionState(), c.g.cfg.TLS
	low, high, err := p.cfg.tlsVersions(files)
	if err != nil || state.Version < low || state.Version > high {
		return refuse(rx.NoCommonSecurity, "%s may not use %s", p.host, tls.VersionName(state.Version))
	}
	if files.Mutual && (len(state.PeerCertificates) == 0 || named(state.PeerCertificates[0], p.host) != nil) {
		return refuse(rx.UnknownPeer, "the certificate is not for %s", p.host)
	}
	return nil
}

// tlsVersions are the versions that may be used with the peer: its own, or those
// of the node.
func (p Peer) tlsVersions(files TLSFiles) (low, high uint16, err error) {
	return tlsVersions(orElse(p.MinTLS, files.MinVersion), orElse(p.MaxTLS, files.MaxVersion))
}

// tlsVersions reads a lowest and a highest version.
func tlsVersions(low, high string) (uint16, uint16, error) {
	versions := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	l, h := versions[low], versions[high]
	switch {
	case l == 0 || h == 0:
		return 0, 0, errors.New(`TLS versions are "1.2" and "1.3"`)
	case l > h:
		return 0, 0, fmt.Errorf("TLS version %s is above %s", low, high)
	}
	return l, h, nil
}
