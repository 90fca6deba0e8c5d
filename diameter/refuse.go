package diameter

import (
	"bsfd/diameter/rx"
	"bsfd/internal/admission"
)

// hasty is what a turn keeps to refuse requests without reading them.
type hasty struct {
	glance rx.Glance
	// of is the refusal for which answer was prepared, nil for none.
	of     *admission.Refusal
	answer rx.Refusal
	plain  bool // answer can be used
}

// hasten decides on a request while more comes than can be served, and answers
// it when it is refused: true. It looks only at what the decision needs. A
// request that it cannot handle is decided on by the way that all take when
// there is time; decided tells whether that is still to be done.
func (c *conn) hasten(t *turn, h rx.Header, m []byte) (refused, decided bool) {
	g, q := c.g, &t.hasty
	k, known := kindOf(h.Command)
	if h.Application != rx.ApplicationID || !known || g.cfg.Priority.Code != 0 || g.draining.Load() || !q.glance.Glance(h, m) || !q.glance.Plain {
		return false, false
	}
	refusal := g.deps.Admitter.Admit(g.brief(t, k, h.Application, &q.glance.Brief))
	if refusal == nil {
		return false, true
	}
	if q.of != refusal {
		q.of = refusal
		q.answer, q.plain = rx.NewRefusal(g.origin(), refusalResult(refusal), refusal.Detail)
	}
	g.metrics.received[k].Inc()
	if extra := c.reports(t, true, false, false); !q.plain || extra != nil {
		if t.view.Scan(m) == nil {
			c.turnAway(t, refusal)
		}
		return true, true
	}
	t.scratch = q.glance.Refuse(t.scratch[:0], &q.answer)
	c.counters.answersOut.Add(1)
	g.metrics.own(refusalResult(refusal))
	c.send(t, t.scratch)
	return true, true
}
