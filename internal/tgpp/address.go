package tgpp

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ParseIpv4Addr reads an Ipv4Addr (TS 29.571 §5.2.2): dotted decimal without
// leading zeros.
func ParseIpv4Addr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Addr{}, fmt.Errorf("%w: must be an IPv4 address in dotted decimal", ErrFormat)
	}
	return a, nil
}

// ParseIpv4AddrMask reads an Ipv4AddrMask, "a.b.c.d/0..32" (TS 29.571 §5.2.2).
// Host bits are kept; mask before comparing.
func ParseIpv4AddrMask(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("%w: must be an IPv4 address and a mask length of 0 to 32", ErrFormat)
	}
	return p, nil
}

// ParseIpv6Prefix reads an Ipv6Prefix (TS 29.571 §5.2.2): RFC 5952 lower-case
// text with a mandatory length of 0 to 128. Host bits are kept; mask before
// comparing.
func ParseIpv6Prefix(s string) (netip.Prefix, error) {
	addr, _, ok := strings.Cut(s, "/")
	p, err := netip.ParsePrefix(s)
	if err != nil || !ok || !p.Addr().Is6() || !isRFC5952(addr) {
		return netip.Prefix{}, fmt.Errorf("%w: must be a lower-case IPv6 prefix with a length of 0 to 128", ErrFormat)
	}
	return p, nil
}

// ParseIpv6Addr reads an Ipv6Addr (TS 29.571 §5.2.2): RFC 5952 lower-case
// text, never the mixed IPv4 notation.
func ParseIpv6Addr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" || !isRFC5952(s) {
		return netip.Addr{}, fmt.Errorf("%w: must be a lower-case IPv6 address", ErrFormat)
	}
	return a, nil
}

// isRFC5952 rejects what net/netip reads but the pattern of TS 29.571
// excludes: upper-case digits, leading zeros of a group, the mixed notation.
func isRFC5952(s string) bool {
	groupStart := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '.' || c >= 'A' && c <= 'F' {
			return false
		}
		if groupStart && c == '0' && i+1 < len(s) && s[i+1] != ':' {
			return false
		}
		groupStart = c == ':'
	}
	return true
}

// AppendIpv6Prefix appends the text of p as RFC 5952 and TS 29.571 want it.
func AppendIpv6Prefix(dst []byte, p netip.Prefix) []byte {
	dst = AppendIpv6Addr(dst, p.Addr())
	dst = append(dst, '/')
	return strconv.AppendInt(dst, int64(p.Bits()), 10)
}

// AppendIpv6Addr appends the text of a, never in the mixed IPv4 notation that
// net/netip prefers for mapped addresses.
func AppendIpv6Addr(dst []byte, a netip.Addr) []byte {
	if !a.Is4In6() {
		return a.AppendTo(dst)
	}
	b := a.As16()
	dst = append(dst, "::ffff:"...)
	dst = strconv.AppendUint(dst, uint64(b[12])<<8|uint64(b[13]), 16)
	dst = append(dst, ':')
	return strconv.AppendUint(dst, uint64(b[14])<<8|uint64(b[15]), 16)
}

// MacAddr48 is an IEEE 802 address in the text form of TS 29.571 §5.2.2,
// "02-00-5e-10-00-01", kept as it was sent.
type MacAddr48 string

var errMac = fmt.Errorf("%w: must be six hexadecimal octets separated by hyphens", ErrFormat)

// ParseMacAddr48 checks six hexadecimal octets, in either case, separated by
// hyphens.
func ParseMacAddr48(s string) (MacAddr48, error) {
	if len(s) != 17 {
		return "", errMac
	}
	for i := 0; i < len(s); i++ {
		if i%3 == 2 {
			if s[i] != '-' {
				return "", errMac
			}
		} else if !isHexDigit(s[i]) {
			return "", errMac
		}
	}
	return MacAddr48(s), nil
}

// Octets is the binary address; the zero array for an absent one.
func (m MacAddr48) Octets() (o [6]byte) {
	for i := range o {
		if 3*i+2 > len(m) {
			return [6]byte{}
		}
		if _, err := hex.Decode(o[i:i+1], []byte(m[3*i:3*i+2])); err != nil {
			return [6]byte{}
		}
	}
	return o
}
