package diameter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/diameter/rx"
	"bsfd/internal/refusal"
	"bsfd/internal/settings"
	"bsfd/internal/tolerate"
)

// Bindings is where PCFs are found. *bsf.Registry implements it.
type Bindings interface {
	// Discover returns the binding that answers the query. Errors:
	// bsf.ErrNotFound, *bsf.Ambiguous, and those of the store.
	Discover(ctx context.Context, q *bsf.Query) (*bsf.Record, error)
	// Remove removes a binding for the reason, or returns bsf.ErrNotFound.
	Remove(ctx context.Context, id bsf.ID, reason bsf.Reason) error
}

// Refusals remembers and logs what is refused; refusal.Journal is one.
type Refusals interface {
	Count(k refusal.Key) (wanted bool)
	Report(r *refusal.Refusal)
	Note(r *refusal.Refusal, more func(*zerolog.Event))
}

// Deps are what the gateway works with.
type Deps struct {
	Bindings Bindings
	// Remote is set when a lookup waits for a database: then it does not
	// happen on the goroutine that reads a connection.
	Remote   bool
	Admitter Admitter
	Reports  Reports
	// Documents keeps the settings, and the triggers of repaving with their
	// history.
	Documents bsf.DocumentStore
	// Refusals remembers and logs what is refused.
	Refusals Refusals
	Log      zerolog.Logger
	Metrics  prometheus.Registerer
}

// Gateway is the Rx gateway.
type Gateway struct {
	cfg  Config
	deps Deps
	log  zerolog.Logger
	// often logs what peers can bring about as often as they like: some of it.
	often    zerolog.Logger
	metrics  *metrics
	results  results
	realms   map[string]bool // served, nil for all
	hostIPs  []netip.Addr
	routes   []route
	tls      *certificates
	sessions *sessions
	learned  *learned
	pool     pendingPool
	repaver  *repaver
	settings *settings.Store[Settings]
	stale    *staleReporter
	lookups  lookupQueue

	redirects   redirects
	lastRefused atomic.Pointer[refusedKind]

	allowed   tolerate.Set
	tolerated *tolerate.Ledger

	stateID   uint32
	e2e       atomic.Uint32
	draining  atomic.Bool
	open      atomic.Int64 // connections
	strangers atomic.Int64 // connections without capabilities exchange
	looking   atomic.Int64 // lookups under way on workers

	// instances and sets are the configured peers that have these roles.
	instances []*peer
	sets      map[string][]*peer

	mu    sync.RWMutex
	peers map[string]*peer // by identity in lower case
	conns map[*conn]struct{}

	listeners []listener
	wg        sync.WaitGroup
}

type listener struct {
	net.Listener
	transport Transport
}

// New checks the configuration and returns a gateway that does nothing yet.
func New(cfg Config, deps Deps) (*Gateway, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	const linesPerSecond = 10
	if len(cfg.Retry.Rules) == 0 {
		cfg.Retry.Rules = DefaultRules()
	}
	now := time.Now()
	g := &Gateway{
		cfg: cfg, deps: deps, log: deps.Log.With().Str("component", "diameter").Logger(),
		realms: cfg.servedRealms(), stateID: uint32(now.Unix()),
		sessions: newSessions(cfg.Sessions), learned: newLearned(),
		lookups: newLookupQueue(cfg.Limits.Lookups),
		sets:    make(map[string][]*peer), peers: make(map[string]*peer), conns: make(map[*conn]struct{}),
	}
	g.e2e.Store(firstEndToEnd(now))
	// Check has read the names.
	g.allowed, _ = Tolerances.Parse(cfg.Tolerate)
	g.tolerated = tolerate.NewLedger(Tolerances, "ocbsf_diam_tolerated_total", g.log, deps.Metrics)
	g.often = g.log.Sample(&zerolog.BurstSampler{Burst: linesPerSecond, Period: time.Second})
	var err error
	if g.results, err = cfg.results(); err != nil {
		return nil, err
	}
	if g.routes, err = parseRoutes(cfg.Routes); err != nil {
		return nil, err
	}
	if g.tls, err = newCertificates(cfg.TLS, deps.Metrics); err != nil {
		return nil, err
	}
	for _, a := range cfg.HostIPAddresses {
		g.hostIPs = append(g.hostIPs, netip.MustParseAddr(a))
	}
	g.metrics = newMetrics(deps.Metrics, g)
	g.stale = newStaleReporter(g)
	g.repaver = newRepaver(g)
	for _, p := range cfg.Peers {
		g.know(p)
	}
	return g, nil
}

// know adds a configured peer.
func (g *Gateway) know(cfg Peer) {
	p := g.newPeer(cfg, true)
	g.peers[strings.ToLower(cfg.Host)] = p
	if cfg.Instance {
		g.instances = append(g.instances, p)
	}
	if cfg.PcfSetID != "" {
		g.sets[cfg.PcfSetID] = append(g.sets[cfg.PcfSetID], p)
	}
}

// origin is the identity of this node.
func (g *Gateway) origin() rx.Origin {
	return rx.Origin{Host: g.cfg.OriginHost, Realm: g.cfg.OriginRealm, StateID: g.stateID}
}

// firstEndToEnd is where End-to-End Identifiers begin: the high 12 bits are of
// the time, the low 20 random (RFC 6733 §3).
func firstEndToEnd(now time.Time) uint32 { return uint32(now.Unix())<<20 | rand.Uint32N(1<<20) }

// endToEnd is a new End-to-End Identifier.
func (g *Gateway) endToEnd() uint32 { return g.e2e.Add(1) }

// peer is the peer with the identity, nil when there is none.
func (g *Gateway) peer(host string) *peer {
	if host == "" {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if p, ok := g.peers[host]; ok {
		return p
	}
	return g.peers[strings.ToLower(strings.TrimSuffix(host, "."))]
}

// admit finds the peer of a CER, or makes one when its realm is allowed.
func (g *Gateway) admit(caps *rx.Capabilities) (*peer, error) {
	if rx.EqualIdentity(caps.Host, g.cfg.OriginHost) {
		return nil, refuse(rx.UnknownPeer, "%s is this node", caps.Host)
	}
	host := strings.ToLower(caps.Host)
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[host]
	switch {
	case p != nil && p.cfg.Realm != "" && !rx.EqualIdentity(caps.Realm, p.cfg.Realm):
		return nil, refuse(rx.UnknownPeer, "%s is of realm %s", p.host, p.cfg.Realm)
	case p != nil:
		return p, nil
	case !g.allows(caps.Realm):
		g.often.Warn().Str("originHost", caps.Host).Str("originRealm", caps.Realm).
			Msg("a host that is no peer wants to connect (diameter.peers, diameter.allowedRealms)")
		return nil, refuse(rx.UnknownPeer, "%s is not a peer", caps.Host)
	case checkIdentity(caps.Host) != nil || checkIdentity(caps.Realm) != nil:
		return nil, refuse(rx.UnknownPeer, "the identity is not a host name")
	}
	if len(g.peers) >= 2*g.cfg.Limits.Connections {
		g.forgetOne()
	}
	p = g.newPeer(Peer{Host: caps.Host, Realm: caps.Realm}, false)
	g.peers[host] = p
	return p, nil
}

// allows reports whether unknown hosts of the realm may connect.
func (g *Gateway) allows(realm string) bool {
	for _, r := range g.cfg.AllowedRealms {
		if r == "*" || rx.EqualIdentity(realm, r) {
			return true
		}
	}
	return false
}

// forgetOne forgets an unconfigured peer that is not connected.
func (g *Gateway) forgetOne() {
	for host, p := range g.peers {
		if p.known || !p.mu.TryLock() {
			continue
		}
		if p.state == StateClosed {
			p.forgotten = true
			delete(g.peers, host)
		}
		forgotten := p.forgotten
		p.mu.Unlock()
		if forgotten {
			return
		}
	}
}

// Listen takes up the settings that are in storage, and binds the addresses.
func (g *Gateway) Listen(ctx context.Context) error {
	if err := g.openSettings(ctx); err != nil {
		return fmt.Errorf("diameter settings: %w", err)
	}
	for _, x := range []struct {
		key       string
		addresses []string
		transport Transport
	}{
		{"listen", g.cfg.Listen, TCP}, {"listenTls", g.cfg.ListenTLS, TLS}, {"listenSctp", g.cfg.ListenSCTP, SCTP},
	} {
		for _, a := range x.addresses {
			l, err := listen(ctx, x.transport, a)
			if err != nil {
				g.closeListeners()
				return fmt.Errorf("diameter.%s: %w", x.key, err)
			}
			g.listeners = append(g.listeners, listener{l, x.transport})
		}
	}
	for _, a := range g.Addrs() {
		g.log.Info().Str("address", a).Msg("listening")
	}
	return nil
}

func listen(ctx context.Context, t Transport, address string) (net.Listener, error) {
	if t == SCTP {
		return listenSCTP(address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

func (g *Gateway) closeListeners() {
	for _, l := range g.listeners {
		// Closing twice does no harm.
		_ = l.Close()
	}
}

// Addrs are the addresses that are bound, with their transport.
func (g *Gateway) Addrs() []string {
	var list []string
	for _, l := range g.listeners {
		list = append(list, string(l.transport)+"://"+l.Addr().String())
	}
	return list
}

// Reload reads the certificates again. Ones that cannot be used leave the old
// ones in place, with a line in the log.
func (g *Gateway) Reload() {
	if err := g.tls.reload(); err != nil {
		g.log.Error().Err(err).Msg("the old certificates stay")
	}
}

// tickInterval is how often the gateway looks at what time demands.
const tickInterval = 100 * time.Millisecond

// Run serves until ctx ends and everything that it started has ended. Drain
// goes before, when there is time.
func (g *Gateway) Run(ctx context.Context) error {
	for _, l := range g.listeners {
		g.wg.Go(func() { g.accept(ctx, l) })
	}
	for _, p := range g.peerList() {
		if p.known && p.cfg.Connect {
			k := &connector{g: g, p: p}
			g.wg.Go(func() { k.run(ctx) })
		}
	}
	if g.deps.Remote {
		for range g.cfg.Limits.Lookups {
			g.wg.Go(func() { g.lookupWorker(ctx) })
		}
	}
	g.wg.Go(func() { g.stale.run(ctx) })
	g.wg.Go(func() { g.repaver.run(ctx) })
	// It returns nothing but nil, when ctx ends.
	g.wg.Go(func() { _ = g.settings.Run(ctx) })
	g.tick(ctx)
	g.closeListeners()
	g.wg.Wait()
	return nil
}

// certificateInterval is how often the certificates are read again.
const certificateInterval = 30 * time.Second

// tick looks at every connection in turn.
func (g *Gateway) tick(ctx context.Context) {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	t := &turn{g: g, ctx: ctx}
	var conns []*conn
	reload := time.Now().Add(certificateInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case t.now = <-ticker.C:
		}
		g.mu.RLock()
		conns = conns[:0]
		for c := range g.conns {
			conns = append(conns, c)
		}
		g.mu.RUnlock()
		for _, c := range conns {
			c.tick(t)
			t.flush()
		}
		clear(conns)
		g.sessions.sweep(t.now)
		if g.cfg.TLS.CertFile != "" && t.now.After(reload) {
			reload = t.now.Add(certificateInterval)
			g.Reload()
		}
	}
}

// accept takes connections until the listener is closed.
func (g *Gateway) accept(ctx context.Context, l listener) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors, for example: others end, then it goes on.
			g.log.Warn().Err(err).Msg("no connection accepted")
			pause(ctx, tickInterval)
		case g.open.Load() >= int64(g.cfg.Limits.Connections) || g.strangers.Load() >= int64(g.cfg.Limits.Unauthenticated):
			g.metrics.failedConns.WithLabelValues(string(l.transport), "limit").Inc()
			_ = nc.Close()
		default:
			g.receive(ctx, nc, l.transport)
		}
	}
}

// receive serves a connection that came in.
func (g *Gateway) receive(ctx context.Context, nc net.Conn, t Transport) {
	if t == TLS {
		nc = tls.Server(nc, g.tls.server())
	}
	c := g.newConn(nc, t, nil)
	c.stranger.Store(true)
	g.strangers.Add(1)
	g.wg.Go(func() { g.run(ctx, c) })
}

// run serves a connection to its end and tells its peer.
func (g *Gateway) run(ctx context.Context, c *conn) {
	g.open.Add(1)
	g.mu.Lock()
	g.conns[c] = struct{}{}
	g.mu.Unlock()
	c.serve(ctx)
	c.isKnown()
	g.mu.Lock()
	delete(g.conns, c)
	g.mu.Unlock()
	g.open.Add(-1)
	p := c.peer.Load()
	if p == nil {
		if c.dialled == nil {
			g.log.Debug().Str("remote", c.nc.RemoteAddr().String()).Str("reason", c.closeReason()).Msg("connection ended before capabilities exchange")
		}
		p = c.dialled
	}
	if p != nil {
		_ = p.step(event{kind: eventDown, conn: c, reason: c.closeReason()})
	}
	// Nobody adds to a table that is closed; what was left is answered.
	g.failover(c, c.pend.drain(true), "connection")
}

// Drain ends the work of the gateway in order: nothing new is taken, what is
// under way is finished, then the peers are told (RFC 6733 §5.4). The error
// says what did not finish before ctx ended.
func (g *Gateway) Drain(ctx context.Context) error {
	g.closeListeners()
	g.draining.Store(true)
	err := g.until(ctx, func() bool { return g.looking.Load() == 0 && g.pendingRequests() == 0 })
	if err != nil {
		err = fmt.Errorf("%d Rx requests are unanswered: %w", g.pendingRequests(), err)
	}
	t := &turn{g: g, ctx: ctx, now: time.Now()}
	for _, p := range g.peerList() {
		_ = p.step(event{kind: eventDisconnect, cause: rx.Rebooting, reason: "the gateway stops", turn: t})
	}
	t.flush()
	return errors.Join(err, g.until(ctx, func() bool { return g.openPeers() == 0 }))
}

// until waits for the condition.
func (g *Gateway) until(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(tickInterval / 10)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

func (g *Gateway) peerList() []*peer {
	g.mu.RLock()
	defer g.mu.RUnlock()
	list := make([]*peer, 0, len(g.peers))
	for _, p := range g.peers {
		list = append(list, p)
	}
	return list
}

func (g *Gateway) openPeers() (n int) {
	for _, p := range g.peerList() {
		p.mu.Lock()
		if p.conn != nil {
			n++
		}
		p.mu.Unlock()
	}
	return n
}

// Pending is how many requests are under way: looked up, or sent and not
// answered.
func (g *Gateway) Pending() int { return int(g.looking.Load()) + g.pendingRequests() }

// Backlog is for how long a connection has had more to read each time than was
// read, the longest of all.
func (g *Gateway) Backlog() (longest time.Duration) {
	now := time.Now()
	g.mu.RLock()
	defer g.mu.RUnlock()
	for c := range g.conns {
		longest = max(longest, c.backlog.Since(now))
	}
	return longest
}

// pendingRequests is how many requests wait for an answer.
func (g *Gateway) pendingRequests() (n int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for c := range g.conns {
		n += c.pend.len()
	}
	return n
}
