package diameter

import (
	"context"
	"errors"
	"strings"
	"time"

	"bsfd/bsf"
	"bsfd/diameter/rx"
	"bsfd/internal/admission"
	"bsfd/internal/tgpp"
)

// lookup is an AAR whose binding is looked for on another goroutine.
type lookup struct {
	conn  *conn
	msg   []byte
	query bsf.Query
	since time.Time
}

// lookupQueue holds the lookups that wait, in lanes by priority: those of a
// lane are made before all of the lanes below it.
type lookupQueue [4]chan *lookup

// lookupRoom is how many lookups may wait in each lane for each one that is
// under way, so that a burst is no reason to refuse requests. Those that matter
// most have room for the time for which a database may stand still.
var lookupRoom = [len(lookupQueue{})]int{32, 16, 8, 4}

// lookupMiddle is the priority of requests that nobody has looked at.
const lookupMiddle = 16

func newLookupQueue(workers int) (q lookupQueue) {
	for i := range q {
		q[i] = make(chan *lookup, lookupRoom[i]*workers)
	}
	return q
}

// put adds a lookup of a priority, 0 (highest) to 31; false means that there is
// no room.
func (q *lookupQueue) put(l *lookup, priority int) bool {
	const priorities = 32
	select {
	case q[priority*len(q)/priorities] <- l:
		return true
	default:
		return false
	}
}

// take waits for a lookup; nil means that ctx has ended.
func (q *lookupQueue) take(ctx context.Context) *lookup {
	for i := range q {
		select {
		case l := <-q[i]:
			return l
		default:
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case l := <-q[0]:
		return l
	case l := <-q[1]:
		return l
	case l := <-q[2]:
		return l
	case l := <-q[3]:
		return l
	}
}

// query reads what an AAR says about the UE. The error is a *rx.Error.
func (c *conn) query(v *rx.View) (q bsf.Query, err error) {
	g := c.g
	k, err := v.Key()
	if err != nil {
		return q, err
	}
	if k.Bare || k.Bits {
		if err := c.checkKey(v, &k); err != nil {
			return q, err
		}
	}
	q = bsf.Query{Ipv4Addr: k.Ipv4, Ipv6: k.Ipv6, IpDomain: string(k.IPDomain), Dnn: tgpp.Dnn(k.DNN)}
	switch {
	case k.IMSI != nil:
		q.Supi = tgpp.Supi("imsi-" + c.identifier(k.IMSI, "imsi-"))
	case k.NAI != nil:
		q.Supi = tgpp.Supi("nai-" + c.identifier(k.NAI, "nai-"))
	}
	if k.E164 != nil {
		q.Gpsi = tgpp.Gpsi("msisdn-" + c.identifier(k.E164, "msisdn-", "tel:", "+"))
	}
	if !q.Ipv4Addr.IsValid() && !q.Ipv6.IsValid() && (!g.cfg.LookupBySubscription || q.Supi == "" || q.Dnn == "") {
		return q, &rx.Error{
			Result: rx.Base(rx.MissingAVP), Text: "no address of the UE",
			Failed: rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, make([]byte, 4)),
		}
	}
	return q, nil
}

// identifier is the data of a Subscription-Id without what its type says
// already.
func (c *conn) identifier(data []byte, prefixes ...string) string {
	s := string(data)
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(s, p); ok && c.g.tolerates(c.host(), tolSubscriptionText) {
			s = rest
		}
	}
	return s
}

// discover looks for the binding of the AAR in the turn's view and goes on
// with it.
func (c *conn) discover(t *turn) {
	q, err := c.query(&t.view)
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
	priority := t.asked.Priority
	switch {
	case priority != admission.Absent:
	case t.view.Urgent():
		priority = 0
	default:
		priority = lookupMiddle
	}
	c.g.looking.Add(1)
	if !c.g.lookups.put(&lookup{c, append([]byte(nil), t.view.Raw...), q, t.now}, priority) {
		c.g.looking.Add(-1)
		c.reply(t, &rx.Answer{Result: c.g.results.busy, Text: "too many lookups are under way"})
	}
}

// lookupWorker makes lookups that wait for a database.
func (g *Gateway) lookupWorker(ctx context.Context) {
	t := &turn{g: g, ctx: ctx}
	for l := g.lookups.take(ctx); l != nil; l = g.lookups.take(ctx) {
		l.run(t)
	}
}

func (l *lookup) run(t *turn) {
	defer t.g.looking.Add(-1)
	ctx, cancel := context.WithDeadline(t.ctx, l.since.Add(t.g.cfg.DiscoveryTimeout))
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
