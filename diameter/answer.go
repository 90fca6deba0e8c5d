package diameter

import (
	"slices"
	"time"

	"bsfd/diameter/rx"
)

// forwardAnswer takes the request that an answer belongs to and sends the
// answer to where the request came from, unless the request is tried again.
// An answer that belongs to none is discarded (RFC 6733 §6.2.1).
func (c *conn) forwardAnswer(t *turn, m []byte) {
	h := rx.ParseHeader(m)
	p := c.pend.take(h.HopByHop)
	if p == nil {
		c.discard(t, h, "an answer to no request, or a late one")
		return
	}
	if application := rx.ParseHeader(p.msg).Application; h.Application != application {
		if !c.g.tolerates(c.host(), tolAnswerApplication) {
			c.discard(t, h, "an answer of another application than its request")
			c.g.give(t, p, rx.Base(rx.UnableToComply), "the answer of "+c.host()+" is of another application")
			return
		}
		rx.SetApplication(m, application)
	}
	if err := c.scan(t, m); err != nil {
		c.g.metrics.malformed.WithLabelValues("answer").Inc()
		c.g.give(t, p, rx.Base(rx.UnableToComply), "the answer of "+c.host()+" cannot be read")
		return
	}
	v := &t.view
	result, _ := v.Result()
	c.g.metrics.answered(p, result, t.now)
	if c.tryAgain(t, p, result) || result == rx.Base(rx.RedirectIndication) && c.follow(t, p) {
		return
	}
	c.learn(t, p, result)
	var drop rx.Field
	if c.g.cfg.ProxyInfo {
		drop, _ = v.OwnProxyInfo(c.g.cfg.OriginHost)
	}
	p.from.counters.answersOut.Add(1)
	if answer, ok := c.rewritten(t, p); ok && v.Scan(answer) == nil && drop.Present() {
		drop, _ = v.OwnProxyInfo(c.g.cfg.OriginHost)
	}
	p.from.pass(t, v, p.fromHop, drop)
	t.passed++
	c.g.pool.put(p)
}

// pass sends the answer in the view with the Hop-by-Hop Identifier.
func (c *conn) pass(t *turn, v *rx.View, hopByHop uint32, drop rx.Field) {
	if !drop.Present() {
		// The common case changes the message in place.
		rx.SetHopByHop(v.Raw, hopByHop)
		c.send(t, v.Raw)
		return
	}
	t.scratch = rx.AppendForwardedAnswer(t.scratch[:0], v, hopByHop, drop)
	c.send(t, t.scratch)
}

// tryAgain sends the request to another peer when the error of the answer is
// one to do so for: by the rules, or because another instance could not
// deliver it.
func (c *conn) tryAgain(t *turn, p *pending, result rx.Result) bool {
	if result.Success() {
		return false
	}
	f := failure{result: result, destination: rx.EqualIdentity(t.view.OriginHost.Data, p.dest)}
	undelivered := c.fromInstance() && result == rx.Base(rx.UnableToDeliver)
	if !undelivered && !c.g.mayRetry(p, f) {
		return false
	}
	// The view still has the answer; the request has one of its own.
	var request rx.View
	return c.g.resend(t, p, &request, false, "result")
}

// mayRetry reports whether the rules let a request be sent once more.
func (g *Gateway) mayRetry(p *pending, f failure) bool {
	return g.cfg.Retry.retries(p.kind, f) && p.attempts < g.cfg.Retry.Attempts.of(p.kind)
}

// resend sends the request to a peer that did not have it yet. The T bit is
// set where no answer came (RFC 6733 §5.5.4); after an error answer the request
// is a new one for the alternate. False means that there is no peer; then the
// pending is as it was.
func (g *Gateway) resend(t *turn, p *pending, v *rx.View, retransmit bool, reason string) bool {
	if err := v.Scan(p.msg); err != nil {
		return false
	}
	cycle := g.cfg.Retry.Enabled && g.cfg.Retry.CycleBack.of(p.kind)
	tried := p.tried
	for {
		h, ok := g.next(&search{t: &p.target, v: v, from: p.from, tried: tried})
		if !ok && cycle && len(tried) > 0 {
			// All have failed: begin with the first again.
			cycle, tried = false, nil
			continue
		}
		if !ok {
			return false
		}
		if !p.retarget(orElse(h.host, p.target.host), v) {
			return false
		}
		rx.SetRetransmit(p.msg, retransmit || v.Flags&rx.FlagRetransmit != 0)
		g.present(p, h.conn)
		next := h.conn.peer.Load()
		tried = append(slices.Clip(tried), next)
		p.tried = tried
		p.attempts++
		p.deadline = t.now.Add(g.cfg.Timers.of(p.kind))
		k := p.kind
		if h.conn.take(t, p) == added {
			g.metrics.sent(h.conn, k, reason)
			return true
		}
		p.attempts--
	}
}

// retarget gives the request the Destination-Host, if it has another.
func (p *pending) retarget(host string, v *rx.View) bool {
	if p.dest == host {
		return true
	}
	p.msg, p.dest = rx.AppendRequest(nil, v, &rx.Patch{DestinationHost: host}), host
	return v.Scan(p.msg) == nil
}

// give answers a request in the name of this node.
func (g *Gateway) give(t *turn, p *pending, result rx.Result, text string) {
	if t.view.Scan(p.msg) == nil {
		t.view.HopByHop = p.fromHop
		if g.cfg.ProxyInfo {
			t.view.ForgetProxyInfo(g.cfg.OriginHost)
		}
		p.from.answer(t, &rx.Answer{Result: result, Text: text})
	}
	g.pool.put(p)
}

// expired handles a request that nobody answered in time.
func (g *Gateway) expired(t *turn, c *conn, p *pending) {
	g.metrics.timeouts[p.kind].Inc()
	if g.mayRetry(p, failure{timeout: true}) && g.resend(t, p, &t.view, true, "timeout") {
		return
	}
	g.give(t, p, g.results.timeout, "no answer from "+c.host())
}

// failover sends requests whose connection is lost to other peers, or answers
// them (RFC 6733 §5.5.4).
func (g *Gateway) failover(c *conn, list []*pending, reason string) {
	if len(list) == 0 {
		return
	}
	t := &turn{g: g, now: time.Now()}
	for _, p := range list {
		if p.from.ended() || !g.resend(t, p, &t.view, true, reason) {
			g.give(t, p, g.results.unreachable, "the connection to "+c.host()+" is lost")
		}
	}
	t.flush()
}

// learn notes what an answer tells: the PCF of a session, the way to a host,
// the end of a session, and that a PCF does not know one.
func (c *conn) learn(t *turn, p *pending, result rx.Result) {
	v, g := &t.view, c.g
	if peer := c.peer.Load(); result.Success() && !rx.EqualIdentity(v.OriginHost.Data, peer.host) {
		g.learned.note(v.OriginHost.Data, peer.host)
	}
	switch {
	case p.kind == kindAAR && result.Success():
		g.sessions.put(v.SessionID.Data, t.intern(v.OriginHost.Data), p.from.peer.Load().host, t.now)
	case p.kind == kindAAR && slices.Contains(g.results.stale, result):
		g.stale.report(t, p, v.OriginHost.Data)
	case p.kind == kindSTR && (result == rx.Base(rx.Success) || result == rx.Base(rx.UnknownSessionID)):
		g.sessions.forget(v.SessionID.Data)
	}
}
