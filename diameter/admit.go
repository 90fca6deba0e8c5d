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
	v, q := &t.view, &t.asked
	*q = admission.Request{
		Message: k.String(), Application: v.Application, SBIPriority: admission.Absent,
		RequestType: number(v.RxRequestType.Data, admission.Absent), DRMP: number(v.DRMP.Data, 15), OCPriority: admission.Absent,
		Begins: k == kindAAR && g.opens(v.RxRequestType.Data, v.DestinationHost.Data, v.SessionID.Data), Ends: k == kindSTR, Urgent: v.Urgent(),
	}
	if len(v.CalledStationID.Data) > 0 {
		q.DNN = t.intern(v.CalledStationID.Data)
	}
	if p := g.cfg.Priority; p.Code != 0 {
		q.OCPriority = number(v.Find(rx.Code(p.Code), p.Vendor), 31)
	}
	return q
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
	c.reply(t, &rx.Answer{Result: rx.Result{Code: refusal.Result, Vendor: refusal.Vendor}, Text: refusal.Detail})
	return false
}
