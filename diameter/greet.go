package diameter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"bsfd/diameter/rx"
	"bsfd/internal/refusal"
)

// errRefused says that capabilities exchange failed; the peer has its answer.
type errRefused struct{ fault *rx.Error }

func (e errRefused) Error() string { return "capabilities exchange failed: " + e.fault.Text }

func (e errRefused) Unwrap() error { return e.fault }

// greet handles the first message of a connection: a CER on one that came in,
// the CEA on one that this node made. Anything else ends it (RFC 6733 §5.3).
func (c *conn) greet(t *turn, m []byte) error {
	h := rx.ParseHeader(m)
	if h.Command != rx.CapabilitiesExchange || h.Application != 0 || h.Request() != (c.dialled == nil) {
		c.g.metrics.failedConns.WithLabelValues(string(c.transport), "protocol").Inc()
		return errors.New("a message before capabilities exchange")
	}
	if c.dialled != nil {
		return c.greeted(t, m)
	}
	p, caps, err := c.introduced(t, m)
	if err == nil {
		err = p.step(event{kind: eventCER, conn: c, caps: caps, header: h, turn: t})
	}
	if fault := (*rx.Error)(nil); errors.As(err, &fault) {
		c.g.metrics.failedConns.WithLabelValues(string(c.transport), fault.Result.String()).Inc()
		c.g.deps.Refusals.Report(&refusal.Refusal{
			Interface: "diameter", What: h.Command.Request(), Result: fault.Result.String(), Detail: fault.Text,
			Peer: c.nc.RemoteAddr().String(), Hint: c.g.hint(fault.Result),
		})
		c.send(t, c.g.capabilities(c).CEA(h, fault.Result.Code, fault.Text, fault.Failed))
		return errRefused{fault}
	}
	return err
}

// introduced reads a CER and finds the peer that it is from.
func (c *conn) introduced(t *turn, m []byte) (*peer, *rx.Capabilities, error) {
	if err := c.scan(t, m); err != nil {
		return nil, nil, err
	}
	caps, err := rx.ParseCapabilities(&t.view)
	if err != nil {
		return nil, nil, err
	}
	if err := caps.CheckAddresses(); err != nil && !c.g.tolerates(caps.Host, tolHostIPAddress) {
		return nil, nil, err
	}
	if !caps.SecureEnough() {
		return nil, nil, refuse(rx.NoCommonSecurity, "no common security")
	}
	if !caps.Common() {
		return nil, nil, refuse(rx.NoCommonApplication, "no common application")
	}
	p, err := c.g.admit(caps)
	if err != nil {
		return nil, nil, err
	}
	return p, caps, c.checkSecurity(p)
}

// hint says what to change about a result of this node, where that can be said.
func (g *Gateway) hint(r rx.Result) string {
	switch r {
	case rx.Base(rx.UnknownPeer):
		return "list the host in diameter.peers or its realm in diameter.allowedRealms"
	case rx.Base(rx.NoCommonApplication):
		return "the peer must offer Rx (16777236) or relay"
	case rx.Base(rx.NoCommonSecurity):
		return "the peer must accept a connection without security in band"
	case g.results.realmNotServed:
		return "see diameter.servedRealms and diameter.validateRealm"
	case g.results.noBinding:
		return "no PCF has registered the address with a Diameter host; see ocbsf_bindings"
	case g.results.unreachable:
		return "see /diameter/peers, and diameter.peers or diameter.routes for the way"
	}
	return ""
}

func refuse(code uint32, format string, args ...any) error {
	return &rx.Error{Result: rx.Base(code), Text: fmt.Sprintf(format, args...)}
}

// greeted handles the CEA of a peer that was dialled.
func (c *conn) greeted(t *turn, m []byte) error {
	caps, err := c.readCEA(t, m)
	if err != nil {
		c.g.metrics.failedConns.WithLabelValues(string(c.transport), "cea").Inc()
		return err
	}
	return c.dialled.step(event{kind: eventCEA, conn: c, caps: caps, turn: t})
}

func (c *conn) readCEA(t *turn, m []byte) (*rx.Capabilities, error) {
	if err := c.scan(t, m); err != nil {
		return nil, fmt.Errorf("CEA: %v", err)
	}
	caps, err := rx.ParseCapabilities(&t.view)
	if err != nil {
		return nil, fmt.Errorf("CEA: %v", err)
	}
	result, ok := t.view.Result()
	switch {
	case !ok:
		return nil, errors.New("CEA without Result-Code")
	case !result.Success():
		return nil, fmt.Errorf("CEA with %s", result)
	case !rx.EqualIdentity(caps.Host, c.dialled.host):
		return nil, fmt.Errorf("CEA from %s", caps.Host)
	case c.dialled.cfg.Realm != "" && !rx.EqualIdentity(caps.Realm, c.dialled.cfg.Realm):
		return nil, fmt.Errorf("CEA of realm %s", caps.Realm)
	case !caps.Common():
		return nil, errors.New("CEA without a common application")
	}
	return caps, nil
}

// capabilities are what this node says about itself on the connection.
func (g *Gateway) capabilities(c *conn) *rx.Capabilities {
	caps := &rx.Capabilities{
		Origin: g.origin(), VendorID: 0, ProductName: g.cfg.ProductName, Firmware: firmware,
		Applications: []uint32{rx.ApplicationID}, InbandSecurity: []uint32{0}, HostIPAddresses: g.hostIPs,
	}
	if g.cfg.Mode == ModeRedirect {
		// A redirect agent serves all applications (RFC 6733 §2.8.3).
		caps.Applications = []uint32{rx.RelayID}
	}
	if len(caps.HostIPAddresses) == 0 {
		caps.HostIPAddresses = []netip.Addr{localIP(c.nc.LocalAddr())}
	}
	return caps
}

// firmware is the Firmware-Revision.
const firmware = 1

func localIP(a net.Addr) netip.Addr {
	if ap, err := netip.ParseAddrPort(a.String()); err == nil {
		return ap.Addr().Unmap()
	}
	return netip.IPv4Unspecified()
}

// base handles a message of the base protocol on an open connection.
func (c *conn) base(t *turn, p *peer, m []byte) error {
	if err := c.scan(t, m); err != nil {
		c.refuseBase(t, err)
		return nil
	}
	v := &t.view
	switch {
	case v.Command == rx.DeviceWatchdog && v.Request():
		p.receive(t, c, false)
		p.noteState(v.StateID())
		c.answer(t, &rx.Answer{Result: rx.Base(rx.Success)})
	case v.Command == rx.DeviceWatchdog:
		p.noteState(v.StateID())
		p.receive(t, c, true)
	case v.Command == rx.DisconnectPeer && v.Request():
		return p.step(event{kind: eventDPR, conn: c, cause: rx.DisconnectCauseOf(v), turn: t})
	case v.Command == rx.DisconnectPeer:
		return p.step(event{kind: eventDPA, conn: c, turn: t})
	case v.Request():
		p.receive(t, c, false)
		c.answer(t, &rx.Answer{Result: rx.Base(rx.CommandUnsupported), Text: "a command that is not served on an open connection"})
	default:
		c.discard(t, v.Header, "an answer of the base protocol that nobody waits for")
	}
	return nil
}

// discard counts a message that goes nowhere, and says why.
func (c *conn) discard(_ *turn, h rx.Header, reason string) {
	c.counters.discarded.Add(1)
	c.g.metrics.discarded.WithLabelValues(reason).Inc()
	c.g.often.Warn().Str("peer", c.host()).Str("command", h.Command.Answer()).Uint32("application", h.Application).
		Uint32("hopByHop", h.HopByHop).Str("reason", reason).Msg("message discarded")
}

// refuseBase answers a base request that cannot be read.
func (c *conn) refuseBase(t *turn, err error) {
	c.g.metrics.malformed.WithLabelValues("avp").Inc()
	if fault := (*rx.Error)(nil); errors.As(err, &fault) && t.view.Request() {
		c.answer(t, &rx.Answer{Result: fault.Result, Failed: fault.Failed, Text: fault.Text})
	}
}

// tick does what time demands: the watchdog, and requests that nobody
// answered.
func (c *conn) tick(t *turn) {
	if c.pend.len() > 0 {
		for _, p := range c.pend.expired(t.now) {
			c.g.expired(t, c, p)
		}
	}
	p := c.peer.Load()
	if p != nil && c.dialled == nil && c.transport == TLS && c.g.tls.store.Outdated(c.opened, c.g.cfg.TLS.CloseAfter) {
		c.renew(t, p)
	}
	if p == nil || t.now.UnixNano() < c.wdDue.Load() {
		return
	}
	p.watch(t, c)
}

// renew disconnects a peer whose connection has a certificate that was replaced,
// once it has answered what it was asked. It connects again to the new one.
func (c *conn) renew(t *turn, p *peer) {
	p.active.CompareAndSwap(c, nil)
	if c.pend.len() == 0 {
		_ = p.step(event{kind: eventDisconnect, cause: rx.Rebooting, reason: "the certificate was renewed", turn: t})
	}
}

// sendDWR asks the peer whether it is there.
func (c *conn) sendDWR(t *turn) {
	c.out.rest()
	c.send(t, rx.DWR(c.g.origin(), c.tickets.Add(1), c.g.endToEnd()))
}
