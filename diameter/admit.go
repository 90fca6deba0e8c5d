package diameter

import (
	"encoding/binary"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/admission"
)

// Admitter decides which requests are served.
type Admitter interface {
	// Deciding reports whether Admit wants to see requests; false serves all
	// of them.
	Deciding() bool
	// Pressed reports whether more comes than can be served, so that work is
	// to be done cheaply rather than soon.
	Pressed() bool
	// Admit decides on a request: nil serves it.
	Admit(r *admission.Request) *admission.Refusal
	// Failed notes the result of an answer of this node that is an error and
	// no refusal.
	Failed(result int)
}

// Reports exchanges reports about load and overload with peers (RFC 7683, RFC
// 8583).
type Reports interface {
	// Report is what a peer is to be told in an answer now.
	Report(p *admission.Peer, now time.Time) admission.Report
	// Honours reports whether Overloaded has an effect.
	Honours() bool
	// Overloaded notes what a node has reported.
	Overloaded(node string, sequence int64, reduction int, validity time.Duration, now time.Time)
	// MaySend reports whether a request may go to the nodes, the most specific
	// first.
	MaySend(r *admission.Request, now time.Time, nodes ...string) bool
}

// Priority is the AVP that carries oc-message-priority.
type Priority struct {
	Code   uint32 `koanf:"code" usage:"code of the OC-Message-Priority AVP, an Unsigned32 of 0 to 31; 0 reads none"`
	Vendor uint32 `koanf:"vendorId" usage:"vendor of the OC-Message-Priority AVP"`
}

// describe is what a decision needs to know of the request in the turn's view.
func (g *Gateway) describe(t *turn, k kind) *admission.Request {
	b := t.view.Brief()
	q := g.brief(t, k, t.view.Application, &b)
	if p := g.cfg.Priority; p.Code != 0 {
		q.OCPriority = number(t.view.Find(rx.Code(p.Code), p.Vendor), 31)
	}
	return q
}

// brief is what a brief says of a request.
func (g *Gateway) brief(t *turn, k kind, application uint32, b *rx.Brief) *admission.Request {
	q := &t.asked
	*q = admission.Request{
		Message: k.String(), Application: application, SBIPriority: admission.Absent, OCPriority: admission.Absent,
		RequestType: number(b.RxRequestType, admission.Absent), DRMP: number(b.DRMP, 15), Ends: k == kindSTR, Urgent: b.Urgent, Priority: admission.Absent,
	}
	if k == kindAAR {
		q.Begins = g.opens(b.RxRequestType, b.DestinationHost, b.SessionID)
	}
	if len(b.CalledStationID) > 0 {
		q.DNN = t.intern(b.CalledStationID)
	}
	return q
}

// opens reports whether an AAR begins a session: it says so, or it says
// nothing, names no PCF and its session is not known.
func (g *Gateway) opens(requestType, host, session []byte) bool {
	if requestType != nil || host != nil && !rx.EqualIdentity(host, g.cfg.OriginHost) {
		return string(requestType) == "\x00\x00\x00\x00"
	}
	_, known := g.sessions.pcf(session)
	return !known
}

// number is the value of an Unsigned32 or Enumerated up to a maximum, where
// admission.Absent is no maximum; admission.Absent when there is none.
func number(b []byte, highest int) int {
	if len(b) != 4 {
		return admission.Absent
	}
	n := int(binary.BigEndian.Uint32(b))
	if highest != admission.Absent && n > highest {
		return admission.Absent
	}
	return n
}

// admit reports whether the request in the turn's view is served. One that is
// not has its answer.
func (c *conn) admit(t *turn, k kind) bool {
	g := c.g
	if g.draining.Load() {
		c.answer(t, &rx.Answer{Result: g.results.busy, Text: "the node is shutting down"})
		return false
	}
	if !g.deps.Admitter.Deciding() {
		return true
	}
	refusal := g.deps.Admitter.Admit(g.describe(t, k))
	if refusal == nil {
		return true
	}
	c.turnAway(t, refusal)
	return false
}

// turnAway answers the request in the turn's view with the refusal.
func (c *conn) turnAway(t *turn, refusal *admission.Refusal) {
	c.reply(t, &rx.Answer{Result: refusalResult(refusal), Text: refusal.Detail})
}

func refusalResult(r *admission.Refusal) rx.Result {
	return rx.Result{Code: r.Result, Vendor: r.Vendor}
}
