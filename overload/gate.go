package overload

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"bsfd/internal/admission"
)

// reason is why a request is refused, for the metrics.
type reason int

const (
	byCongestion reason = iota
	byOverload
	byAdaptive
	byProtection
	byRate
	byNode
	byShutdown
	reasons = iota
)

// String is the label of the reason.
func (r reason) String() string {
	return [reasons]string{"congestion", "overload", "adaptive", "pod_protection", "rate_limit", "self_protection", "shutdown"}[r]
}

// verdict is why and how requests of one priority are refused, and how many of
// them.
type verdict struct {
	share   share
	reason  reason
	refusal *admission.Refusal
}

// rules are what a gate decides by. They do not change once they are made.
type rules struct {
	priority priority
	// shed is by priority.
	shed [priorities]verdict
	// node refuses everything but what is excluded, nil while the node does
	// not protect itself.
	node    *admission.Refusal
	exclude *excluder
	// closed refuses every request, noNew those that begin a session.
	closed, noNew *admission.Refusal
	routes        []limited
	// sheds is set when some request may be refused; counts when arrivals
	// are to be counted; answers when priorities go into answers; profile
	// when a message profile is active.
	sheds, counts, profile bool
	// pressed is set while the load makes it refuse requests, or has lately.
	pressed bool
}

// Gate decides for one service. It is safe for concurrent use.
type Gate struct {
	controller *Controller
	service    Service
	rules      atomic.Pointer[rules]
	pickers    [priorities]picker
	arrived    [priorities]atomic.Uint64
	failures   atomic.Uint64
	metrics    *gateMetrics
}

// Admit decides on a request: nil serves it.
func (g *Gate) Admit(r *admission.Request) *admission.Refusal {
	refusal, _ := g.decide(g.rules.Load(), r)
	return refusal
}

// AdmitHTTP decides on a request: nil serves it. What is to be told to the
// consumer goes into the header of the answer: 3gpp-Sbi-Lci, 3gpp-Sbi-Oci and
// 3gpp-Sbi-Message-Priority.
func (g *Gate) AdmitHTTP(r *admission.Request, answer http.Header) *admission.Refusal {
	rules := g.rules.Load()
	refusal, priority := g.decide(rules, r)
	if priority != admission.Absent {
		answer["3gpp-Sbi-Message-Priority"] = []string{strconv.Itoa(priority)}
	}
	if a := g.controller.adverts.Load(); a != nil && r.Peer != nil {
		a.tell(r.Peer, time.Now(), answer)
	}
	return refusal
}

// decide also returns the priority of the answer, or admission.Absent.
func (g *Gate) decide(rules *rules, r *admission.Request) (refusal *admission.Refusal, answer int) {
	if !rules.sheds && !rules.counts && !rules.profile {
		return nil, admission.Absent
	}
	p, answer := rules.priority.of(r)
	r.Priority = p
	if rules.profile {
		g.metrics.evaluated(r, p, answer)
	}
	if rules.counts {
		g.arrived[p].Add(1)
	}
	if !rules.sheds {
		return nil, answer
	}
	refusal, why := g.refuse(rules, r, p)
	if refusal != nil {
		g.metrics.refused(why, r, p)
	}
	return refusal, answer
}

// refuse is the refusal of a request of the priority, nil when it is served.
func (g *Gate) refuse(rules *rules, r *admission.Request, p int) (*admission.Refusal, reason) {
	switch {
	case rules.closed != nil:
		return rules.closed, byShutdown
	case rules.noNew != nil && r.Begins:
		return rules.noNew, byShutdown
	case rules.node != nil && !r.Urgent && !rules.exclude.excludes(r, p):
		return rules.node, byNode
	}
	if v := &rules.shed[p]; g.pickers[p].pick(v.share) {
		return v.refusal, v.reason
	}
	if l := rules.route(r); l != nil && l.refuses(p) {
		return l.refusal, byRate
	}
	return nil, 0
}

// Deciding reports whether Admit may refuse a request, or counts it.
func (g *Gate) Deciding() bool {
	rules := g.rules.Load()
	return rules.sheds || rules.counts || rules.profile
}

// Pressed reports whether more comes than can be served.
func (g *Gate) Pressed() bool { return g.rules.Load().pressed }

// Failed notes an answer that is an error: a status of HTTP or a result code
// of Diameter. Refusals are none.
func (g *Gate) Failed(status int) {
	if g.controller.failure(g.service, status) {
		g.failures.Add(1)
	}
}

// excluder names requests that are left alone.
type excluder struct {
	dnns                   map[string]bool
	upto                   int
	begins, ends, modifies bool // procedures
}

func newExcluder(p *ExcludeProfile) *excluder {
	e := &excluder{upto: admission.Absent, dnns: make(map[string]bool)}
	if p == nil {
		return e
	}
	e.upto = p.PriorityUpto
	for _, d := range p.DNNs {
		e.dnns[d] = true
	}
	for _, name := range p.Procedures {
		switch name {
		case "session-delete":
			e.ends = true
		case "new-call":
			e.begins = true
		case "modify":
			e.modifies = true
		}
	}
	return e
}

// excludes reports whether the request is left alone. Requests that neither
// begin nor end a session modify one.
func (e *excluder) excludes(r *admission.Request, priority int) bool {
	switch {
	case priority <= e.upto:
		return true
	case r.DNN != "" && e.dnns[r.DNN]:
		return true
	case r.Begins:
		return e.begins
	case r.Ends:
		return e.ends
	}
	return e.modifies
}
