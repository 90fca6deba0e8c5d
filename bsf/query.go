package bsf

import (
	"net/netip"
	"strings"

	"bsfd/internal/tgpp"
)

// Query asks for the binding of a UE address (TS 29.521 §4.2.4.2). At least
// one of the three addresses or the SUPI is given; every attribute that is
// given must match.
type Query struct {
	Ipv4Addr  netip.Addr
	Ipv6      netip.Prefix
	MacAddr48 tgpp.MacAddr48
	Dnn       tgpp.Dnn
	Supi      tgpp.Supi
	Gpsi      tgpp.Gpsi
	Snssai    *tgpp.Snssai
	IpDomain  string
}

// key is the one key by which the query is answered; the rest is filtered.
func (q *Query) key() Key {
	switch {
	case q.Ipv4Addr.IsValid():
		return PrefixKey(netip.PrefixFrom(q.Ipv4Addr, 32))
	case q.Ipv6.IsValid():
		return PrefixKey(q.Ipv6)
	case q.MacAddr48 != "":
		return MacKey(q.MacAddr48)
	default:
		return SupiKey(q.Supi)
	}
}

// Matches reports whether the binding answers the query.
func (q *Query) Matches(b *PcfBinding) bool {
	return (!q.Ipv4Addr.IsValid() || q.matchesIpv4(b)) &&
		(!q.Ipv6.IsValid() || q.matchesIpv6(b)) &&
		(q.MacAddr48 == "" || q.matchesMac(b)) &&
		(q.IpDomain == "" || q.IpDomain == b.IpDomain) &&
		(q.Dnn == "" || q.Dnn.Match(b.Dnn)) &&
		(q.Supi == "" || q.Supi == b.Supi) &&
		(q.Gpsi == "" || q.Gpsi == b.Gpsi) &&
		(q.Snssai == nil || q.Snssai.Equal(b.Snssai))
}

func (q *Query) matchesIpv4(b *PcfBinding) bool {
	if b.Ipv4Addr == q.Ipv4Addr {
		return true
	}
	for _, p := range b.Ipv4FrameRouteList {
		if p.Contains(q.Ipv4Addr) {
			return true
		}
	}
	return false
}

func (q *Query) matchesIpv6(b *PcfBinding) bool {
	for p := range b.ipv6Addresses {
		if contains(p, q.Ipv6) {
			return true
		}
	}
	for _, p := range b.Ipv6FrameRouteList {
		if contains(p, q.Ipv6) {
			return true
		}
	}
	return false
}

func (q *Query) matchesMac(b *PcfBinding) bool {
	for m := range b.macAddresses {
		if strings.EqualFold(string(m), string(q.MacAddr48)) {
			return true
		}
	}
	return false
}

// contains reports whether every address of inner is in outer.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
