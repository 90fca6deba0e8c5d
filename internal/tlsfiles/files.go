// Package tlsfiles reads certificates, keys and authorities from PEM files, for
// every listener and dialler: their state, the TLS versions by name, reading
// them again while they are in use, and when they expire.
package tlsfiles

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
)

// Files are the names of PEM files; empty ones are not read.
type Files struct {
	CertFile string // certificate chain
	KeyFile  string // its private key
	CAFile   string // authorities of the other side
}

// State is the state of the files.
type State string

// The states of a certificate.
const (
	Valid   State = "VALID"   // usable now
	Expired State = "EXPIRED" // past its notAfter
	Missing State = "MISSING" // a file of the bundle is not there
	Corrupt State = "CORRUPT" // a file cannot be read or does not fit
)

var states = [...]State{Valid, Expired, Missing, Corrupt}

// Bundle is what the files hold.
type Bundle struct {
	Own []tls.Certificate // one, or none without CertFile
	CAs *x509.CertPool    // nil without CAFile
}

// Error is the error for a file that cannot be used.
type Error struct {
	// Authorities is set when it is the CAFile, and not the certificate or its
	// key.
	Authorities bool
	Err         error
}

// Error implements error; the text names the file.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Load reads the files. An expired certificate is no error; its state says so.
// The error is an *Error.
func (f Files) Load(now time.Time) (*Bundle, State, error) {
	b, state := new(Bundle), Valid
	if f.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return nil, missingOrCorrupt(err), &Error{Err: fmt.Errorf("%s: %w", f.CertFile, err)}
		}
		b.Own = []tls.Certificate{pair}
		if now.After(pair.Leaf.NotAfter) {
			state = Expired
		}
	}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, missingOrCorrupt(err), &Error{true, err}
		}
		b.CAs = x509.NewCertPool()
		if !b.CAs.AppendCertsFromPEM(pem) {
			return nil, Corrupt, &Error{true, fmt.Errorf("%s: no certificate", f.CAFile)}
		}
	}
	return b, state, nil
}

func missingOrCorrupt(err error) State {
	if errors.Is(err, fs.ErrNotExist) {
		return Missing
	}
	return Corrupt
}

// Version is the number of a TLS version by its name, "1.2" or "1.3".
func Version(name string) (uint16, error) {
	switch name {
	case "1.2":
		return tls.VersionTLS12, nil
	case "1.3":
		return tls.VersionTLS13, nil
	}
	return 0, errors.New(`TLS versions are "1.2" and "1.3"`)
}

// Versions reads a lowest and a highest version.
func Versions(low, high string) (lowest, highest uint16, err error) {
	if lowest, err = Version(low); err != nil {
		return 0, 0, err
	}
	if highest, err = Version(high); err != nil {
		return 0, 0, err
	}
	if lowest > highest {
		return 0, 0, fmt.Errorf("TLS version %s is above %s", low, high)
	}
	return lowest, highest, nil
}

// Gauges tell about the files in use. Either may be nil.
type Gauges struct {
	// Expiry has the labels file and subject: seconds since 1970.
	Expiry *prometheus.GaugeVec
	// State has the labels file and state: 1 for the one that holds.
	State *prometheus.GaugeVec
}

// Store holds what the files held when they were last read whole. Files that
// cannot be used leave the last good ones in place. It is safe for concurrent
// use.
type Store struct {
	files   Files
	gauges  Gauges
	current atomic.Pointer[Bundle]
	renewed atomic.Int64 // nanoseconds since 1970, 0 for never
}

// NewStore returns a Store that has read nothing yet.
func NewStore(files Files, gauges Gauges) *Store { return &Store{files: files, gauges: gauges} }

// Reload reads the files again and returns their state.
func (s *Store) Reload() (State, error) {
	b, state, err := s.files.Load(time.Now())
	if g := s.gauges.State; g != nil {
		for _, each := range states {
			v := 0.0
			if each == state {
				v = 1
			}
			g.WithLabelValues(s.files.CertFile, string(each)).Set(v)
		}
	}
	if err != nil {
		return state, err
	}
	if g := s.gauges.Expiry; g != nil {
		g.Reset()
		for _, pair := range b.Own {
			g.WithLabelValues(s.files.CertFile, pair.Leaf.Subject.String()).Set(float64(pair.Leaf.NotAfter.Unix()))
		}
	}
	if old := s.current.Swap(b); old != nil && !sameLeaf(old, b) {
		s.renewed.Store(time.Now().UnixNano())
	}
	return state, nil
}

// sameLeaf reports whether both have the same certificate.
func sameLeaf(a, b *Bundle) bool {
	if len(a.Own) == 0 || len(b.Own) == 0 {
		return len(a.Own) == len(b.Own)
	}
	return a.Own[0].Leaf.Equal(b.Own[0].Leaf)
}

// Outdated reports whether a connection that was opened at a time still has a
// certificate that was replaced since, longer ago than grace. A grace of 0 means
// that connections keep theirs.
func (s *Store) Outdated(opened time.Time, grace time.Duration) bool {
	renewed := s.renewed.Load()
	if renewed == 0 || grace == 0 {
		return false
	}
	return opened.UnixNano() < renewed && time.Now().UnixNano() > renewed+int64(grace)
}

// Current is what was last read; nil before the first Reload succeeded.
func (s *Store) Current() *Bundle { return s.current.Load() }
