package diameter

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"bsfd/bsf"
	"bsfd/diameter/rx"
)

// request handles a request: it is answered here or goes to another peer. One
// that was decided on is served.
func (c *conn) request(t *turn, m []byte, decided bool) {
	k, fault := c.classify(t, m)
	if fault != nil {
		c.g.metrics.malformed.WithLabelValues("request").Inc()
		c.answer(t, &rx.Answer{Result: fault.Result, Failed: fault.Failed, Text: fault.Text})
		return
	}
	c.g.metrics.received[k].Inc()
	if !decided && !c.admit(t, k) {
		return
	}
	if k == kindAAR {
		c.authorize(t)
		return
	}
	c.inSession(t, k)
}

// classify reads the request into the turn's view.
func (c *conn) classify(t *turn, m []byte) (kind, *rx.Error) {
	if err := c.scan(t, m); err != nil {
		return kindOther, asFault(err)
	}
	v := &t.view
	k, known := kindOf(v.Command)
	switch {
	case v.Application == rx.ApplicationID && !known:
		return k, &rx.Error{Result: rx.Base(rx.CommandUnsupported), Text: "a command that Rx does not have"}
	case v.Application != rx.ApplicationID && !c.g.hasRoute(v.Application):
		return k, &rx.Error{Result: rx.Base(rx.ApplicationUnsupported), Text: "an application that is not served"}
	case v.Application != rx.ApplicationID:
		k = kindOther
	}
	if err := v.CheckRequest(); err != nil {
		return k, asFault(err)
	}
	if v.Visited(c.g.cfg.OriginHost) {
		return k, &rx.Error{Result: rx.Base(rx.LoopDetected), Text: "this node is in a Route-Record"}
	}
	if p := c.peer.Load(); !rx.EqualIdentity(v.OriginHost.Data, p.host) {
		c.g.learned.note(v.OriginHost.Data, p.host)
	}
	return k, nil
}

// asFault is the *rx.Error that err is.
func asFault(err error) *rx.Error {
	var fault *rx.Error
	if !errors.As(err, &fault) {
		return &rx.Error{Result: rx.Base(rx.UnableToComply), Text: err.Error()}
	}
	return fault
}

// toSelf reports whether a request names no other node than this one.
func (g *Gateway) toSelf(v *rx.View) bool {
	return !v.DestinationHost.Present() || rx.EqualIdentity(v.DestinationHost.Data, g.cfg.OriginHost)
}

// target is where the request itself says that it goes.
func (t *turn) target() target {
	v := &t.view
	return target{host: t.intern(v.DestinationHost.Data), realm: t.intern(v.DestinationRealm.Data), application: v.Application}
}

// authorize handles an AAR: by Destination-Host when it names a PCF, by the
// session when that is known, else by the binding (TS 29.213 §7.4).
func (c *conn) authorize(t *turn) {
	v := &t.view
	if !c.g.toSelf(v) {
		c.relay(t, kindAAR, t.target(), &rx.Patch{})
		return
	}
	if !v.RxRequestType.Present() || !v.Initial() {
		if host, ok := c.g.sessions.pcf(v.SessionID.Data); ok {
			tg := t.target()
			tg.host = host
			c.relay(t, kindAAR, tg, &rx.Patch{DestinationHost: host})
			return
		}
	}
	if !c.g.serves(v) {
		c.g.metrics.realmFailed.WithLabelValues("destination-realm").Inc()
		c.answer(t, &rx.Answer{Result: c.g.results.realmNotServed, Text: "the realm is not served"})
		return
	}
	c.discover(t)
}

// serves reports whether the realm of an AAR is served.
func (g *Gateway) serves(v *rx.View) bool {
	if !g.cfg.ValidateRealm || g.realms == nil || g.realms[string(v.DestinationRealm.Data)] {
		return true
	}
	for r := range g.realms {
		if rx.EqualIdentity(v.DestinationRealm.Data, r) {
			return true
		}
	}
	return false
}

// bound sends an AAR to the PCF of its binding.
func (c *conn) bound(t *turn, rec *bsf.Record) {
	b, v := &rec.Binding, &t.view
	switch {
	case b.PcfDiamHost == "":
		c.answer(t, &rx.Answer{Result: c.g.results.noBinding, Text: "the PCF of the session has no Diameter identity"})
		return
	case c.g.cfg.ValidateBindingRealm && !rx.EqualIdentity(v.DestinationRealm.Data, string(b.PcfDiamRealm)):
		c.g.metrics.realmFailed.WithLabelValues("binding-realm").Inc()
		c.answer(t, &rx.Answer{Result: c.g.results.realmNotServed, Text: "the realm is not that of the binding"})
		return
	case c.g.cfg.Mode == ModeRedirect:
		c.redirect(t, rec)
		return
	}
	tg := target{host: string(b.PcfDiamHost), realm: string(v.DestinationRealm.Data), application: rx.ApplicationID}
	patch := rx.Patch{DestinationHost: tg.host}
	if c.g.cfg.OverwriteRealm && b.PcfDiamRealm != "" {
		tg.realm = string(b.PcfDiamRealm)
		patch.DestinationRealm = tg.realm
	}
	if b.BindLevel == bsf.BindLevelNfSet {
		tg.set = string(b.PcfSetId)
	}
	if rec.Cookie != "" && c.g.cfg.Cookie.Code != 0 {
		patch.Extra = rx.Encode(rx.Code(c.g.cfg.Cookie.Code), 0, c.g.cfg.Cookie.Vendor, []byte(rec.Cookie))
		c.g.metrics.cookies.Inc()
	}
	c.relay(t, kindAAR, tg, &patch)
}

// redirect answers an AAR with the PCFs that it may be sent to (RFC 6733
// §6.1.8).
func (c *conn) redirect(t *turn, rec *bsf.Record) {
	hosts := []string{c.g.uri(string(rec.Binding.PcfDiamHost))}
	if rec.Binding.BindLevel == bsf.BindLevelNfSet {
		for _, p := range c.g.sets[string(rec.Binding.PcfSetId)] {
			if u := c.g.uri(p.host); !slices.Contains(hosts, u) {
				hosts = append(hosts, u)
			}
		}
	}
	c.answer(t, &rx.Answer{
		Result: rx.Base(rx.RedirectIndication), Redirect: hosts,
		Usage: c.g.cfg.Redirect.Usage, CacheTime: uint32(c.g.cfg.Redirect.CacheTime / time.Second),
	})
}

// uri is the DiameterURI of a host (RFC 6733 §4.3.1).
func (g *Gateway) uri(host string) string {
	scheme, port, transport := "aaa", "3868", TCP
	if p := g.peer(host); p != nil {
		host = p.host
		if _, its, err := net.SplitHostPort(p.cfg.address()); err == nil {
			port = its
		}
		switch p.cfg.Transport {
		case TLS:
			scheme = "aaas"
		case SCTP:
			transport = SCTP
		}
	}
	return scheme + "://" + host + ":" + port + ";transport=" + string(transport)
}

// inSession handles STR, RAR, ASR and requests of other applications: they go
// by Destination-Host. An STR without one goes where its session is.
func (c *conn) inSession(t *turn, k kind) {
	v := &t.view
	if !c.g.toSelf(v) || k == kindOther {
		c.relay(t, k, t.target(), &rx.Patch{})
		return
	}
	if k != kindSTR {
		c.unreachable(t, "the request is for this node")
		return
	}
	host, ok := c.g.sessions.pcf(v.SessionID.Data)
	if !ok {
		c.answer(t, &rx.Answer{Result: rx.Base(rx.UnknownSessionID), Text: "the session is not known here"})
		return
	}
	tg := t.target()
	tg.host = host
	c.relay(t, k, tg, &rx.Patch{DestinationHost: host})
}

func (c *conn) unreachable(t *turn, text string) {
	c.answer(t, &rx.Answer{Result: c.g.results.unreachable, Text: text})
}

// relay sends the request in the turn's view to its target.
func (c *conn) relay(t *turn, k kind, tg target, patch *rx.Patch) {
	g := c.g
	if c.throttled(t, k, tg) {
		return
	}
	if host := g.redirects.of(&tg, t.now); host != "" {
		tg.host, tg.set = host, ""
		patch.DestinationHost = host
	}
	c.supports(t, patch)
	p := g.pool.get()
	p.doic = t.view.OCSupportedFeatures.Present()
	p.actsFor = !p.doic && g.deps.Reports.Honours()
	p.realmRouted = g.toSelf(&t.view)
	p.kind, p.from, p.fromHop, p.target = k, c, t.view.HopByHop, tg
	p.sent, p.deadline = t.now, t.now.Add(g.cfg.Timers.of(k))
	patch.RouteRecord = c.peer.Load().host
	if g.cfg.ProxyInfo {
		patch.ProxyHost, patch.State = g.cfg.OriginHost, uint64(t.view.HopByHop)
	}
	host, busy := patch.DestinationHost, false
	for {
		h, ok := g.next(&search{t: &p.target, v: &t.view, from: c, tried: p.tried})
		if !ok {
			c.noWay(t, p, busy)
			return
		}
		patch.DestinationHost = orElse(h.host, host)
		p.msg = rx.AppendRequest(p.msg[:0], &t.view, patch)
		g.present(p, h.conn)
		p.dest = orElse(h.host, tg.host)
		p.tried = append(p.tried, h.conn.peer.Load())
		switch h.conn.take(t, p) {
		case added:
			g.metrics.sent(h.conn, k, "")
			return
		case tableFull:
			busy = true
		}
	}
}

// present gives a RAR or an ASR the origin of this node, where the peer that it
// goes to answers to the node that the origin names and not to the one that sent
// it. The answer finds its way back as ever.
func (g *Gateway) present(p *pending, to *conn) {
	if p.kind != kindRAR && p.kind != kindASR {
		return
	}
	peer := to.peer.Load()
	if peer.cfg.OwnOrigin || slices.ContainsFunc(g.cfg.OwnOriginRealms, func(r string) bool { return strings.EqualFold(r, peer.cfg.Realm) }) {
		p.msg = rx.WithOrigin(p.msg, g.origin())
	}
}

// noWay answers a request that no peer can get, or that those who could have no
// room for. A peer that is away because it wanted to is dialled for the next
// one.
func (c *conn) noWay(t *turn, p *pending, busy bool) {
	if d := c.g.peer(p.target.host); d != nil {
		d.want()
	}
	c.g.pool.put(p)
	if busy {
		c.answer(t, &rx.Answer{Result: c.g.results.busy, Text: "too many requests wait for the peer"})
		return
	}
	c.unreachable(t, "no peer can be reached for it")
}

// take sends a pending request on this connection.
func (c *conn) take(t *turn, p *pending) addResult {
	r := c.pend.add(p, c.out)
	if r == added {
		c.counters.requestsOut.Add(1)
		t.touch(c)
		t.passed++
	}
	return r
}
