package nbsf

import (
	"net/netip"
	"strconv"
	"strings"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

// decodePcfBinding reads a PcfBinding (TS 29.521 §5.6.2.2) and the URL for
// audits that a vendor-specific attribute may hold.
func (d *decoder) pcfBinding(b *bsf.PcfBinding, notificationURL *string) func(name string) {
	return func(name string) {
		switch name {
		case "supi":
			text(d, "supi", optional, &b.Supi, supiForm)
		case "gpsi":
			text(d, "gpsi", optional, &b.Gpsi, gpsiForm)
		case "ipv4Addr":
			text(d, "ipv4Addr", conditional, &b.Ipv4Addr, ipv4Form)
		case "ipv6Prefix":
			text(d, "ipv6Prefix", conditional, &b.Ipv6Prefix, prefixForm)
		case "addIpv6Prefixes":
			texts(d, "addIpv6Prefixes", optional, &b.AddIpv6Prefixes, prefixForm)
		case "ipDomain":
			text(d, "ipDomain", conditional, &b.IpDomain, ipDomainForm)
		case "macAddr48":
			text(d, "macAddr48", conditional, &b.MacAddr48, macForm)
		case "addMacAddrs":
			texts(d, "addMacAddrs", optional, &b.AddMacAddrs, macForm)
		case "dnn":
			text(d, "dnn", mandatory, &b.Dnn, dnnForm)
		case "pcfFqdn":
			d.pcfName("pcfFqdn", &b.PcfFqdn, &b.PcfIpEndPoints)
		case "pcfIpEndPoints":
			d.endPoints("pcfIpEndPoints", &b.PcfIpEndPoints)
		case "pcfDiamHost":
			text(d, "pcfDiamHost", conditional, &b.PcfDiamHost, diamName)
		case "pcfDiamRealm":
			text(d, "pcfDiamRealm", conditional, &b.PcfDiamRealm, diamName)
		case "pcfSmFqdn":
			d.pcfName("pcfSmFqdn", &b.PcfSmFqdn, &b.PcfSmIpEndPoints)
		case "pcfSmIpEndPoints":
			d.endPoints("pcfSmIpEndPoints", &b.PcfSmIpEndPoints)
		case "snssai":
			d.snssai("snssai", mandatory, &b.Snssai)
		case "suppFeat":
			d.features(&b.SuppFeat)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, nfInstanceID)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, nfSetID)
		case "recoveryTime":
			text(d, "recoveryTime", optional, &b.RecoveryTime, dateTime)
		case "paraCom":
			d.paraCom(b)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, extensible)
		case "ipv4FrameRouteList":
			texts(d, "ipv4FrameRouteList", optional, &b.Ipv4FrameRouteList, ipv4RouteForm)
		case "ipv6FrameRouteList":
			texts(d, "ipv6FrameRouteList", optional, &b.Ipv6FrameRouteList, prefixForm)
		default:
			d.unknown(name, notificationURL)
		}
	}
}

// unknown skips an attribute of a later release (TS 29.500 §6.6.1), but keeps
// the audit URL of "vendorSpecific-<six digits>".
func (d *decoder) unknown(name string, notificationURL *string) {
	const prefix = "vendorSpecific-"
	if notificationURL == nil || !strings.HasPrefix(name, prefix) || d.next() != '{' {
		d.skip()
		return
	}
	d.object(func(name string) {
		if name != "notificationUrl" || d.next() != '"' {
			d.skip()
			return
		}
		if s, ok := d.string("notificationUrl", optional); ok {
			if u, err := parseHTTPURI(s); err == nil {
				*notificationURL = u
			}
		}
	})
}

func (d *decoder) snssai(name string, c class, dst *tgpp.Snssai) bool {
	var v tgpp.Snssai
	seen := false // also when it was rejected
	inner := min(c, conditional)
	if !d.nested(name, c, func(member string) {
		switch member {
		case "sst":
			seen = d.sst(inner, &v.Sst)
		case "sd":
			text(d, "sd", inner, &v.Sd, sdForm)
		default:
			d.skip()
		}
	}) {
		return false
	}
	if !seen {
		d.path = append(d.path, step{name: name})
		d.reject("sst", c, "required")
		d.path = d.path[:len(d.path)-1]
	}
	*dst = v
	return true
}

// sst reads a slice/service type, and reports whether there was one.
func (d *decoder) sst(c class, dst *uint8) bool {
	const limit = 255
	switch next := d.next(); {
	case next == 'n' && d.tolerate(tol(tolNull)):
		d.literal("null")
		return false
	case next == '"':
		s := d.str()
		n, err := strconv.ParseUint(s, 10, 8)
		if err != nil || s != strconv.FormatUint(n, 10) || !d.tolerate(tol(tolSstText)) {
			d.reject("sst", c, wholeNumber(limit))
		}
		*dst = uint8(n)
	default:
		n, _ := d.integer("sst", c, limit)
		*dst = uint8(n)
	}
	return true
}

func (d *decoder) features(dst **tgpp.Features) {
	var f tgpp.Features
	if text(d, "suppFeat", conditional, &f, featuresForm) {
		*dst = &f
	}
}

func (d *decoder) paraCom(b *bsf.PcfBinding) {
	p := &bsf.ParameterCombination{}
	if d.nested("paraCom", optional, func(member string) {
		switch member {
		case "supi":
			text(d, "supi", optional, &p.Supi, supiForm)
		case "dnn":
			text(d, "dnn", optional, &p.Dnn, dnnForm)
		case "snssai":
			var v tgpp.Snssai
			if d.snssai("snssai", optional, &v) {
				p.Snssai = &v
			}
		default:
			d.skip()
		}
	}) {
		b.ParaCom = p
	}
}

func (d *decoder) endPoints(name string, dst *[]tgpp.IpEndPoint) {
	var list []tgpp.IpEndPoint
	d.list(name, conditional, func() bool {
		var e tgpp.IpEndPoint
		if !d.nested("", conditional, d.endPoint(&e)) {
			return false
		}
		list = append(list, d.separate(e)...)
		return true
	})
	*dst = list
}

func (d *decoder) endPoint(e *tgpp.IpEndPoint) func(name string) {
	return func(member string) {
		switch member {
		case "ipv4Address":
			text(d, "ipv4Address", conditional, &e.Ipv4Address, ipv4Form)
		case "ipv6Address":
			text(d, "ipv6Address", conditional, &e.Ipv6Address, ipv6Form)
		case "transport":
			text(d, "transport", conditional, &e.Transport, extensible)
		case "port":
			if n, ok := d.integer("port", conditional, 65535); ok {
				port := uint16(n)
				e.Port = &port
			}
		default:
			d.skip()
		}
	}
}

// separate returns an end point as one that has at most one address, or as two
// of them.
func (d *decoder) separate(e tgpp.IpEndPoint) []tgpp.IpEndPoint {
	if e.Ipv6Address.Is4In6() && d.tolerate(tol(tolIpv4Mapped)) {
		if mapped := e.Ipv6Address.Unmap(); !e.Ipv4Address.IsValid() || e.Ipv4Address == mapped {
			e.Ipv4Address, e.Ipv6Address = mapped, netip.Addr{}
		}
	}
	if !e.Ipv4Address.IsValid() || !e.Ipv6Address.IsValid() {
		return []tgpp.IpEndPoint{e}
	}
	if !d.tolerate(tol(tolDualEndPoint)) {
		d.reject("ipv6Address", conditional, "not together with ipv4Address")
		return nil
	}
	second := e
	e.Ipv6Address, second.Ipv4Address = netip.Addr{}, netip.Addr{}
	return []tgpp.IpEndPoint{e, second}
}

func (d *decoder) pcfForUeBinding(b *bsf.PcfForUeBinding) func(name string) {
	return func(name string) {
		switch name {
		case "supi":
			text(d, "supi", mandatory, &b.Supi, supiForm)
		case "gpsi":
			text(d, "gpsi", optional, &b.Gpsi, gpsiForm)
		case "pcfForUeFqdn":
			d.pcfName("pcfForUeFqdn", &b.PcfForUeFqdn, &b.PcfForUeIpEndPoints)
		case "pcfForUeIpEndPoints":
			d.endPoints("pcfForUeIpEndPoints", &b.PcfForUeIpEndPoints)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, nfInstanceID)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, nfSetID)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, extensible)
		case "suppFeat":
			d.features(&b.SuppFeat)
		default:
			d.skip()
		}
	}
}

func (d *decoder) pcfMbsBinding(b *bsf.PcfMbsBinding) func(name string) {
	return func(name string) {
		switch name {
		case "mbsSessionId":
			var m tgpp.MbsSessionId
			if !d.nested("mbsSessionId", mandatory, d.mbsSessionId(&m)) {
				return
			}
			b.MbsSessionId = &m
			if m.Tmgi == nil && m.Ssm == nil && len(d.bad) == 0 {
				d.reject("mbsSessionId", mandatory, "tmgi or ssm is required")
			}
		case "pcfFqdn":
			d.pcfName("pcfFqdn", &b.PcfFqdn, &b.PcfIpEndPoints)
		case "pcfIpEndPoints":
			d.endPoints("pcfIpEndPoints", &b.PcfIpEndPoints)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, nfInstanceID)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, nfSetID)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, extensible)
		case "recoveryTime":
			text(d, "recoveryTime", optional, &b.RecoveryTime, dateTime)
		case "suppFeat":
			d.features(&b.SuppFeat)
		default:
			d.skip()
		}
	}
}

func (d *decoder) mbsSessionId(m *tgpp.MbsSessionId) func(name string) {
	return func(name string) {
		switch name {
		case "tmgi":
			var t tgpp.Tmgi
			if d.nested("tmgi", conditional, d.tmgi(&t)) {
				m.Tmgi = &t
				d.require("tmgi", "mbsServiceId", t.MbsServiceId != "")
				d.require("tmgi", "plmnId", t.PlmnId.Mcc != "")
			}
		case "ssm":
			var v tgpp.Ssm
			if d.nested("ssm", conditional, d.ssm(&v)) {
				m.Ssm = &v
				d.require("ssm", "sourceIpAddr", v.SourceIpAddr != tgpp.IpAddr{})
				d.require("ssm", "destIpAddr", v.DestIpAddr != tgpp.IpAddr{})
			}
		case "nid":
			text(d, "nid", conditional, &m.Nid, nid)
		default:
			d.skip()
		}
	}
}

func (d *decoder) ssm(v *tgpp.Ssm) func(name string) {
	return func(name string) {
		switch name {
		case "sourceIpAddr":
			d.ipAddr("sourceIpAddr", &v.SourceIpAddr)
		case "destIpAddr":
			d.ipAddr("destIpAddr", &v.DestIpAddr)
		default:
			d.skip()
		}
	}
}

// require rejects a member of an object that is absent, unless something was
// rejected before, which may be the same member.
func (d *decoder) require(object, member string, present bool) {
	if !present && len(d.bad) == 0 && d.err == nil {
		d.path = append(d.path, step{name: object})
		d.reject(member, mandatory, "required")
		d.path = d.path[:len(d.path)-1]
	}
}

func (d *decoder) tmgi(t *tgpp.Tmgi) func(name string) {
	return func(name string) {
		switch name {
		case "mbsServiceId":
			text(d, "mbsServiceId", mandatory, &t.MbsServiceId, mbsServiceID)
		case "plmnId":
			if d.nested("plmnId", mandatory, func(name string) {
				switch name {
				case "mcc":
					text(d, "mcc", mandatory, &t.PlmnId.Mcc, anyText)
				case "mnc":
					text(d, "mnc", mandatory, &t.PlmnId.Mnc, anyText)
				default:
					d.skip()
				}
			}) {
				if err := t.PlmnId.Check(); err != nil {
					d.reject("plmnId", mandatory, reasonText(err))
				}
			}
		default:
			d.skip()
		}
	}
}

func (d *decoder) ipAddr(name string, a *tgpp.IpAddr) {
	n := 0
	counted := func(given bool) {
		if given {
			n++
		}
	}
	ok := d.nested(name, mandatory, func(member string) {
		switch member {
		case "ipv4Addr":
			counted(text(d, "ipv4Addr", conditional, &a.Ipv4Addr, ipv4Form))
		case "ipv6Addr":
			counted(text(d, "ipv6Addr", conditional, &a.Ipv6Addr, ipv6Form))
		case "ipv6Prefix":
			counted(text(d, "ipv6Prefix", conditional, &a.Ipv6Prefix, prefixForm))
		default:
			d.skip()
		}
	})
	if ok && n != 1 && len(d.bad) == 0 {
		d.reject(name, mandatory, "exactly one of ipv4Addr, ipv6Addr and ipv6Prefix is required")
	}
}

func (d *decoder) subscription(s *bsf.Subscription) func(name string) {
	return func(name string) {
		switch name {
		case "events":
			texts(d, "events", mandatory, &s.Events, extensible)
		case "notifUri":
			text(d, "notifUri", mandatory, &s.NotifUri, httpURI)
		case "notifCorreId":
			text(d, "notifCorreId", mandatory, &s.NotifCorreId, extensible)
		case "supi":
			text(d, "supi", mandatory, &s.Supi, supiForm)
		case "gpsi":
			text(d, "gpsi", optional, &s.Gpsi, gpsiForm)
		case "snssaiDnnPairs":
			var p bsf.SnssaiDnnPair
			if d.pair("snssaiDnnPairs", conditional, &p) {
				s.SnssaiDnnPairs = &p
			}
		case "addSnssaiDnnPairs":
			d.list("addSnssaiDnnPairs", optional, func() bool {
				var p bsf.SnssaiDnnPair
				ok := d.pair("", optional, &p)
				if ok {
					s.AddSnssaiDnnPairs = append(s.AddSnssaiDnnPairs, p)
				}
				return ok
			})
		case "suppFeat":
			d.features(&s.SuppFeat)
		default:
			d.skip()
		}
	}
}

// pair reads a slice with a data network, and reports whether there was one.
func (d *decoder) pair(name string, c class, p *bsf.SnssaiDnnPair) bool {
	hasDnn, hasSnssai := false, false
	if !d.nested(name, c, func(member string) {
		switch member {
		case "dnn":
			hasDnn = text(d, "dnn", c, &p.Dnn, dnnForm)
		case "snssai":
			hasSnssai = d.snssai("snssai", c, &p.Snssai)
		default:
			d.skip()
		}
	}) {
		return false
	}
	if (!hasDnn || !hasSnssai) && len(d.bad) == 0 {
		d.reject(name, c, "dnn and snssai are required")
	}
	return true
}
