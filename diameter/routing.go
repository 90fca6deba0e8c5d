package diameter

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"bsfd/diameter/rx"
)

// Route says where requests go.
type Route struct {
	Realm       string   `koanf:"realm" usage:"Destination-Realm; any when empty or *"`
	Host        string   `koanf:"host" usage:"Destination-Host, with * for any characters; any when empty"`
	Application uint32   `koanf:"application" usage:"application; Rx when 0"`
	Priority    int      `koanf:"priority" usage:"lower is tried first"`
	Peers       []string `koanf:"peers" usage:"next hops: host, or host=weight with a weight of 1 to 65535 among those of one route"`
}

// target is where a request is to go.
type target struct {
	host, realm string // host is empty for any of the realm
	application uint32
	// set is the pcfSetId whose other PCFs may serve the session, too.
	set string
}

// hop is a way to a target.
type hop struct {
	conn *conn
	// host is the Destination-Host for this way when it differs.
	host string
}

// route is a Route, ready for use.
type route struct {
	realm, host string // in lower case; empty for any
	application uint32
	priority    int
	peers       []weighted
}

type weighted struct {
	host   string
	weight int
}

func (c *Config) checkRoutes() error {
	for i, r := range c.Routes {
		if _, err := r.parse(); err != nil {
			return fmt.Errorf("[%d].%w", i, err)
		}
	}
	return nil
}

// parse reads a Route.
func (r Route) parse() (route, error) {
	out := route{host: strings.ToLower(r.Host), realm: strings.ToLower(r.Realm), application: orElse(r.Application, rx.ApplicationID), priority: r.Priority}
	if out.realm == "*" {
		out.realm = ""
	}
	if out.realm != "" && checkIdentity(out.realm) != nil {
		return out, fmt.Errorf("realm: %w", checkIdentity(out.realm))
	}
	if len(r.Peers) == 0 {
		return out, errors.New("peers: there are none")
	}
	for _, p := range r.Peers {
		host, weight, found := strings.Cut(strings.ToLower(p), "=")
		w := weighted{host, 1}
		if err := checkIdentity(host); err != nil {
			return out, fmt.Errorf("peers: %w", err)
		}
		if n, err := strconv.ParseUint(weight, 10, 16); found && (err != nil || n == 0) {
			return out, fmt.Errorf("peers: the weight of %s must be 1 to 65535", host)
		} else if found {
			w.weight = int(n)
		}
		out.peers = append(out.peers, w)
	}
	return out, nil
}

// parseRoutes reads the routes and puts them in order.
func parseRoutes(list []Route) ([]route, error) {
	var routes []route
	for _, r := range list {
		parsed, err := r.parse()
		if err != nil {
			return nil, err
		}
		routes = append(routes, parsed)
	}
	slices.SortStableFunc(routes, func(a, b route) int { return cmp.Compare(a.priority, b.priority) })
	return routes, nil
}

// covers reports whether the route is for the target, whose texts are in lower
// case.
func (r *route) covers(t *target) bool {
	return r.application == t.application && (r.realm == "" || r.realm == t.realm) && (r.host == "" || matchHost(r.host, t.host))
}

// search is one choice of a next hop for a request.
type search struct {
	t *target
	// v is the request; peers in its Route-Records are not asked again.
	v *rx.View
	// from is the connection that the request came from, or nil.
	from *conn
	// tried are the peers that had the request before.
	tried []*peer
}

// eligible is the connection of a peer that may get the request.
func (s *search) eligible(p *peer) *conn {
	if p == nil || slices.Contains(s.tried, p) {
		return nil
	}
	c := p.active.Load()
	if c == nil || c == s.from || s.v.Visited(p.host) {
		return nil
	}
	return c
}

// next chooses the next hop of a request: the destination itself, then the
// routes in their order, then another PCF of the same set, then the way by
// which the destination was seen, then other instances (RFC 6733 §6.1.6).
func (g *Gateway) next(s *search) (hop, bool) {
	if s.t.host != "" {
		p := g.peer(s.t.host)
		if c := s.eligible(p); c != nil {
			return hop{conn: c}, true
		}
		if p != nil && s.from != nil && s.from.peer.Load() == p {
			// The request is for the node that has sent it.
			return hop{}, false
		}
	}
	if h, ok := g.byRoute(s); ok {
		return h, true
	}
	if s.t.set != "" {
		for _, p := range g.sets[s.t.set] {
			if c := s.eligible(p); c != nil {
				return hop{c, p.host}, true
			}
		}
	}
	if s.t.host != "" {
		if c := s.eligible(g.peer(g.learned.get(s.t.host))); c != nil {
			return hop{conn: c}, true
		}
	}
	return g.byInstance(s)
}

// byRoute takes the first route that has an eligible peer, and of its peers
// one by weight.
func (g *Gateway) byRoute(s *search) (hop, bool) {
	if len(g.routes) == 0 {
		return hop{}, false
	}
	t := *s.t
	t.host, t.realm = strings.ToLower(t.host), strings.ToLower(t.realm)
	for i := range g.routes {
		r := &g.routes[i]
		if !r.covers(&t) {
			continue
		}
		if c := g.pick(s, r); c != nil {
			return hop{c, g.alternateHost(s, c)}, true
		}
	}
	return hop{}, false
}

func (g *Gateway) pick(s *search, r *route) *conn {
	total := 0
	for _, w := range r.peers {
		if p := g.peer(w.host); s.eligible(p) != nil {
			total += p.load.scale(w.weight)
		}
	}
	if total == 0 {
		return nil
	}
	ticket := rand.IntN(total)
	for _, w := range r.peers {
		p := g.peer(w.host)
		if c := s.eligible(p); c != nil {
			if ticket -= p.load.scale(w.weight); ticket < 0 {
				return c
			}
		}
	}
	// A connection was lost between the two passes, or the load has changed.
	return nil
}

// alternateHost is the Destination-Host for a retry at a peer that is the
// destination itself.
func (g *Gateway) alternateHost(s *search, c *conn) string {
	p := c.peer.Load()
	if len(s.tried) == 0 || !g.cfg.Retry.UpdateDestinationHost || p.relays() || p.cfg.Instance || s.t.host == "" || rx.EqualIdentity(s.t.host, p.host) {
		return ""
	}
	return p.host
}

// byInstance asks another instance, unless the request comes from one: each of
// them is asked by the first, so a request never goes round.
func (g *Gateway) byInstance(s *search) (hop, bool) {
	if s.from != nil && s.from.fromInstance() {
		return hop{}, false
	}
	for _, p := range g.instances {
		if c := s.eligible(p); c != nil {
			return hop{conn: c}, true
		}
	}
	return hop{}, false
}

// hasRoute reports whether a route names the application.
func (g *Gateway) hasRoute(application uint32) bool {
	return slices.ContainsFunc(g.routes, func(r route) bool { return r.application == application })
}

// servedRealms are the realms for which an AAR is taken, in lower case; nil
// means all.
func (c *Config) servedRealms() map[string]bool {
	realms := map[string]bool{strings.ToLower(c.OriginRealm): true}
	if slices.Contains(c.ServedRealms, "*") {
		return nil
	}
	for _, r := range slices.Concat(c.ServedRealms, c.AllowedRealms) {
		realms[strings.ToLower(r)] = true
	}
	for _, p := range c.Peers {
		realms[strings.ToLower(p.Realm)] = true
	}
	for _, r := range c.Routes {
		realms[strings.ToLower(r.Realm)] = true
	}
	return realms
}
