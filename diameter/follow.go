package diameter

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/diameter/rx"
)

// maxFollowed bounds the redirects that one request follows.
const maxFollowed = 3

// Redirect-Host-Usage (RFC 6733 §6.13). What a user has asked for does not
// matter here, so ALL_USER is not kept.
const (
	usageAllSession          = 1
	usageAllRealm            = 2
	usageRealmAndApplication = 3
	usageAllApplication      = 4
	usageAllHost             = 5
)

// follow sends a request to a host that a redirect names (RFC 6733 §6.1.8), and
// keeps the redirect as long as it says. False means that no such host can be
// reached: then the redirect is for the one who asked.
func (c *conn) follow(t *turn, p *pending) bool {
	g := c.g
	if !g.cfg.FollowRedirects || p.followed >= maxFollowed {
		return false
	}
	r := rx.RedirectOf(&t.view)
	before := p.target
	for _, uri := range r.Hosts {
		host := hostOf(uri)
		if host == "" {
			continue
		}
		p.target.host, p.target.set = host, ""
		p.followed++
		target, session, af := before, string(t.view.SessionID.Data), p.from.peer.Load().host
		var request rx.View
		if g.resend(t, p, &request, false, "redirect") {
			// The pending may belong to another by now.
			if r.Usage == usageAllSession {
				g.sessions.put([]byte(session), host, af, t.now)
			} else {
				g.redirects.keep(r, &target, host, t.now)
			}
			return true
		}
	}
	p.target = before
	return false
}

// hostOf is the host of a DiameterURI (RFC 6733 §4.3.1), empty when there is
// none.
func hostOf(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || !strings.EqualFold(scheme, "aaa") && !strings.EqualFold(scheme, "aaas") {
		return ""
	}
	if end := strings.IndexAny(rest, ":;/"); end >= 0 {
		rest = rest[:end]
	}
	if checkIdentity(rest) != nil {
		return ""
	}
	return rest
}

// maxRedirects bounds how many redirects are kept.
const maxRedirects = 1024

// redirects are those that are kept beyond their request.
type redirects struct {
	count atomic.Int64

	mu   sync.Mutex
	kept map[redirectKey]keptRedirect
}

// redirectKey is what a redirect is for; parts that do not matter are zero.
type redirectKey struct {
	host, realm string // lower case
	application uint32
}

type keptRedirect struct {
	host  string
	until time.Time
}

// keep notes a redirect for what its usage says.
func (r *redirects) keep(redirect rx.Redirect, t *target, host string, now time.Time) {
	key := redirectKey{host: strings.ToLower(t.host), realm: strings.ToLower(t.realm), application: t.application}
	switch redirect.Usage {
	case usageAllRealm:
		key.host, key.application = "", 0
	case usageRealmAndApplication:
		key.host = ""
	case usageAllApplication:
		key.host, key.realm = "", ""
	case usageAllHost:
		key.realm, key.application = "", 0
	default:
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = make(map[redirectKey]keptRedirect)
	}
	for k, old := range r.kept {
		if !old.until.After(now) {
			delete(r.kept, k)
		}
	}
	if len(r.kept) < maxRedirects && redirect.CacheTime > 0 {
		r.kept[key] = keptRedirect{host, now.Add(redirect.CacheTime)}
	}
	r.count.Store(int64(len(r.kept)))
}

// of is where a kept redirect sends requests for a target; empty when there is
// none.
func (r *redirects) of(t *target, now time.Time) string {
	if r.count.Load() == 0 {
		return ""
	}
	host, realm := strings.ToLower(t.host), strings.ToLower(t.realm)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range [...]redirectKey{{host: host}, {realm: realm, application: t.application}, {realm: realm}, {application: t.application}} {
		if k, ok := r.kept[key]; ok && k.until.After(now) && key != (redirectKey{}) {
			return k.host
		}
	}
	return ""
}
