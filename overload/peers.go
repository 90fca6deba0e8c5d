package overload

import (
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/internal/admission"
)

// Peers are what other nodes have told about their load, and what follows from
// it for the requests that are sent to them. It is safe for concurrent use.
type Peers struct {
	throttled *prometheus.CounterVec

	honours atomic.Bool // the same as active, for those who only ask

	mu       sync.Mutex
	reports  map[string]*peerReport
	adaptive map[string]*clientThrottle
	active   bool // reports are honoured
	weights  [2]float64
	exclude  *excluder
}

// peerReport is the newest report of a scope.
type peerReport struct {
	sequence  int64
	reduction float64 // 0 to 1
	until     time.Time
	// recent are the requests of each group lately.
	recent  [2]float64
	pickers [2]picker
}

// maxPeers bounds the reports that are kept.
const maxPeers = 10000

func newPeers(throttled *prometheus.CounterVec) *Peers {
	return &Peers{throttled: throttled, reports: make(map[string]*peerReport), adaptive: make(map[string]*clientThrottle), exclude: newExcluder(nil)}
}

func (p *Peers) configure(s *Settings) {
	p.mu.Lock()
	defer p.mu.Unlock()
	profile := find(s.NodeProfiles, s.Node.OverloadProfile, func(p *NodeProfile) string { return p.Name })
	p.active = profile != nil && profile.PeerAction == "throttle"
	if p.honours.Store(p.active); !p.active {
		return
	}
	p.weights = [2]float64{float64(profile.Group1), float64(profile.Group2)}
	p.exclude = newExcluder(find(s.ExcludeProfiles, profile.PeerExclude, func(p *ExcludeProfile) string { return p.Name }))
}

// Overloaded notes a report of a peer. An older sequence is ignored; so is a
// newer one with a reduction outside 0 to 100. A validity of 0 and a reduction
// of 0 end the overload (RFC 7683 §4.2.1.3, TS 29.500 §6.4.3.4.5).
func (p *Peers) Overloaded(peer string, sequence int64, reduction int, validity time.Duration, now time.Time) {
	if reduction < 0 || reduction > 100 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reports[peer]
	switch {
	case r == nil && len(p.reports) >= maxPeers:
		return
	case r == nil:
		r = new(peerReport)
		p.reports[peer] = r
	case sequence < r.sequence && now.Before(r.until):
		return
	case sequence == r.sequence && now.Before(r.until):
		// The same report once more: it holds as long as it was said to.
		return
	}
	r.sequence, r.reduction, r.until = sequence, float64(reduction)/100, now.Add(validity)
	if reduction == 0 || validity <= 0 {
		r.until = now
	}
}

// Honours reports whether reports of peers have an effect.
func (p *Peers) Honours() bool { return p.honours.Load() }

// sweep forgets reports that have expired and lets counts fade.
func (p *Peers) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.reports {
		if now.After(r.until) {
			delete(p.reports, name)
			continue
		}
		for i := range r.recent {
			r.recent[i] *= fading
		}
	}
	for name, t := range p.adaptive {
		if t.fade(now) {
			delete(p.adaptive, name)
		}
	}
}

// count is how many reports hold.
func (p *Peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reports)
}

// fading is the part of a count that is left after one tick, so that half of
// it is left after about three seconds.
const fading = .99

// Allow reports whether a request may be sent to the peer, whose names are
// given most specific first: the first that has reported counts. The priority
// is 0 (highest) to 31.
func (p *Peers) Allow(r *admission.Request, priority int, now time.Time, names ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active || len(p.reports) == 0 {
		return true
	}
	for _, name := range names {
		if rep := p.reports[name]; name != "" && rep != nil && now.Before(rep.until) {
			if r.Urgent || p.exclude.excludes(r, priority) || !rep.drops(r.Begins, p.weights) {
				return true
			}
			p.throttled.WithLabelValues(r.Message).Inc()
			return false
		}
	}
	return true
}

// drops reports whether the request is one of those that stay away. The two
// groups, requests that begin a session and all others, are reduced in the
// ratio of their weights so that together they are reduced as was asked.
func (r *peerReport) drops(begins bool, weights [2]float64) bool {
	group := 1
	if begins {
		group = 0
	}
	r.recent[group]++
	return r.pickers[group].pick(share(r.parts(weights)[group] * whole))
}

// parts are the reductions of the groups.
func (r *peerReport) parts(weights [2]float64) (parts [2]float64) {
	n := r.recent
	total := r.reduction * (n[0] + n[1])
	for i := range parts {
		parts[i] = total * weights[i] / (weights[0]*n[0] + weights[1]*n[1])
	}
	for i := range parts {
		if other := 1 - i; parts[i] > 1 && n[other] > 0 {
			parts[i], parts[other] = 1, min(1, (total-n[i])/n[other])
		}
		parts[i] = min(parts[i], 1)
	}
	return parts
}

// MaySend reports whether a request may be sent to an HTTP server: by its
// overload reports, and while it has not said with Retry-After that it wants
// none.
func (p *Peers) MaySend(uri string) bool {
	now := time.Now()
	root := authority(uri)
	p.mu.Lock()
	t := p.adaptive[root]
	ok := t == nil || t.allow(now)
	p.mu.Unlock()
	if !ok {
		p.throttled.WithLabelValues("notify").Inc()
		return false
	}
	r := &admission.Request{Message: "notify", OCPriority: admission.Absent, SBIPriority: admission.Absent, DRMP: admission.Absent, RequestType: admission.Absent}
	return p.Allow(r, priorities-1, now, uri, root)
}

// Answered notes the answer of an HTTP server: its 3gpp-Sbi-Oci, and whether
// it was too busy (TS 29.500 §6.4.2).
func (p *Peers) Answered(uri string, status int, header http.Header) {
	now := time.Now()
	root := authority(uri)
	p.mu.Lock()
	t := p.adaptive[root]
	if t == nil && len(p.adaptive) < maxPeers && busy(status) {
		t = &clientThrottle{}
		p.adaptive[root] = t
	}
	if t != nil {
		t.answered(now, busy(status), header.Get("Retry-After"))
	}
	p.mu.Unlock()
	for _, text := range header["3gpp-Sbi-Oci"] {
		list, err := ParseOCI(text)
		if err != nil {
			continue
		}
		for _, c := range list {
			names := []string{root}
			if c.Scope == "Callback-Uri" {
				names = c.Values
			}
			for _, name := range names {
				p.Overloaded(name, c.Timestamp.Unix(), c.Metric, c.Validity, now)
			}
		}
	}
}

// busy reports whether a status says that the server has too much to do.
func busy(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

// authority is the part of a URI that names the server.
func authority(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Scheme + "://" + u.Host
}

// clientThrottle holds requests back from a server that refuses them. While it
// names a time to come back, none is sent; else they are held back in the
// proportion in which it refuses.
type clientThrottle struct {
	requests, accepts float64
	until             time.Time
	picker            picker
}

// The bounds of clientThrottle.
const (
	// tolerance is how many times the accepted requests are sent.
	tolerance = 1.5
	// longestWait bounds a Retry-After.
	longestWait = 10 * time.Minute
)

// probability is the part of the requests that is held back.
func (t *clientThrottle) probability() float64 {
	return max(0, (t.requests-tolerance*t.accepts)/(t.requests+1))
}

func (t *clientThrottle) allow(now time.Time) bool {
	if now.Before(t.until) {
		return false
	}
	hold := t.picker.pick(share(t.probability() * whole))
	t.requests++
	if hold {
		return false
	}
	// Until the answer comes it counts as refused.
	return true
}

func (t *clientThrottle) answered(now time.Time, busy bool, retryAfter string) {
	if !busy {
		t.accepts++
		return
	}
	if wait, err := strconv.Atoi(retryAfter); err == nil && wait > 0 {
		t.until = now.Add(min(time.Duration(wait)*time.Second, longestWait))
	} else if at, err := http.ParseTime(retryAfter); err == nil && at.After(now) {
		t.until = now.Add(min(at.Sub(now), longestWait))
	}
}

// fade lets the counts fade and reports whether nothing is left of them.
func (t *clientThrottle) fade(now time.Time) bool {
	t.requests *= fading
	t.accepts *= fading
	return t.requests < .1 && now.After(t.until)
}
