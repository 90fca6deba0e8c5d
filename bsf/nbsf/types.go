package nbsf

import (
	"fmt"
	"net/url"
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
			text(d, "supi", optional, &b.Supi, tgpp.ParseSupi)
		case "gpsi":
			text(d, "gpsi", optional, &b.Gpsi, tgpp.ParseGpsi)
		case "ipv4Addr":
			text(d, "ipv4Addr", mandatory, &b.Ipv4Addr, tgpp.ParseIpv4Addr)
		case "ipv6Prefix":
			text(d, "ipv6Prefix", mandatory, &b.Ipv6Prefix, tgpp.ParseIpv6Prefix)
		case "addIpv6Prefixes":
			texts(d, "addIpv6Prefixes", optional, &b.AddIpv6Prefixes, tgpp.ParseIpv6Prefix)
		case "ipDomain":
			text(d, "ipDomain", mandatory, &b.IpDomain, tgpp.ParseIPDomain)
		case "macAddr48":
			text(d, "macAddr48", mandatory, &b.MacAddr48, tgpp.ParseMacAddr48)
		case "addMacAddrs":
			texts(d, "addMacAddrs", optional, &b.AddMacAddrs, tgpp.ParseMacAddr48)
		case "dnn":
			text(d, "dnn", mandatory, &b.Dnn, tgpp.ParseDnn)
		case "pcfFqdn":
			text(d, "pcfFqdn", mandatory, &b.PcfFqdn, tgpp.ParseFqdn)
		case "pcfIpEndPoints":
			d.endPoints("pcfIpEndPoints", mandatory, &b.PcfIpEndPoints)
		case "pcfDiamHost":
			text(d, "pcfDiamHost", mandatory, &b.PcfDiamHost, tgpp.ParseFqdn)
		case "pcfDiamRealm":
			text(d, "pcfDiamRealm", mandatory, &b.PcfDiamRealm, tgpp.ParseFqdn)
		case "pcfSmFqdn":
			text(d, "pcfSmFqdn", mandatory, &b.PcfSmFqdn, tgpp.ParseFqdn)
		case "pcfSmIpEndPoints":
			d.endPoints("pcfSmIpEndPoints", mandatory, &b.PcfSmIpEndPoints)
		case "snssai":
			d.snssai("snssai", mandatory, &b.Snssai)
		case "suppFeat":
			d.features(&b.SuppFeat)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, tgpp.ParseNfInstanceId)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, tgpp.ParseNfSetId)
		case "recoveryTime":
			text(d, "recoveryTime", optional, &b.RecoveryTime, tgpp.ParseDateTime)
		case "paraCom":
			d.paraCom(b)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, parseExtensible)
		case "ipv4FrameRouteList":
			texts(d, "ipv4FrameRouteList", optional, &b.Ipv4FrameRouteList, tgpp.ParseIpv4AddrMask)
		case "ipv6FrameRouteList":
			texts(d, "ipv6FrameRouteList", optional, &b.Ipv6FrameRouteList, tgpp.ParseIpv6Prefix)
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

func (d *decoder) snssai(name string, c class, dst *tgpp.Snssai) {
	var v tgpp.Snssai
	hasSst := false
	ok := d.nested(name, c, func(member string) {
		switch member {
		case "sst":
			var n uint64
			if n, hasSst = d.integer("sst", c, 255); hasSst {
				v.Sst = uint8(n)
			} else {
				hasSst = true // rejected already
			}
		case "sd":
			text(d, "sd", c, &v.Sd, tgpp.ParseSd)
		default:
			d.skip()
		}
	})
	if !ok {
		return
	}
	if !hasSst {
		d.path = append(d.path, step{name: name})
		d.reject("sst", c, "required")
		d.path = d.path[:len(d.path)-1]
	}
	*dst = v
}

func (d *decoder) features(dst **tgpp.Features) {
	var f tgpp.Features
	text(d, "suppFeat", mandatory, &f, tgpp.ParseFeatures)
	*dst = &f
}

func (d *decoder) paraCom(b *bsf.PcfBinding) {
	p := &bsf.ParameterCombination{}
	if d.nested("paraCom", optional, func(member string) {
		switch member {
		case "supi":
			text(d, "supi", optional, &p.Supi, tgpp.ParseSupi)
		case "dnn":
			text(d, "dnn", optional, &p.Dnn, tgpp.ParseDnn)
		case "snssai":
			p.Snssai = &tgpp.Snssai{}
			d.snssai("snssai", optional, p.Snssai)
		default:
			d.skip()
		}
	}) {
		b.ParaCom = p
	}
}

func (d *decoder) endPoints(name string, c class, dst *[]tgpp.IpEndPoint) {
	var list []tgpp.IpEndPoint
	d.list(name, c, func() {
		var e tgpp.IpEndPoint
		d.nested("", c, func(member string) {
			switch member {
			case "ipv4Address":
				text(d, "ipv4Address", c, &e.Ipv4Address, tgpp.ParseIpv4Addr)
			case "ipv6Address":
				text(d, "ipv6Address", c, &e.Ipv6Address, tgpp.ParseIpv6Addr)
			case "transport":
				text(d, "transport", c, &e.Transport, parseExtensible)
			case "port":
				if n, ok := d.integer("port", c, 65535); ok {
					port := uint16(n)
					e.Port = &port
				}
			default:
				d.skip()
			}
		})
		if e.Ipv4Address.IsValid() && e.Ipv6Address.IsValid() {
			d.reject("ipv6Address", c, "not together with ipv4Address")
		}
		list = append(list, e)
	})
	*dst = list
}

func (d *decoder) pcfForUeBinding(b *bsf.PcfForUeBinding) func(name string) {
	return func(name string) {
		switch name {
		case "supi":
			text(d, "supi", mandatory, &b.Supi, tgpp.ParseSupi)
		case "gpsi":
			text(d, "gpsi", optional, &b.Gpsi, tgpp.ParseGpsi)
		case "pcfForUeFqdn":
			text(d, "pcfForUeFqdn", mandatory, &b.PcfForUeFqdn, tgpp.ParseFqdn)
		case "pcfForUeIpEndPoints":
			d.endPoints("pcfForUeIpEndPoints", mandatory, &b.PcfForUeIpEndPoints)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, tgpp.ParseNfInstanceId)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, tgpp.ParseNfSetId)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, parseExtensible)
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
			b.MbsSessionId = &tgpp.MbsSessionId{}
			d.nested("mbsSessionId", mandatory, d.mbsSessionId(b.MbsSessionId))
			if b.MbsSessionId.Tmgi == nil && b.MbsSessionId.Ssm == nil && len(d.bad) == 0 && d.err == nil {
				d.reject("mbsSessionId", mandatory, "tmgi or ssm is required")
			}
		case "pcfFqdn":
			text(d, "pcfFqdn", mandatory, &b.PcfFqdn, tgpp.ParseFqdn)
		case "pcfIpEndPoints":
			d.endPoints("pcfIpEndPoints", mandatory, &b.PcfIpEndPoints)
		case "pcfId":
			text(d, "pcfId", optional, &b.PcfId, tgpp.ParseNfInstanceId)
		case "pcfSetId":
			text(d, "pcfSetId", optional, &b.PcfSetId, tgpp.ParseNfSetId)
		case "bindLevel":
			text(d, "bindLevel", optional, &b.BindLevel, parseExtensible)
		case "recoveryTime":
			text(d, "recoveryTime", optional, &b.RecoveryTime, tgpp.ParseDateTime)
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
			m.Tmgi = &tgpp.Tmgi{}
			d.nested("tmgi", mandatory, d.tmgi(m.Tmgi))
			d.require("tmgi", "mbsServiceId", m.Tmgi.MbsServiceId != "")
			d.require("tmgi", "plmnId", m.Tmgi.PlmnId.Mcc != "")
		case "ssm":
			m.Ssm = &tgpp.Ssm{}
			d.nested("ssm", mandatory, func(name string) {
				switch name {
				case "sourceIpAddr":
					d.ipAddr("sourceIpAddr", &m.Ssm.SourceIpAddr)
				case "destIpAddr":
					d.ipAddr("destIpAddr", &m.Ssm.DestIpAddr)
				default:
					d.skip()
				}
			})
			d.require("ssm", "sourceIpAddr", m.Ssm.SourceIpAddr != tgpp.IpAddr{})
			d.require("ssm", "destIpAddr", m.Ssm.DestIpAddr != tgpp.IpAddr{})
		case "nid":
			text(d, "nid", mandatory, &m.Nid, tgpp.ParseNid)
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
			text(d, "mbsServiceId", mandatory, &t.MbsServiceId, tgpp.ParseMbsServiceId)
		case "plmnId":
			if d.nested("plmnId", mandatory, func(name string) {
				switch name {
				case "mcc":
					text(d, "mcc", mandatory, &t.PlmnId.Mcc, parseAny)
				case "mnc":
					text(d, "mnc", mandatory, &t.PlmnId.Mnc, parseAny)
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
	ok := d.nested(name, mandatory, func(member string) {
		n++
		switch member {
		case "ipv4Addr":
			text(d, "ipv4Addr", mandatory, &a.Ipv4Addr, tgpp.ParseIpv4Addr)
		case "ipv6Addr":
			text(d, "ipv6Addr", mandatory, &a.Ipv6Addr, tgpp.ParseIpv6Addr)
		case "ipv6Prefix":
			text(d, "ipv6Prefix", mandatory, &a.Ipv6Prefix, tgpp.ParseIpv6Prefix)
		default:
			n--
			d.skip()
		}
	})
	if ok && n != 1 {
		d.reject(name, mandatory, "exactly one of ipv4Addr, ipv6Addr and ipv6Prefix is required")
	}
}

func (d *decoder) subscription(s *bsf.Subscription) func(name string) {
	return func(name string) {
		switch name {
		case "events":
			texts(d, "events", mandatory, &s.Events, parseExtensible)
		case "notifUri":
			text(d, "notifUri", mandatory, &s.NotifUri, parseHTTPURI)
		case "notifCorreId":
			text(d, "notifCorreId", mandatory, &s.NotifCorreId, parseExtensible)
		case "supi":
			text(d, "supi", mandatory, &s.Supi, tgpp.ParseSupi)
		case "gpsi":
			text(d, "gpsi", optional, &s.Gpsi, tgpp.ParseGpsi)
		case "snssaiDnnPairs":
			s.SnssaiDnnPairs = &bsf.SnssaiDnnPair{}
			d.pair("snssaiDnnPairs", mandatory, s.SnssaiDnnPairs)
		case "addSnssaiDnnPairs":
			d.list("addSnssaiDnnPairs", optional, func() {
				var p bsf.SnssaiDnnPair
				d.pair("", optional, &p)
				s.AddSnssaiDnnPairs = append(s.AddSnssaiDnnPairs, p)
			})
		case "suppFeat":
			d.features(&s.SuppFeat)
		default:
			d.skip()
		}
	}
}

func (d *decoder) pair(name string, c class, p *bsf.SnssaiDnnPair) {
	hasDnn, hasSnssai := false, false
	if !d.nested(name, c, func(member string) {
		switch member {
		case "dnn":
			hasDnn = true
			text(d, "dnn", c, &p.Dnn, tgpp.ParseDnn)
		case "snssai":
			hasSnssai = true
			d.snssai("snssai", c, &p.Snssai)
		default:
			d.skip()
		}
	}) {
		return
	}
	if !hasDnn || !hasSnssai {
		d.reject(name, c, "dnn and snssai are required")
	}
}

// parseExtensible accepts any text of an extensible enumeration, or of an
// identifier of the consumer's.
func parseExtensible(s string) (string, error) {
	if s == "" || len(s) > 1024 {
		return "", fmt.Errorf("%w: must have 1 to 1024 bytes", tgpp.ErrFormat)
	}
	return s, nil
}

// parseAny leaves the check to the type that the text becomes a part of.
func parseAny(s string) (string, error) { return s, nil }

// parseHTTPURI accepts an absolute http or https URI with a host.
func parseHTTPURI(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > 4096 || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%w: must be an absolute http or https URI", tgpp.ErrFormat)
	}
	return s, nil
}
