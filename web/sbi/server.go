package sbi

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"bsfd/internal/refusal"
)

// ServerConfig configures a Server.
type ServerConfig struct {
	// Listen holds the addresses, host:port or [ipv6]:port. Port 0 takes a
	// free one.
	Listen []string  `koanf:"listen" usage:"addresses of the service-based interface"`
	TLS    TLSConfig `koanf:"tls"`
	// MaxConnections bounds the open connections of each listener; further
	// ones are closed at once.
	MaxConnections int `koanf:"maxConnections" usage:"open connections of each listener"`
	// MaxConcurrentStreams bounds the requests under way on one HTTP/2
	// connection, at least 100.
	MaxConcurrentStreams int `koanf:"maxConcurrentStreams" usage:"requests under way on one HTTP/2 connection"`
	// MaxHeaderBytes bounds the header section (431), MaxURIBytes the request
	// target (414), MaxBodyBytes the body (413).
	MaxHeaderBytes int `koanf:"maxHeaderBytes" usage:"bound of the header section"`
	MaxURIBytes    int `koanf:"maxUriBytes" usage:"bound of the request target"`
	MaxBodyBytes   int `koanf:"maxBodyBytes" usage:"bound of the body"`
	// HeaderTimeout bounds how long the header of an HTTP/1.1 request or a
	// TLS handshake may take.
	HeaderTimeout time.Duration `koanf:"headerTimeout" usage:"time for an HTTP/1.1 header or a TLS handshake"`
	// IdleTimeout closes connections without requests.
	IdleTimeout time.Duration `koanf:"idleTimeout" usage:"time after which an unused connection is closed"`
	// PingInterval is how long an HTTP/2 connection may be silent before a
	// PING asks whether the peer is there; it has half of that to answer.
	PingInterval time.Duration `koanf:"pingInterval" usage:"silence after which a peer is asked by PING"`
	// StallTimeout closes connections whose peer does not read, or does not
	// finish a request that it began.
	StallTimeout time.Duration `koanf:"stallTimeout" usage:"time after which a peer that does not read or finish is cut off"`
	// DrainDelay is how long a server that shuts down still answers new
	// requests with 503 before it stops to listen.
	DrainDelay time.Duration `koanf:"drainDelay" usage:"how long a server that shuts down answers 503 before it closes"`
}

// Check reports the first wrong setting with its key.
func (c ServerConfig) Check() error {
	if len(c.Listen) == 0 {
		return errors.New("listen: at least one address is required")
	}
	for _, a := range c.Listen {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return fmt.Errorf("listen: %q is not host:port", a)
		}
	}
	if err := c.TLS.Check(); err != nil {
		return err
	}
	for _, v := range []struct {
		name          string
		value, lo, hi int
	}{
		{"maxConnections", c.MaxConnections, 1, 1 << 20},
		{"maxConcurrentStreams", c.MaxConcurrentStreams, 100, 1 << 16},
		{"maxHeaderBytes", c.MaxHeaderBytes, 4 << 10, 1 << 20},
		{"maxUriBytes", c.MaxURIBytes, 256, 1 << 20},
		{"maxBodyBytes", c.MaxBodyBytes, 1 << 10, 256 << 10},
	} {
		if v.value < v.lo || v.value > v.hi {
			return fmt.Errorf("%s: must be %d to %d", v.name, v.lo, v.hi)
		}
	}
	for _, v := range []struct {
		name   string
		value  time.Duration
		lo, hi time.Duration
	}{
		{"headerTimeout", c.HeaderTimeout, 100 * time.Millisecond, 5 * time.Minute},
		{"idleTimeout", c.IdleTimeout, time.Second, 24 * time.Hour},
		{"pingInterval", c.PingInterval, time.Second, time.Hour},
		{"stallTimeout", c.StallTimeout, time.Second, time.Hour},
		{"drainDelay", c.DrainDelay, 0, time.Minute},
	} {
		if v.value < v.lo || v.value > v.hi {
			return fmt.Errorf("%s: must be %s to %s", v.name, v.lo, v.hi)
		}
	}
	return nil
}

// engine is what the server needs of the HTTP implementation under it;
// *http.Server is one.
type engine interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	Shutdown(context.Context) error
	Close() error
}

// Server serves one handler on all its addresses: HTTP/2 with prior knowledge
// and HTTP/1.1 in clear text, or both over TLS by ALPN.
type Server struct {
	cfg      ServerConfig
	engine   engine
	certs    *certificates
	errors   *Errors
	log      zerolog.Logger
	guards   []*guard
	draining atomic.Bool
	inFlight atomic.Int64
	// abandoned counts requests whose consumer gave up before they were begun.
	abandoned prometheus.Counter
}

// NewServer checks the configuration and reads the certificates; it does not
// listen yet. Errors that the server itself answers go through errs.
func NewServer(cfg ServerConfig, handler http.Handler, errs *Errors, log zerolog.Logger, reg prometheus.Registerer) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, errors: errs, log: log.With().Str("component", "sbi").Logger()}
	h := &http.Server{
		Handler:           s.outer(handler),
		ReadHeaderTimeout: cfg.HeaderTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    cfg.MaxHeaderBytes + headerSlack,
		ConnContext:       withConn,
		ConnState:         noteState,
		ErrorLog:          stdlog.New(debugWriter{s.log, errs.journal}, "", 0),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: cfg.MaxConcurrentStreams,
			SendPingTimeout:      cfg.PingInterval,
			PingTimeout:          max(cfg.PingInterval/2, time.Second),
		},
	}
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetHTTP2(true)
	h.Protocols.SetUnencryptedHTTP2(true)
	if cfg.TLS.Enabled() {
		certs, err := newCertificates(cfg.TLS, log, reg)
		if err != nil {
			return nil, err
		}
		s.certs = certs
		if h.TLSConfig, err = certs.serverConfig(); err != nil {
			return nil, err
		}
	}
	s.engine = h
	s.abandoned = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ocbsf_ingress_abandoned_total", Help: "Requests whose consumer gave up before they were begun.",
	})
	reg.MustRegister(
		s.abandoned,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ocbsf_http_connections", Help: "Open connections on the service-based interface.",
		}, func() float64 { return float64(s.connections()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ocbsf_ingress_pending", Help: "Requests under way on the service-based interface.",
		}, func() float64 { return float64(s.Pending()) }),
	)
	return s, nil
}

// debugWriter turns what net/http complains about, peers that break the
// protocol, into debug lines, and TLS handshakes that fail into refusals.
type debugWriter struct {
	log     zerolog.Logger
	journal Journal
}

// Write implements io.Writer.
func (d debugWriter) Write(b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	d.log.Debug().Msg(text)
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		// The address has no blank in it.
		peer, reason, _ := strings.Cut(rest, ": ")
		if reason != "EOF" {
			if failed := refusal.Handshake("sbi.tls", peer, reason); d.journal.Count(failed.Key()) {
				d.journal.Note(failed, nil)
			}
		}
	}
	return len(b), nil
}

// Listen binds all addresses. On an error none stays bound.
func (s *Server) Listen(ctx context.Context) error {
	for _, addr := range s.cfg.Listen {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			for _, g := range s.guards {
				_ = g.Close()
			}
			return fmt.Errorf("sbi.listen: %w", err)
		}
		s.guards = append(s.guards, newGuard(l, s.cfg.MaxConnections, s.cfg.StallTimeout))
	}
	for _, a := range s.Addrs() {
		s.log.Info().Str("address", s.Scheme()+"://"+a).Msg("listening")
	}
	return nil
}

// Addrs are the addresses that are bound.
func (s *Server) Addrs() []string {
	var list []string
	for _, g := range s.guards {
		list = append(list, g.Addr().String())
	}
	return list
}

// Scheme is "https" or "http".
func (s *Server) Scheme() string {
	if s.certs != nil {
		return "https"
	}
	return "http"
}

// Run serves until ctx ends or a listener fails, and returns after every
// goroutine of the server has. Call Drain before, so that nothing is cut off.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	for _, g := range s.guards {
		group.Go(func() error {
			defer cancel()
			var err error
			if s.certs != nil {
				err = s.engine.ServeTLS(g, "", "")
			} else {
				err = s.engine.Serve(g)
			}
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		})
		group.Go(func() error { g.run(ctx); return nil })
	}
	if s.certs != nil {
		group.Go(func() error { s.watchCertificates(ctx); return nil })
	}
	group.Go(func() error {
		<-ctx.Done()
		return s.engine.Close()
	})
	return group.Wait()
}

// certificatePoll is how often the certificate files are read again.
const certificatePoll = 30 * time.Second

func (s *Server) watchCertificates(ctx context.Context) {
	t := time.NewTicker(certificatePoll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.Reload()
		}
	}
}

// Reload reads the certificates again. One that cannot be used is logged, and
// the last good one stays.
func (s *Server) Reload() {
	if s.certs == nil {
		return
	}
	if err := s.certs.reload(); err != nil {
		s.log.Error().Err(err).Msg("certificates not reloaded")
	}
}

// Drain ends service without cutting anything off: new requests get 503 and
// their connection is told to go away, requests under way finish. It returns
// when they have or when ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	if s.connections() > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(s.cfg.DrainDelay):
		}
	}
	return s.engine.Shutdown(ctx)
}

// Pending is how many requests are under way.
func (s *Server) Pending() int { return int(s.inFlight.Load()) }

// Backlog is for how long a connection has had more to read each time than was
// read, the longest of all.
func (s *Server) Backlog() (longest time.Duration) {
	now := time.Now()
	for _, g := range s.guards {
		longest = max(longest, g.backlog(now))
	}
	return longest
}

func (s *Server) connections() (n int) {
	for _, g := range s.guards {
		n += g.count()
	}
	return n
}

// outer is the first of the middleware: it counts, refuses while draining,
// checks the lengths of target and body, and turns requests away that come too
// late.
func (s *Server) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.inFlight.Add(1)
		defer s.inFlight.Add(-1)
		if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok {
			c.begin(r.Context())
			defer c.end()
			if s.certs != nil && s.certs.store.Outdated(c.opened, s.cfg.TLS.CloseAfter) {
				// The HTTP/2 implementation makes a GOAWAY of it, after this answer.
				w.Header()["Connection"] = closing
			}
		}
		if r.Context().Err() != nil {
			// The consumer gave up before its request got a processor: work for
			// nobody would only make others give up, too.
			s.abandoned.Inc()
			return
		}
		if s.draining.Load() {
			s.errors.Write(w, r, Fail(ShuttingDown, "this instance is shutting down").
				With("Connection", "close").With("Retry-After", "1"))
			return
		}
		if len(r.RequestURI) > s.cfg.MaxURIBytes {
			s.errors.Write(w, r, Fail(URITooLong, fmt.Sprintf("more than %d bytes", s.cfg.MaxURIBytes)))
			return
		}
		if headerBytes(r) > s.cfg.MaxHeaderBytes {
			s.errors.Write(w, r, Fail(HeaderTooLarge, fmt.Sprintf("more than %d bytes", s.cfg.MaxHeaderBytes)))
			return
		}
		if r.ContentLength > int64(s.cfg.MaxBodyBytes) {
			s.errors.Write(w, r, s.tooLarge())
			readRest(w, r)
			return
		}
		next.ServeHTTP(w, r)
		if r.ContentLength < 0 && isProblem(w) {
			// The body may have turned out to be too large.
			readRest(w, r)
		}
	})
}

// closing is the value of a Connection field that ends the connection.
var closing = []string{"close"}

// headerSlack is how many octets of target and header are read beyond their
// bounds, so that one that is too large gets an answer and not a reset.
const headerSlack = 192 << 10

// headerBytes is the length of the target and the header, names and values.
func headerBytes(r *http.Request) int {
	n := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// isProblem reports whether the answer is an error.
func isProblem(w http.ResponseWriter) bool {
	v := w.Header()["Content-Type"]
	return len(v) == 1 && v[0] == problemType[0]
}

// Bounds of readRest: octets, time in all, and time without any.
const (
	restBytes = 16 << 20
	restTime  = 5 * time.Second
	restPause = 250 * time.Millisecond
)

// readRest reads what is left of a body after its refusal, as long as more
// comes. A sender that is cut off while it writes may never see the answer.
func readRest(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	if c.Flush() != nil {
		return
	}
	buf := make([]byte, 32<<10)
	end := time.Now().Add(restTime)
	for left := restBytes; left > 0; {
		now := time.Now()
		if now.After(end) || c.SetReadDeadline(now.Add(restPause)) != nil {
			return
		}
		n, err := r.Body.Read(buf)
		if left -= n; err != nil {
			return
		}
	}
}

func (s *Server) tooLarge() *Problem {
	return Fail(ContentTooLarge, fmt.Sprintf("more than %d bytes", s.cfg.MaxBodyBytes))
}

var _ engine = (*http.Server)(nil)
