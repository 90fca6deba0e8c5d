package overload

import (
	"sync/atomic"
	"time"

	"bsfd/internal/admission"
)

// routeMeter counts the requests of a route that may be refused for their
// priority, and refuses in a period the share that was too much in the period
// before.
type routeMeter struct {
	arrived atomic.Uint64
	picker  picker
	last    uint64
	share   share
}

// period ends a sampling period: the rate over it decides the share of the
// next one.
func (m *routeMeter) period(took time.Duration, rate int) {
	n := m.arrived.Load()
	came := float64(n - m.last)
	m.last, m.share = n, 0
	allowed := float64(rate) * took.Seconds()
	if rate > 0 && came > allowed {
		m.share = share((came - allowed) / came * whole)
	}
}

// limited is a route with the share of its requests that is refused.
type limited struct {
	method, path string
	bound        int
	share        share
	meter        *routeMeter
	refusal      *admission.Refusal
}

// refuses counts a request and reports whether it is refused. Priorities up to
// the bound are neither counted nor refused.
func (l *limited) refuses(priority int) bool {
	if priority <= l.bound {
		return false
	}
	l.meter.arrived.Add(1)
	return l.meter.picker.pick(l.share)
}

// route is the limit for the request, nil for none.
func (r *rules) route(q *admission.Request) *limited {
	for i := range r.routes {
		if l := &r.routes[i]; l.method == q.Method && l.path == collection(q.Message) {
			return l
		}
	}
	return nil
}

// collection is the collection of an operation.
func collection(operation string) string {
	switch operation {
	case "ue_register", "ue_discover", "ue_update", "ue_deregister":
		return "pcf-ue-bindings"
	case "mbs_register", "mbs_discover", "mbs_update", "mbs_deregister":
		return "pcf-mbs-bindings"
	case "subscribe", "resubscribe", "unsubscribe":
		return "subscriptions"
	}
	return "pcfBindings"
}
