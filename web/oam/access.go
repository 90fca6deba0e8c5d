package oam

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"bsfd/internal/settings"
	"bsfd/internal/tlsfiles"
)

// Role is what somebody may do.
type Role string

// The roles.
const (
	// Viewer reads.
	Viewer Role = "viewer"
	// Operator changes settings, too.
	Operator Role = "operator"
)

// Token lets its bearer in.
type Token struct {
	Name string `koanf:"name" usage:"name of the bearer, for the audit trail"`
	Role Role   `koanf:"role" usage:"viewer or operator"`
	// SHA256 is the digest of the token in hexadecimal, so that a
	// configuration does not give it away.
	SHA256 string `koanf:"sha256" usage:"SHA-256 of the token, hexadecimal (printf %s TOKEN | sha256sum)"`
}

// Subject gives the holder of a client certificate a role.
type Subject struct {
	CommonName string `koanf:"commonName" usage:"common name of the certificate's subject"`
	Role       Role   `koanf:"role" usage:"viewer or operator"`
}

// TLSFiles are the certificates of the listener, PEM.
type TLSFiles struct {
	CertFile     string `koanf:"certFile" usage:"certificate chain, PEM"`
	KeyFile      string `koanf:"keyFile" usage:"private key, PEM"`
	ClientCAFile string `koanf:"clientCaFile" usage:"authorities of client certificates, PEM"`
}

func (c Config) checkAccess() error {
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		return errors.New("tls: certFile and keyFile belong together")
	}
	if c.TLS.ClientCAFile != "" && c.TLS.CertFile == "" {
		return errors.New("tls.clientCaFile: needs certFile")
	}
	for i, t := range c.Tokens {
		if b, err := hex.DecodeString(t.SHA256); err != nil || len(b) != sha256.Size {
			return fmt.Errorf("tokens[%d].sha256: must be 64 hexadecimal digits", i)
		}
		if t.Name == "" {
			return fmt.Errorf("tokens[%d].name: is missing", i)
		}
		if t.Role != Viewer && t.Role != Operator {
			return fmt.Errorf("tokens[%d].role: must be viewer or operator", i)
		}
	}
	for i, s := range c.Subjects {
		if s.CommonName == "" || s.Role != Viewer && s.Role != Operator {
			return fmt.Errorf("subjects[%d]: needs a commonName, and viewer or operator as role", i)
		}
	}
	return nil
}

// onLoopback reports whether only this machine reaches the address.
func onLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// access decides who may do what.
type access struct {
	cfg Config
	// open lets everybody in as an operator: the listener is on the loopback
	// interface and nobody is named.
	open bool
	// closed lets nobody in: others reach the listener, and it has no TLS or
	// nobody is named.
	closed bool
}

func newAccess(cfg Config) *access {
	named := len(cfg.Tokens) > 0 || cfg.TLS.ClientCAFile != ""
	local := onLoopback(cfg.Listen)
	return &access{cfg: cfg, open: local && !named, closed: !local && (cfg.TLS.CertFile == "" || !named)}
}

type whoKey struct{}

// who is who sent the request.
func who(r *http.Request) settings.Who {
	w, _ := r.Context().Value(whoKey{}).(settings.Who)
	return w
}

// require wraps a handler for those who have the role.
func (a *access) require(role Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if a.closed {
				writeProblem(w, http.StatusForbidden, "beyond the loopback interface this needs oam.tls with oam.tokens or oam.tls.clientCaFile")
				return
			}
			name, has := a.identify(r)
			switch {
			case name == "":
				w.Header().Set("WWW-Authenticate", `Bearer realm="bsfd"`)
				writeProblem(w, http.StatusUnauthorized, "a token or a client certificate is required")
			case has != Operator && role == Operator:
				writeProblem(w, http.StatusForbidden, "the role "+string(has)+" may only read")
			default:
				ctx := context.WithValue(r.Context(), whoKey{}, settings.Who{Name: name, Remote: r.RemoteAddr})
				next.ServeHTTP(w, r.WithContext(ctx))
			}
		})
	}
}

// identify finds out who sent the request; the name is empty when that is
// nobody known.
func (a *access) identify(r *http.Request) (name string, role Role) {
	if a.open {
		return "local", Operator
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if name, role = a.bearer(token); name != "" {
			return name, role
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		cn := r.TLS.VerifiedChains[0][0].Subject.CommonName
		for _, s := range a.cfg.Subjects {
			if s.CommonName == cn {
				return "certificate " + cn, s.Role
			}
		}
		return "certificate " + cn, Viewer
	}
	return "", ""
}

// bearer compares the token with all of them, in the same time whichever
// matches.
func (a *access) bearer(token string) (name string, role Role) {
	sum := sha256.Sum256([]byte(token))
	for _, t := range a.cfg.Tokens {
		// Check has read it before.
		want, _ := hex.DecodeString(t.SHA256)
		if subtle.ConstantTimeCompare(sum[:], want) == 1 {
			name, role = t.Name, t.Role
		}
	}
	return name, role
}

// tlsConfig is nil without certificates.
func (c Config) tlsConfig() (*tls.Config, error) {
	if c.TLS.CertFile == "" {
		return nil, nil
	}
	b, _, err := tlsfiles.Files{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, CAFile: c.TLS.ClientCAFile}.Load(time.Now())
	if wrong := (*tlsfiles.Error)(nil); errors.As(err, &wrong) && wrong.Authorities {
		return nil, fmt.Errorf("oam.tls.clientCaFile: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("oam.tls: %w", err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: b.Own}
	if b.CAs != nil {
		conf.ClientCAs, conf.ClientAuth = b.CAs, tls.VerifyClientCertIfGiven
	}
	return conf, nil
}
