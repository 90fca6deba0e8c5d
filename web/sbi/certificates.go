package sbi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
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
	case c.MinVersion != "1.2" && c.MinVersion != "1.3":
		return errors.New(`tls.minVersion: must be "1.2" or "1.3"`)
	}
	return nil
}

// CertificateState is the state of a certificate file.
type CertificateState string

// The states of a certificate.
const (
	CertificateValid   CertificateState = "VALID"   // usable now
	CertificateExpired CertificateState = "EXPIRED" // past its notAfter
	CertificateMissing CertificateState = "MISSING" // a file of the bundle is not there
	CertificateCorrupt CertificateState = "CORRUPT" // a file cannot be read or does not fit
)

var certificateStates = [...]CertificateState{CertificateValid, CertificateExpired, CertificateMissing, CertificateCorrupt}

// Certificates holds the certificate of a listener and reads it again on
// demand. A bundle that cannot be used leaves the last good one in place.
type Certificates struct {
	cfg     TLSConfig
	current atomic.Pointer[tls.Config]
	log     zerolog.Logger
	expiry  *prometheus.GaugeVec
	state   *prometheus.GaugeVec
}

// NewCertificates reads the bundle; one that is missing or corrupt is an
// error. An expired certificate is served, with a warning.
func NewCertificates(cfg TLSConfig, log zerolog.Logger, reg prometheus.Registerer) (*Certificates, error) {
	c := &Certificates{
		cfg: cfg,
		log: log.With().Str("component", "tls").Logger(),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "security_cert_x509_expiration_seconds", Help: "When the certificate expires, in seconds since 1970.",
		}, []string{"file", "subject"}),
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "oc_certificatemanagement_tls_certificate_info", Help: "1 for the state that the certificate file is in.",
		}, []string{"file", "state"}),
	}
	reg.MustRegister(c.expiry, c.state)
	return c, c.Reload()
}

// Reload reads the bundle again. New connections use it; open ones stay.
func (c *Certificates) Reload() error {
	fresh, leaf, state, err := c.cfg.load(time.Now())
	for _, s := range certificateStates {
		v := 0.0
		if s == state {
			v = 1
		}
		c.state.WithLabelValues(c.cfg.CertFile, string(s)).Set(v)
	}
	if err != nil {
		return fmt.Errorf("certificate %s: %w", state, err)
	}
	c.expiry.Reset()
	c.expiry.WithLabelValues(c.cfg.CertFile, leaf.Subject.String()).Set(float64(leaf.NotAfter.Unix()))
	if state == CertificateExpired {
		c.log.Warn().Str("file", c.cfg.CertFile).Time("notAfter", leaf.NotAfter).Msg("certificate has expired")
	}
	c.current.Store(fresh)
	return nil
}

// State reports the state of the bundle without changing what is in use.
func (c TLSConfig) State(now time.Time) (CertificateState, error) {
	_, _, state, err := c.load(now)
	return state, err
}

func (c TLSConfig) load(now time.Time) (*tls.Config, *x509.Certificate, CertificateState, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, nil, missingOrCorrupt(err), err
	}
	fresh := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.MinVersion == "1.3" {
		fresh.MinVersion = tls.VersionTLS13
	}
	if c.ClientCAFile != "" {
		pem, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			return nil, nil, missingOrCorrupt(err), err
		}
		fresh.ClientCAs = x509.NewCertPool()
		if !fresh.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, nil, CertificateCorrupt, fmt.Errorf("%s: no certificate", c.ClientCAFile)
		}
		fresh.ClientAuth = tls.RequireAndVerifyClientCert
	}
	state := CertificateValid
	if now.After(pair.Leaf.NotAfter) {
		state = CertificateExpired
	}
	return fresh, pair.Leaf, state, nil
}

func missingOrCorrupt(err error) CertificateState {
	if errors.Is(err, fs.ErrNotExist) {
		return CertificateMissing
	}
	return CertificateCorrupt
}

// serverConfig hands each new connection the bundle that is current then.
func (c *Certificates) serverConfig() *tls.Config {
	base := c.current.Load().Clone()
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil }
	return base
}
