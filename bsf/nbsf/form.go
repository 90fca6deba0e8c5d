package nbsf

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"bsfd/internal/tgpp"
	"bsfd/internal/tolerate"
)

// form is how a text becomes a value.
type form[T any] struct {
	// exact reads what the OpenAPI file allows.
	exact func(string) (T, error)
	// lenient reads what exact refused, and tells which tolerances that takes;
	// ok is false when nothing can be made of it. It may be nil.
	lenient func(string) (v T, used tolerate.Set, ok bool)
}

// Forms of the members of resources. An address that is asked for has another
// default length than one that is stored.
var (
	supiForm      = &form[tgpp.Supi]{exact: tgpp.ParseSupi}
	gpsiForm      = &form[tgpp.Gpsi]{exact: tgpp.ParseGpsi}
	dnnForm       = &form[tgpp.Dnn]{exact: tgpp.ParseDnn}
	ipDomainForm  = &form[string]{exact: tgpp.ParseIPDomain}
	sdForm        = &form[string]{exact: tgpp.ParseSd}
	nfInstanceID  = &form[tgpp.NfInstanceId]{exact: tgpp.ParseNfInstanceId}
	nfSetID       = &form[tgpp.NfSetId]{exact: tgpp.ParseNfSetId}
	dateTime      = &form[tgpp.DateTime]{exact: tgpp.ParseDateTime}
	nid           = &form[string]{exact: tgpp.ParseNid}
	mbsServiceID  = &form[string]{exact: tgpp.ParseMbsServiceId}
	extensible    = &form[string]{exact: parseExtensible}
	httpURI       = &form[string]{exact: parseHTTPURI}
	anyText       = &form[string]{exact: func(s string) (string, error) { return s, nil }}
	featuresForm  = &form[tgpp.Features]{tgpp.ParseFeatures, lenientFeatures}
	ipv4Form      = &form[netip.Addr]{tgpp.ParseIpv4Addr, lenientIpv4}
	ipv6Form      = &form[netip.Addr]{tgpp.ParseIpv6Addr, lenientIpv6}
	ipv4RouteForm = &form[netip.Prefix]{parseIpv4Route, lenientIpv4Route}
	prefixForm    = &form[netip.Prefix]{parseIpv6Prefix, lenientIpv6Prefix(64)}
	askedForm     = &form[netip.Prefix]{tgpp.ParseIpv6Prefix, lenientIpv6Prefix(128)}
	macForm       = &form[tgpp.MacAddr48]{tgpp.ParseMacAddr48, lenientMac}
	diamName      = &form[tgpp.Fqdn]{tgpp.ParseFqdn, lenientIdentity}
)

// parseExtensible accepts any text of an extensible enumeration, or of an
// identifier of the consumer's.
func parseExtensible(s string) (string, error) {
	if s == "" || len(s) > 1024 {
		return "", fmt.Errorf("%w: must have 1 to 1024 bytes", tgpp.ErrFormat)
	}
	return s, nil
}

// parseHTTPURI accepts an absolute http or https URI with a host.
func parseHTTPURI(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > 4096 || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%w: must be an absolute http or https URI", tgpp.ErrFormat)
	}
	return s, nil
}

func lenientFeatures(s string) (tgpp.Features, tolerate.Set, bool) {
	digits, ok := strings.CutPrefix(strings.ToLower(s), "0x")
	f, err := tgpp.ParseFeatures(digits)
	return f, tol(tolFeaturesPrefix), ok && digits != "" && err == nil
}

func lenientIpv4(s string) (netip.Addr, tolerate.Set, bool) {
	a, err := netip.ParseAddr(s)
	return a.Unmap(), tol(tolIpv4Mapped), err == nil && a.Is4In6() && a.Zone() == ""
}

func lenientIpv6(s string) (netip.Addr, tolerate.Set, bool) {
	a, err := netip.ParseAddr(s)
	return a, tol(tolIpv6Text), err == nil && a.Is6() && a.Zone() == ""
}

var errHostBits = fmt.Errorf("%w: bits are set beyond the length of the prefix", tgpp.ErrFormat)

// parseIpv6Prefix reads an Ipv6Prefix without bits beyond its length.
func parseIpv6Prefix(s string) (netip.Prefix, error) {
	return withoutHostBits(tgpp.ParseIpv6Prefix(s))
}

// parseIpv4Route reads an Ipv4AddrMask without bits beyond its length.
func parseIpv4Route(s string) (netip.Prefix, error) {
	return withoutHostBits(tgpp.ParseIpv4AddrMask(s))
}

func withoutHostBits(p netip.Prefix, err error) (netip.Prefix, error) {
	if err == nil && p != p.Masked() {
		return netip.Prefix{}, errHostBits
	}
	return p, err
}

// lenientIpv6Prefix returns a reader of prefixes that takes those without a
// length to have this one.
func lenientIpv6Prefix(bits int) func(string) (netip.Prefix, tolerate.Set, bool) {
	return func(s string) (netip.Prefix, tolerate.Set, bool) {
		text, _, _ := strings.Cut(s, "/")
		p, used, ok := lenientPrefix(s, bits)
		if _, err := tgpp.ParseIpv6Addr(text); err != nil {
			used |= tol(tolIpv6Text)
		}
		return p, used, ok && p.Addr().Is6()
	}
}

func lenientIpv4Route(s string) (netip.Prefix, tolerate.Set, bool) {
	p, used, ok := lenientPrefix(s, 32)
	return p, used, ok && p.Addr().Is4()
}

func lenientPrefix(s string, bits int) (p netip.Prefix, used tolerate.Set, ok bool) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if p != p.Masked() {
			used = tol(tolPrefixBits)
		}
		return p.Masked(), used, err == nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return p, 0, false
	}
	return netip.PrefixFrom(a, min(bits, a.BitLen())).Masked(), tol(tolPrefixLength), true
}

func lenientMac(s string) (tgpp.MacAddr48, tolerate.Set, bool) {
	octets, err := net.ParseMAC(s)
	if err != nil {
		octets, err = hex.DecodeString(s)
	}
	if err != nil || len(octets) != 6 {
		return "", 0, false
	}
	return tgpp.MacAddr48(strings.ReplaceAll(octets.String(), ":", "-")), tol(tolMacText), true
}

// lenientIdentity reads a DiameterIdentity of one label or with other
// characters, or the host of a DiameterURI (RFC 6733 §4.3.1).
func lenientIdentity(s string) (tgpp.Fqdn, tolerate.Set, bool) {
	h, used, ok := takeApart(s)
	switch {
	case !ok:
		return "", 0, false
	case h.addr.IsValid() && s == h.addr.String():
		return tgpp.Fqdn(s), tol(tolName), true
	case h.addr.IsValid():
		return tgpp.Fqdn(h.addr.String()), used | tol(tolName), true
	}
	return h.name, used, true
}

// host is what a name, an authority or a URI says of where a service is:
// either name or addr, and port when that is given or follows from the scheme
// of an address.
type host struct {
	name tgpp.Fqdn
	addr netip.Addr
	port *uint16
}

// takeApart reads a name that is no FQDN, an authority or a URI. What keeps no
// host is not ok. A path is of no use to anybody and dropped.
func takeApart(s string) (h host, used tolerate.Set, ok bool) {
	scheme, rest, isURI := strings.Cut(s, "://")
	if !isURI {
		scheme, rest = "", s
	}
	var standard uint16
	switch strings.ToLower(scheme) {
	case "http":
		standard = 80
	case "https":
		standard = 443
	case "", "aaa", "aaas":
	default:
		return host{}, 0, false
	}
	if isURI {
		// A DiameterURI has parameters behind a semicolon.
		if end := strings.IndexAny(rest, "/?#;"); end >= 0 {
			rest = rest[:end]
		}
		used = tol(tolURI)
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")); err == nil {
		rest = a.String()
	} else if name, port, err := net.SplitHostPort(rest); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return host{}, 0, false
		}
		p := uint16(n)
		h.port, rest = &p, name
		used = tol(tolURI)
	}
	if a, err := netip.ParseAddr(rest); err == nil {
		h.addr = a.Unmap()
		if h.port == nil && standard != 0 {
			h.port = &standard
		}
		return h, used | tol(tolURI), a.Zone() == ""
	}
	if _, err := tgpp.ParseFqdn(rest); err != nil {
		used |= tol(tolName)
	}
	h.name = tgpp.Fqdn(rest)
	return h, used, isName(rest)
}

// isName reports whether s is made of labels of letters, digits, hyphens and
// underscores, with an optional final dot.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := 0; i < len(label); i++ {
			c := label[i] | 0x20
			if (c < 'a' || c > 'z') && (label[i] < '0' || label[i] > '9') && label[i] != '-' && label[i] != '_' {
				return false
			}
		}
	}
	return true
}
