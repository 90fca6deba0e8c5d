package tgpp

import (
	"fmt"
	"net/netip"
	"strings"
)

// PlmnId is a Public Land Mobile Network identifier (TS 29.571 §5.4.4.3): Mcc
// of three digits, Mnc of two or three.
type PlmnId struct {
	Mcc string `json:"mcc"`
	Mnc string `json:"mnc"`
}

// Check reports an error that names the wrong member.
func (p PlmnId) Check() error {
	if len(p.Mcc) != 3 || !isDigits(p.Mcc) {
		return fmt.Errorf("%w: mcc must be 3 digits", ErrFormat)
	}
	if len(p.Mnc) < 2 || len(p.Mnc) > 3 || !isDigits(p.Mnc) {
		return fmt.Errorf("%w: mnc must be 2 or 3 digits", ErrFormat)
	}
	return nil
}

// Tmgi is a Temporary Mobile Group Identity (TS 29.571 §5.9.4.1).
type Tmgi struct {
	MbsServiceId string `json:"mbsServiceId"`
	PlmnId       PlmnId `json:"plmnId"`
}

// ParseMbsServiceId checks six hexadecimal digits.
func ParseMbsServiceId(s string) (string, error) {
	if len(s) != 6 || !isHex(s) {
		return "", fmt.Errorf("%w: must be 6 hexadecimal digits", ErrFormat)
	}
	return s, nil
}

// IpAddr is an address of one of three forms, exactly one of which is present
// (TS 29.571 §5.2.4.10).
type IpAddr struct {
	Ipv4Addr   netip.Addr   `json:"ipv4Addr,omitzero"`
	Ipv6Addr   netip.Addr   `json:"ipv6Addr,omitzero"`
	Ipv6Prefix netip.Prefix `json:"ipv6Prefix,omitzero"`
}

// MarshalJSON implements json.Marshaler. IPv6 is never in the mixed notation,
// which net/netip prefers for mapped addresses and TS 29.571 does not have.
func (a IpAddr) MarshalJSON() ([]byte, error) {
	switch {
	case a.Ipv4Addr.IsValid():
		return append(a.Ipv4Addr.AppendTo([]byte(`{"ipv4Addr":"`)), `"}`...), nil
	case a.Ipv6Addr.IsValid():
		return append(AppendIpv6Addr([]byte(`{"ipv6Addr":"`), a.Ipv6Addr), `"}`...), nil
	case a.Ipv6Prefix.IsValid():
		return append(AppendIpv6Prefix([]byte(`{"ipv6Prefix":"`), a.Ipv6Prefix), `"}`...), nil
	default:
		return []byte("{}"), nil
	}
}

// Key is the canonical text of the address.
func (a IpAddr) Key() string {
	switch {
	case a.Ipv4Addr.IsValid():
		return a.Ipv4Addr.String()
	case a.Ipv6Addr.IsValid():
		return a.Ipv6Addr.String()
	default:
		return a.Ipv6Prefix.Masked().String()
	}
}

// Ssm is a source specific IP multicast address (TS 29.571 §5.9.4.2).
type Ssm struct {
	SourceIpAddr IpAddr `json:"sourceIpAddr"`
	DestIpAddr   IpAddr `json:"destIpAddr"`
}

// MbsSessionId identifies a multicast or broadcast session (TS 29.571
// §5.9.4.3) by Tmgi, Ssm or both; Nid is 11 hexadecimal digits or empty.
type MbsSessionId struct {
	Tmgi *Tmgi  `json:"tmgi,omitempty"`
	Ssm  *Ssm   `json:"ssm,omitempty"`
	Nid  string `json:"nid,omitempty"`
}

// ParseNid checks a network identifier of a stand-alone network: 11
// hexadecimal digits.
func ParseNid(s string) (string, error) {
	if len(s) != 11 || !isHex(s) {
		return "", fmt.Errorf("%w: must be 11 hexadecimal digits", ErrFormat)
	}
	return s, nil
}

// Key is the canonical text of the session identifier: two identifiers with
// the same Key are the same session.
func (m MbsSessionId) Key() string {
	var b strings.Builder
	if m.Tmgi != nil {
		b.WriteString(strings.ToLower(m.Tmgi.MbsServiceId) + "-" + m.Tmgi.PlmnId.Mcc + "-" + m.Tmgi.PlmnId.Mnc)
	}
	b.WriteByte('|')
	if m.Ssm != nil {
		b.WriteString(m.Ssm.SourceIpAddr.Key() + ">" + m.Ssm.DestIpAddr.Key())
	}
	b.WriteByte('|')
	b.WriteString(strings.ToLower(m.Nid))
	return b.String()
}
