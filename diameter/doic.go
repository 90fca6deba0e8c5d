package diameter

import (
	"math"
	"strings"
	"sync/atomic"

	"bsfd/diameter/rx"
	"bsfd/internal/admission"
)

// peerLoad is the load that a peer has told of itself, 0 to 65535 and the
// higher the less loaded. The zero peerLoad is that of a peer that has told
// nothing.
type peerLoad struct{ used atomic.Uint32 }

func (l *peerLoad) note(value uint16) { l.used.Store(math.MaxUint16 - uint32(value)) }

// scale is a weight in proportion to what the peer can still take, at least 1.
func (l *peerLoad) scale(weight int) int {
	free := math.MaxUint16 - int(l.used.Load())
	return 1 + weight*free/256
}

// hostNode and realmNode name nodes in overload reports.
func hostNode(host string) string {
	if host == "" {
		return ""
	}
	return "host:" + strings.ToLower(host)
}

func realmNode(realm string) string { return "realm:" + strings.ToLower(realm) }

// throttled answers a request that the nodes that it is for want less of
// (RFC 7683 §5.2.2). The request names its PCF or it does not; one that does
// not may be sent elsewhere by its sender.
func (c *conn) throttled(t *turn, k kind, tg target) bool {
	g, v := c.g, &t.view
	if !g.deps.Reports.Honours() {
		return false
	}
	named := !g.toSelf(v)
	if named && v.OCSupportedFeatures.Present() {
		// Its sender has the reports itself.
		return false
	}
	nodes := [2]string{hostNode(tg.host), ""}
	if !named {
		nodes[1] = realmNode(tg.realm)
	}
	if g.deps.Reports.MaySend(g.describe(t, k), t.now, nodes[:]...) {
		return false
	}
	result := rx.Base(rx.TooBusy)
	if named {
		result = rx.Base(rx.UnableToComply)
	}
	c.reply(t, &rx.Answer{Result: result, Text: "the destination is overloaded"})
	return true
}

// supports adds that this node honours overload reports to a request whose
// sender does not.
func (c *conn) supports(t *turn, patch *rx.Patch) {
	if c.g.deps.Reports.Honours() && !t.view.OCSupportedFeatures.Present() {
		patch.Extra = rx.AppendSupported(patch.Extra)
	}
}

// reported notes the reports in the answer in the turn's view.
func (c *conn) reported(t *turn) {
	v := &t.view
	for off := rx.HeaderLen; off < len(v.Raw); {
		a, next, err := rx.Next(v.Raw, off)
		if err != nil {
			return
		}
		off = next
		if a.Vendor != rx.VendorIETF {
			continue
		}
		switch a.Code {
		case rx.OCOLR:
			if r, ok := rx.ParseOLR(a.Data); ok && r.Reduction <= 100 {
				node := hostNode(string(v.OriginHost.Data))
				if r.Type == rx.ReportRealm {
					node = realmNode(string(v.OriginRealm.Data))
				}
				c.g.deps.Reports.Overloaded(node, int64(r.Sequence), int(r.Reduction), r.Validity, t.now)
			}
		case rx.LoadCode:
			if l, ok := rx.ParseLoad(a.Data); ok && l.Type == rx.LoadPeer && rx.EqualIdentity(l.SourceID, c.host()) {
				c.peer.Load().load.note(l.Value)
			}
		}
	}
}

// reports are the AVPs that an answer to the peer gets. host is set when the
// answer is of this node, so that a report about its host is about this node;
// realm when the request named no host and the answer is of this realm. doic
// is set when the request said that its sender honours reports.
func (c *conn) reports(t *turn, host, realm, doic bool) (extra []byte) {
	p := c.peer.Load()
	if p == nil {
		return nil
	}
	r := c.g.deps.Reports.Report(&p.told, t.now)
	if r.Load != admission.Absent {
		extra = rx.AppendLoad(extra, rx.LoadPeer, uint16(r.Load), c.g.cfg.OriginHost)
	}
	if r.Overload == nil || !doic || !host && !realm {
		return extra
	}
	olr := rx.OLR{Sequence: r.Overload.Sequence, Reduction: uint32(r.Overload.Reduction), Validity: r.Overload.Validity}
	if !host {
		olr.Type = rx.ReportRealm
	}
	if host || !t.view.OCSupportedFeatures.Present() {
		extra = rx.AppendSupported(extra)
	}
	return rx.AppendOLR(extra, &olr)
}

// rewritten is the answer in the turn's view as the peer that asked gets it:
// without reports that are not for it, with those of this node. ok is false
// when it gets the answer as it is.
func (c *conn) rewritten(t *turn, p *pending) (answer []byte, ok bool) {
	v := &t.view
	reports := v.OCOLR.Present() || v.OCSupportedFeatures.Present()
	if reports || v.Load.Present() {
		c.reported(t)
	}
	ours := p.realmRouted && rx.EqualIdentity(v.OriginRealm.Data, c.g.cfg.OriginRealm)
	extra := p.from.reports(t, false, ours, p.doic)
	strip := reports && p.actsFor
	if !strip && !v.Load.Present() && extra == nil {
		return nil, false
	}
	drop := func(a *rx.AVP) bool {
		if a.Vendor != rx.VendorIETF {
			return false
		}
		switch a.Code {
		case rx.OCOLR, rx.OCSupportedFeatures:
			return strip
		case rx.LoadCode:
			l, ok := rx.ParseLoad(a.Data)
			return ok && l.Type == rx.LoadPeer
		}
		return false
	}
	return rx.AppendWithout(nil, v, drop, extra), true
}
