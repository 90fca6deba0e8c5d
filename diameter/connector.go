package diameter

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"bsfd/diameter/rx"
)

// connector dials a configured peer whenever it is not connected.
type connector struct {
	g     *Gateway
	p     *peer
	wait  time.Duration
	tried bool
}

// run dials until ctx ends. The connection is served in here.
func (k *connector) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !k.pause(ctx) {
			return
		}
		dialCtx, cancel := context.WithTimeout(ctx, k.g.cfg.Transport.Connect)
		if k.begin(cancel) {
			k.dial(ctx, dialCtx)
		}
		cancel()
	}
}

// begin enters Wait-Conn-Ack unless the peer is connected by now, or the gateway
// is about to end.
func (k *connector) begin(cancel context.CancelFunc) bool {
	if k.g.draining.Load() {
		return false
	}
	k.p.mu.Lock()
	closed := k.p.state == StateClosed
	k.p.cancel = cancel
	k.p.mu.Unlock()
	if !closed {
		return false
	}
	_ = k.p.step(event{kind: eventDial})
	return true
}

// dial makes one attempt and serves the connection.
func (k *connector) dial(ctx, dialCtx context.Context) {
	nc, err := k.g.dial(dialCtx, k.p.cfg)
	if err != nil {
		k.g.metrics.failedConns.WithLabelValues(string(orElse(k.p.cfg.Transport, TCP)), "connect").Inc()
		_ = k.p.step(event{kind: eventFailed, reason: err.Error()})
		return
	}
	c := k.g.newConn(nc, orElse(k.p.cfg.Transport, TCP), k.p)
	if err := k.p.step(event{kind: eventConnected, conn: c}); err != nil {
		c.close(err.Error())
		return
	}
	began := time.Now()
	k.g.run(ctx, c)
	if time.Since(began) > k.g.cfg.Transport.ReconnectMax {
		k.wait = 0
	}
}

// pause waits until the peer has no connection, and then for the back-off. A
// peer that said that it does not want to be connected is dialled when there
// is a request for it (RFC 6733 §5.4).
func (k *connector) pause(ctx context.Context) bool {
	for {
		k.p.mu.Lock()
		closed := k.p.state == StateClosed
		unwanted := k.p.left && k.p.cause != rx.Rebooting
		k.p.mu.Unlock()
		if closed && !unwanted {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-k.p.wake:
		}
	}
	if !k.tried {
		k.tried = true
		return true
	}
	return pause(ctx, k.backoff())
}

// pause waits; false means that ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// backoff doubles the wait up to the longest, with a jitter of a fifth.
func (k *connector) backoff() time.Duration {
	l := k.g.cfg.Transport
	k.wait = min(max(2*k.wait, l.ReconnectMin), l.ReconnectMax)
	return k.wait - k.wait/10 + rand.N(k.wait/5+1)
}

// want notes a request for a peer that is not connected.
func (p *peer) want() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.left || p.state != StateClosed {
		return
	}
	p.left = false
	p.nudge()
}

// dial connects to the peer: to its addresses of the preferred family, one
// after the other.
func (g *Gateway) dial(ctx context.Context, p Peer) (net.Conn, error) {
	host, port, err := net.SplitHostPort(p.address())
	if err != nil {
		return nil, err
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		var nc net.Conn
		if nc, err = g.dialAddr(ctx, p, net.JoinHostPort(a.String(), port)); err == nil {
			return nc, nil
		}
	}
	return nil, err
}

func (g *Gateway) dialAddr(ctx context.Context, p Peer, address string) (net.Conn, error) {
	if p.Transport == SCTP {
		return dialSCTP(ctx, address)
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil || p.Transport != TLS {
		return nc, err
	}
	cfg, err := g.tls.client(p)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	return tls.Client(nc, cfg), nil
}

// resolve finds the addresses of a host that the routing mode lets through.
func (g *Gateway) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	addrs := g.cfg.RoutingMode.choose(all)
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s has no address that diameter.routingMode %s allows", host, g.cfg.RoutingMode)
	}
	return addrs, nil
}

// choose keeps the addresses of the preferred family, and those of the other
// one only where there are no others and the mode allows them.
func (m RoutingMode) choose(all []netip.Addr) []netip.Addr {
	var v4, v6 []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	switch {
	case m == RoutingIPv4 || m == RoutingIPv4IPv6 && len(v4) > 0:
		return v4
	case m == RoutingIPv6 || m == RoutingIPv6IPv4 && len(v6) > 0:
		return v6
	case m == RoutingIPv4IPv6:
		return v6
	default:
		return v4
	}
}
