package diameter

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/diameter/rx"
	"bsfd/internal/tlsfiles"
)

// certificates are the TLS files, read again on demand.
type certificates struct {
	files TLSFiles
	store *tlsfiles.Store
}

func newCertificates(files TLSFiles, reg prometheus.Registerer) (*certificates, error) {
	expiry := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "dgw_tls_cert_expiration_seconds", Help: "When the certificate of the Rx gateway expires, in seconds since 1970.",
	}, []string{"file", "subject"})
	reg.MustRegister(expiry)
	names := tlsfiles.Files{CertFile: files.CertFile, KeyFile: files.KeyFile, CAFile: files.CAFile}
	c := &certificates{files: files, store: tlsfiles.NewStore(names, tlsfiles.Gauges{Expiry: expiry})}
	return c, c.reload()
}

// reload reads the files again. New connections use them.
func (c *certificates) reload() error {
	_, err := c.store.Reload()
	wrong := (*tlsfiles.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Authorities:
		return fmt.Errorf("tls.caFile: %w", err)
	}
	return fmt.Errorf("tls.certFile: %w", err)
}

// Check reports why the TLS files cannot be used, or nil.
func (t TLSFiles) Check() error {
	_, err := newCertificates(t, prometheus.NewRegistry())
	return err
}

// server is the configuration for connections that come in.
func (c *certificates) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		low, high, err := tlsfiles.Versions(c.files.MinVersion, c.files.MaxVersion)
		if err != nil {
			return nil, err
		}
		b := c.store.Current()
		cfg := &tls.Config{Certificates: b.Own, MinVersion: low, MaxVersion: high}
		if c.files.Mutual {
			cfg.ClientCAs, cfg.ClientAuth = b.CAs, tls.RequireAndVerifyClientCert
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
	b := c.store.Current()
	return &tls.Config{
		Certificates: b.Own, MinVersion: low, MaxVersion: high, ServerName: p.Host,
		// The standard check knows no certificate that has its name in the
		// subject alone; VerifyConnection makes the same check with it.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return verify(state, b.CAs, p.Host)
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
	return tlsfiles.Versions(orElse(p.MinTLS, files.MinVersion), orElse(p.MaxTLS, files.MaxVersion))
}
