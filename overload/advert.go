package overload

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"bsfd/internal/admission"
)

// adverts is what consumers are told about the load of the node. It does not
// change once it is made.
type adverts struct {
	load, overload value
	lci, oci       string // the header values, empty when not told over HTTP
	over           admission.Overload
	diameterLoad   bool
	diameterOver   bool
}

// value is a value and when it is told again.
type value struct {
	value    int64
	interval time.Duration
	change   int64
	active   bool
}

// newAdverts is what is to be told, nil for nothing.
func newAdverts(s *Settings, id Identity, n *nodeState) *adverts {
	lp := loadProfile(s)
	if lp == nil || n.loadAt.IsZero() {
		return nil
	}
	a := &adverts{
		load:         value{int64(n.load), time.Duration(lp.Interval) * time.Second, int64(lp.ChangeFactor), true},
		diameterLoad: lp.Diameter == "advertise",
	}
	if lp.SBI == "advertise" {
		a.lci = formatLCI(n.loadAt, n.load, id.InstanceID)
	}
	if p := n.profile(s); p != nil && !n.reductionAt.IsZero() {
		validity := time.Duration(p.Validity) * time.Second
		a.overload = value{int64(n.reduction), min(time.Duration(p.Interval)*time.Second, validity), int64(p.ChangeFactor), n.state != nodeNormal}
		a.over = admission.Overload{Sequence: uint64(n.reductionAt.UnixMilli()), Reduction: n.reduction, Validity: validity}
		a.diameterOver = p.Diameter == "advertise"
		if p.SBI == "advertise" {
			a.oci = formatOCI(n.reductionAt, validity, n.reduction, id.InstanceID)
		}
	}
	if a.lci == "" && a.oci == "" && !a.diameterLoad && !a.diameterOver {
		return nil
	}
	return a
}

// due reports whether a peer is to be told the value now: when it was never
// told, or the interval is over, or the value has changed by more than the
// factor. One that is no longer active is told once more, so that it ends
// before its validity does.
func (v *value) due(t *admission.Told, now time.Time) bool {
	at, last := t.Last()
	if !v.active {
		return last != 0
	}
	return at.IsZero() || now.Sub(at) >= v.interval || last-v.value > v.change || v.value-last > v.change
}

// tell puts into the answer what the peer is to be told.
func (a *adverts) tell(p *admission.Peer, now time.Time, answer http.Header) {
	if a.lci != "" && a.load.due(&p.Load, now) {
		answer["3gpp-Sbi-Lci"] = []string{a.lci}
		p.Load.Note(now, a.load.value)
	}
	if a.oci != "" && a.overload.due(&p.Overload, now) {
		answer["3gpp-Sbi-Oci"] = []string{a.oci}
		p.Overload.Note(now, a.overload.value)
	}
}

// Report is what a Diameter peer is to be told in an answer.
func (g *Gate) Report(p *admission.Peer, now time.Time) (r admission.Report) {
	r.Load = admission.Absent
	a := g.controller.adverts.Load()
	if a == nil {
		return r
	}
	if a.diameterLoad && a.load.due(&p.Load, now) {
		p.Load.Note(now, a.load.value)
		r.Load = int(100-a.load.value) * math.MaxUint16 / 100
	}
	if a.diameterOver && a.overload.due(&p.Overload, now) {
		p.Overload.Note(now, a.overload.value)
		r.Overload = &a.over
	}
	return r
}

// Honours reports whether overload reports of peers have an effect.
func (g *Gate) Honours() bool { return g.controller.peers.Honours() }

// Overloaded notes the overload report of a peer.
func (g *Gate) Overloaded(peer string, sequence int64, reduction int, validity time.Duration, now time.Time) {
	g.controller.peers.Overloaded(peer, sequence, reduction, validity, now)
}

// MaySend reports whether a request may be sent to the peers, most specific
// first.
func (g *Gate) MaySend(r *admission.Request, now time.Time, peers ...string) bool {
	p, _ := g.rules.Load().priority.of(r)
	return g.controller.peers.Allow(r, p, now, peers...)
}

// dateTime is the date-time of LCI and OCI (RFC 5322).
const dateTime = "Mon, 02 Jan 2006 15:04:05 GMT"

// formatLCI is a 3gpp-Sbi-Lci (TS 29.500 §5.2.3.2.10).
func formatLCI(at time.Time, load int, instance string) string {
	return fmt.Sprintf(`Timestamp: "%s"; Load-Metric: %d%%; NF-Instance: %s`, at.UTC().Format(dateTime), load, instance)
}

// formatOCI is a 3gpp-Sbi-Oci (TS 29.500 §5.2.3.2.9).
func formatOCI(at time.Time, validity time.Duration, reduction int, instance string) string {
	return fmt.Sprintf(`Timestamp: "%s"; Period-of-Validity: %ds; Overload-Reduction-Metric: %d%%; NF-Instance: %s`,
		at.UTC().Format(dateTime), int(validity.Seconds()), reduction, instance)
}
