package diameter

import (
	"context"
	"errors"
	"time"

	"bsfd/bsf"
	"bsfd/diameter/rx"
	"bsfd/internal/tgpp"
)

// lookup is an AAR whose binding is looked for on another goroutine.
type lookup struct {
	conn  *conn
	msg   []byte
	query bsf.Query
}

// query reads what an AAR says about the UE. The error is a *rx.Error.
func (g *Gateway) query(v *rx.View) (q bsf.Query, err error) {
	k, err := v.Key()
	if err != nil {
		return q, err
	}
	q = bsf.Query{Ipv4Addr: k.Ipv4, Ipv6: k.Ipv6, IpDomain: string(k.IPDomain), Dnn: tgpp.Dnn(k.DNN)}
	switch {
	case k.IMSI != nil:
		q.Supi = tgpp.Supi("imsi-" + string(k.IMSI))
	case k.NAI != nil:
		q.Supi = tgpp.Supi("nai-" + string(k.NAI))
	}
	if k.E164 != nil {
		q.Gpsi = tgpp.Gpsi("msisdn-" + string(k.E164))
	}
	if !q.Ipv4Addr.IsValid() && !q.Ipv6.IsValid() && (!g.cfg.LookupBySubscription || q.Supi == "" || q.Dnn == "") {
		return q, &rx.Error{
			Result: rx.Base(rx.MissingAVP), Text: "no address of the UE",
			Failed: rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, make([]byte, 4)),
		}
	}
	return q, nil
}

// discover looks for the binding of the AAR in the turn's view and goes on
// with it.
func (c *conn) discover(t *turn) {
	q, err := c.g.query(&t.view)
	t.query = q
	if err != nil {
		fault := asFault(err)
		c.answer(t, &rx.Answer{Result: fault.Result, Failed: fault.Failed, Text: fault.Text})
		return
	}
	if !c.g.deps.Remote {
		rec, err := c.g.deps.Bindings.Discover(t.ctx, &t.query)
		c.discovered(t, rec, err)
		return
	}
	if c.g.crowded(t.asked.Priority) {
		c.reply(t, &rx.Answer{Result: c.g.results.busy, Text: "too many lookups are under way"})
		return
	}
	c.g.looking.Add(1)
	select {
	case c.g.lookups <- &lookup{c, append([]byte(nil), t.view.Raw...), q}:
	default:
		c.g.looking.Add(-1)
		c.answer(t, &rx.Answer{Result: c.g.results.busy, Text: "too many lookups are under way"})
	}
}

// crowded reports whether the queue of lookups is too full for a request of the
// priority: from half full on the lowest priorities have no room, and the
// fuller it is the higher they must be. What is left is for those that matter
// most.
func (g *Gateway) crowded(priority int) bool {
	const lowest = 31
	free := cap(g.lookups) - len(g.lookups)
	return 2*free*lowest < priority*cap(g.lookups)
}

// lookupWorker makes lookups that wait for a database.
func (g *Gateway) lookupWorker(ctx context.Context) {
	t := &turn{g: g, ctx: ctx}
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-g.lookups:
			l.run(t)
		}
	}
}

func (l *lookup) run(t *turn) {
	defer t.g.looking.Add(-1)
	ctx, cancel := context.WithTimeout(t.ctx, t.g.cfg.DiscoveryTimeout)
	defer cancel()
	rec, err := t.g.deps.Bindings.Discover(ctx, &l.query)
	t.now = time.Now()
	// It was scanned before.
	if t.view.Scan(l.msg) == nil {
		l.conn.discovered(t, rec, err)
		t.flush()
	}
}

// discovered goes on with the outcome of a lookup.
func (c *conn) discovered(t *turn, rec *bsf.Record, err error) {
	switch {
	case err == nil:
		c.g.metrics.found.Inc()
		c.bound(t, rec)
	case errors.Is(err, bsf.ErrNotFound):
		c.g.metrics.lookups.WithLabelValues("none").Inc()
		c.answer(t, &rx.Answer{Result: c.g.results.noBinding, Text: "no session has the address"})
	case errors.As(err, new(*bsf.Ambiguous)):
		c.g.metrics.lookups.WithLabelValues("ambiguous").Inc()
		c.answer(t, &rx.Answer{Result: c.g.results.discovery, Text: "several sessions have the address"})
	default:
		c.g.metrics.lookups.WithLabelValues("failed").Inc()
		c.g.often.Warn().Err(err).Msg("the lookup of a binding failed")
		c.answer(t, &rx.Answer{Result: c.g.results.discovery, Text: "the lookup of the binding failed"})
	}
}
