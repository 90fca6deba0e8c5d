package tgpp

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Fqdn is a fully qualified domain name (TS 29.571 §5.3.2). DiameterIdentity
// is the same type.
type Fqdn string

var errFqdn = fmt.Errorf("%w: must be a fully qualified domain name", ErrFormat)

// ParseFqdn checks a domain name: 4 to 253 bytes, at least two labels of
// letters, digits and inner hyphens, the last of 2 to 63 letters, with an
// optional final dot.
func ParseFqdn(s string) (Fqdn, error) {
	if len(s) < 4 || len(s) > 253 {
		return "", errFqdn
	}
	rest := strings.TrimSuffix(s, ".")
	last, labels := "", 0
	for label := range strings.SplitSeq(rest, ".") {
		if len(label) > 63 || !isLabel(label) || label[0] == '-' {
			return "", errFqdn
		}
		last, labels = label, labels+1
	}
	if labels < 2 || len(last) < 2 {
		return "", errFqdn
	}
	for i := 0; i < len(last); i++ {
		if c := last[i]; c >= '0' && c <= '9' || c == '-' {
			return "", errFqdn
		}
	}
	return Fqdn(s), nil
}

// IpEndPoint is the address of a service (TS 29.510 §6.1.6.2.5): at most one
// of the two addresses; Port nil when absent, which means 80 for http and 443
// for https.
type IpEndPoint struct {
	Ipv4Address netip.Addr `json:"ipv4Address,omitzero"`
	Ipv6Address netip.Addr `json:"ipv6Address,omitzero"`
	Transport   string     `json:"transport,omitempty"`
	Port        *uint16    `json:"port,omitempty"`
}

// AppendJSON appends the end point as TS 29.510 §6.1.6.2.5 writes it.
func (e *IpEndPoint) AppendJSON(dst []byte) []byte {
	start := len(dst)
	member := func(name string) {
		dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	}
	if e.Ipv4Address.IsValid() {
		member("ipv4Address")
		dst = append(e.Ipv4Address.AppendTo(append(dst, '"')), '"')
	}
	if e.Ipv6Address.IsValid() {
		member("ipv6Address")
		dst = append(AppendIpv6Addr(append(dst, '"'), e.Ipv6Address), '"')
	}
	if e.Transport != "" {
		member("transport")
		dst = AppendJSONString(dst, e.Transport)
	}
	if e.Port != nil {
		member("port")
		dst = strconv.AppendUint(dst, uint64(*e.Port), 10)
	}
	if len(dst) == start {
		dst = append(dst, '{')
	}
	dst[start] = '{'
	return append(dst, '}')
}

// MarshalJSON implements json.Marshaler with AppendJSON.
func (e IpEndPoint) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// Equal reports whether both end points are the same in every attribute.
func (e IpEndPoint) Equal(o IpEndPoint) bool {
	if e.Ipv4Address != o.Ipv4Address || e.Ipv6Address != o.Ipv6Address || e.Transport != o.Transport {
		return false
	}
	if e.Port == nil || o.Port == nil {
		return e.Port == o.Port
	}
	return *e.Port == *o.Port
}
