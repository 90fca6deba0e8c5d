// Package oam is the operator's side: health, metrics and version over HTTP,
// on an address of its own.
package oam

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"bsfd/diameter"
)

// Config configures the listener.
type Config struct {
	// Listen is the address, host:port.
	Listen string   `koanf:"listen" usage:"address of health, metrics, version and the configuration API"`
	TLS    TLSFiles `koanf:"tls"`
	// Tokens and Subjects are who may use the configuration API. On the
	// loopback interface, where neither they nor TLS.ClientCAFile are set,
	// everybody may; elsewhere nobody may without them and TLS.
	Tokens   []Token   `koanf:"tokens" usage:"who may use the configuration API, by bearer token"`
	Subjects []Subject `koanf:"subjects" usage:"roles of client certificates; viewer for others"`
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen: %q is not host:port", c.Listen)
	}
	return c.checkAccess()
}

// Version tells what runs.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// String is the line that "bsfd version" prints.
func (v Version) String() string {
	return fmt.Sprintf("bsfd %s commit %s %s", v.Version, v.Commit, v.Go)
}

// NewVersion returns the version with the commit that was built and the
// version of Go.
func NewVersion(version string) Version {
	v := Version{version, "unknown", runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

// State is what /readyz answers.
type State struct {
	Ready bool `json:"ready"`
	// Reason tells why not.
	Reason string `json:"reason,omitempty"`
	// LoadedRecords and LoadedPercent tell how far the load at start is.
	LoadedRecords int64   `json:"loadedRecords,omitempty"`
	LoadedPercent float64 `json:"loadedPercent,omitempty"`
}

// Readiness holds the state of the process for /readyz.
type Readiness struct {
	state atomic.Pointer[State]
	probe atomic.Pointer[func(context.Context) error]
}

// NewReadiness returns a Readiness that says "starting".
func NewReadiness() *Readiness {
	r := new(Readiness)
	r.NotReady("starting")
	return r
}

// NotReady notes why the process is not ready.
func (r *Readiness) NotReady(reason string) { r.state.Store(&State{Reason: reason}) }

// Progress returns a function that notes how far the load of storage is, and
// logs it once a second.
func (r *Readiness) Progress(log zerolog.Logger) func(records int64, fraction float64) {
	last := time.Now()
	return func(records int64, fraction float64) {
		percent := int(fraction * 100)
		r.state.Store(&State{Reason: "loading storage", LoadedRecords: records, LoadedPercent: float64(percent)})
		if time.Since(last) >= time.Second {
			last = time.Now()
			log.Info().Str("component", "storage").Int64("bindings", records).Int("percent", percent).Msg("loading")
		}
	}
}

// Ready notes that every listener accepts; from now on probe decides.
func (r *Readiness) Ready(probe func(context.Context) error) {
	r.probe.Store(&probe)
	r.state.Store(&State{Ready: true})
}

// State returns the state of the moment.
func (r *Readiness) State(ctx context.Context) State {
	s := *r.state.Load()
	if probe := r.probe.Load(); s.Ready && probe != nil {
		if err := (*probe)(ctx); err != nil {
			return State{Reason: err.Error()}
		}
	}
	return s
}

// Server is the operator's listener.
type Server struct {
	cfg      Config
	http     *http.Server
	listener net.Listener
	log      zerolog.Logger
	access   *access
	diameter atomic.Pointer[diameter.Gateway]
	settings atomic.Pointer[Settings]
}

// New returns a server; it does not listen yet.
func New(cfg Config, version Version, ready *Readiness, refusals Refusals, log zerolog.Logger, metrics prometheus.Gatherer) *Server {
	s := &Server{cfg: cfg, access: newAccess(cfg), log: log.With().Str("component", "oam").Logger()}
	if s.access.closed {
		s.log.Warn().Str("listen", cfg.Listen).Msg("the configuration API is closed: beyond the loopback interface it needs oam.tls with oam.tokens or oam.tls.clientCaFile")
	}
	mux := chi.NewMux()
	mux.Get("/livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"live": true})
	})
	mux.Get("/version", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, version) })
	mux.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		s := ready.State(ctx)
		status := http.StatusOK
		if !s.Ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, s)
	})
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	s.diameterRoutes(mux)
	s.settingsRoutes(mux)
	s.refusalRoutes(mux, refusals)
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return s
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(v)
}

// Listen reads the certificates and binds the address.
func (s *Server) Listen(ctx context.Context) (err error) {
	if s.http.TLSConfig, err = s.cfg.tlsConfig(); err != nil {
		return err
	}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Listen); err != nil {
		return fmt.Errorf("oam.listen: %w", err)
	}
	s.log.Info().Str("address", s.URL()).Msg("listening")
	return nil
}

// URL is where it is reached.
func (s *Server) URL() string {
	scheme := "http://"
	if s.cfg.TLS.CertFile != "" {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error {
		defer cancel()
		serve := func() error { return s.http.Serve(s.listener) }
		if s.cfg.TLS.CertFile != "" {
			serve = func() error { return s.http.ServeTLS(s.listener, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.http.Close()
	})
	return group.Wait()
}

// Probe asks the operator's listener of a process on this machine whether it is
// ready.
func Probe(ctx context.Context, cfg Config) error {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return err
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	scheme, client := "http://", http.DefaultClient
	if cfg.TLS.CertFile != "" {
		// It is this machine, whatever name the certificate has.
		scheme, client = "https://", &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
		defer client.CloseIdleConnections()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", resp.Status)
	}
	return nil
}
