package sbi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/tlsfiles"
)

// TLSConfig configures TLS of a listener. All files are PEM.
type TLSConfig struct {
	// CertFile and KeyFile hold the certificate chain and its key; both empty
	// switches TLS off.
	CertFile string `koanf:"certFile" usage:"certificate chain, PEM"`
	KeyFile  string `koanf:"keyFile" usage:"private key, PEM"`
	// ClientCAFile, when set, makes clients present a certificate of one of
	// its authorities.
	ClientCAFile string `koanf:"clientCaFile" usage:"authorities for client certificates, PEM"`
	// MinVersion is "1.2" or "1.3".
	MinVersion string `koanf:"minVersion" usage:"lowest TLS version: 1.2 or 1.3"`
	// CloseAfter is how long after a renewal of the certificate connections may
	// keep the old one; 0 lets them.
	CloseAfter time.Duration `koanf:"closeAfter" usage:"time after which connections with a certificate that was replaced are closed (GOAWAY); 0s keeps them"`
}

// Enabled reports whether TLS is configured.
func (c TLSConfig) Enabled() bool { return c.CertFile != "" || c.KeyFile != "" }

// Check reports the first wrong setting with its key.
func (c TLSConfig) Check() error {
	switch {
	case c.CertFile == "" && c.KeyFile != "":
		return errors.New("tls.certFile: required together with keyFile")
	case c.CertFile != "" && c.KeyFile == "":
		return errors.New("tls.keyFile: required together with certFile")
	case c.ClientCAFile != "" && c.CertFile == "":
		return errors.New("tls.clientCaFile: needs certFile and keyFile")
	}
	if c.CloseAfter < 0 || c.CloseAfter > 30*24*time.Hour {
		return errors.New("tls.closeAfter: must be 0s to 720h")
	}
	if _, err := tlsfiles.Version(c.MinVersion); err != nil {
		return fmt.Errorf("tls.minVersion: %w", err)
	}
	return nil
}

// files are the files of the listener.
func (c TLSConfig) files() tlsfiles.Files {
	return tlsfiles.Files{CertFile: c.CertFile, KeyFile: c.KeyFile, CAFile: c.ClientCAFile}
}

// State reports the state of the files without changing what is in use.
func (c TLSConfig) State(now time.Time) (tlsfiles.State, error) {
	_, state, err := c.files().Load(now)
	return state, err
}

// certificates are the certificate of the listener and the authorities of its
// clients, read again on demand.
type certificates struct {
	cfg   TLSConfig
	store *tlsfiles.Store
	log   zerolog.Logger
}

// newCertificates reads the files; one that is missing or corrupt is an
// error. An expired certificate is served, with a warning.
func newCertificates(cfg TLSConfig, log zerolog.Logger, reg prometheus.Registerer) (*certificates, error) {
	gauges := tlsfiles.Gauges{
		Expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "security_cert_x509_expiration_seconds", Help: "When the certificate expires, in seconds since 1970.",
		}, []string{"file", "subject"}),
		State: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "oc_certificatemanagement_tls_certificate_info", Help: "1 for the state that the certificate file is in.",
		}, []string{"file", "state"}),
	}
	reg.MustRegister(gauges.Expiry, gauges.State)
	c := &certificates{cfg: cfg, store: tlsfiles.NewStore(cfg.files(), gauges), log: log.With().Str("component", "tls").Logger()}
	return c, c.reload()
}

// reload reads the files again. New connections use them; open ones stay.
func (c *certificates) reload() error {
	state, err := c.store.Reload()
	if err != nil {
		return fmt.Errorf("certificate %s: %w", state, err)
	}
	if state == tlsfiles.Expired {
		c.log.Warn().Str("file", c.cfg.CertFile).Time("notAfter", c.store.Current().Own[0].Leaf.NotAfter).Msg("certificate has expired")
	}
	return nil
}

// current is the configuration of a connection that begins now.
func (c *certificates) current() (*tls.Config, error) {
	lowest, err := tlsfiles.Version(c.cfg.MinVersion)
	b := c.store.Current()
	conf := &tls.Config{Certificates: b.Own, MinVersion: lowest, NextProtos: []string{"h2", "http/1.1"}}
	if b.CAs != nil {
		conf.ClientCAs, conf.ClientAuth = b.CAs, tls.RequireAndVerifyClientCert
	}
	return conf, err
}

// serverConfig hands each new connection the files that are current then.
func (c *certificates) serverConfig() (*tls.Config, error) {
	base, err := c.current()
	if err != nil {
		return nil, err
	}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current() }
	return base, nil
}
