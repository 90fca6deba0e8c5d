package rx

import "time"

// Redirect is what an answer with DIAMETER_REDIRECT_INDICATION says (RFC 6733
// §6.12 to §6.14).
type Redirect struct {
	// Hosts are DiameterURIs, at most 8 of them.
	Hosts []string
	// Usage is the Redirect-Host-Usage, 0 (DONT_CACHE) when absent.
	Usage uint32
	// CacheTime is the Redirect-Max-Cache-Time.
	CacheTime time.Duration
}

// RedirectOf reads the redirect of an answer.
func RedirectOf(v *View) (r Redirect) {
	const maxHosts = 8
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			break
		}
		switch {
		case a.is(RedirectHost, 0) && len(r.Hosts) < maxHosts:
			r.Hosts = append(r.Hosts, string(a.Data))
		case a.is(RedirectHostUsage, 0):
			r.Usage, _ = a.Uint32()
		case a.is(RedirectMaxCacheTime, 0):
			n, _ := a.Uint32()
			r.CacheTime = time.Duration(n) * time.Second
		}
		off = next
	}
	return r
}
