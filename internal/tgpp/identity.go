package tgpp

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIdentity bounds the length of a SUPI, a GPSI and an NF set id, in bytes.
// The longest legal form, a NAI, has 253 octets after its prefix.
const maxIdentity = 512

// Supi is a Subscription Permanent Identifier (TS 29.571 §5.3.2), such as
// "imsi-001010000000001". The pattern there ends in ".+", so any printable
// text is a Supi.
type Supi string

// ParseSupi checks a SUPI: 1 to 512 bytes of printable UTF-8.
func ParseSupi(s string) (Supi, error) {
	if err := checkText("supi", s, maxIdentity); err != nil {
		return "", err
	}
	return Supi(s), nil
}

// Gpsi is a Generic Public Subscription Identifier (TS 29.571 §5.3.2), such
// as "msisdn-4670000001" or "extid-user@example.com".
type Gpsi string

// ParseGpsi checks a GPSI: 1 to 512 bytes of printable UTF-8.
func ParseGpsi(s string) (Gpsi, error) {
	if err := checkText("gpsi", s, maxIdentity); err != nil {
		return "", err
	}
	return Gpsi(s), nil
}

// NfInstanceId is the UUID of a network function instance (TS 29.571 §5.3.2).
type NfInstanceId string

// ParseNfInstanceId checks a UUID in its 36 character form, in either case.
func ParseNfInstanceId(s string) (NfInstanceId, error) {
	if len(s) != 36 {
		return "", errUUID
	}
	for i := 0; i < len(s); i++ {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return "", errUUID
			}
		default:
			if !isHexDigit(s[i]) {
				return "", errUUID
			}
		}
	}
	return NfInstanceId(s), nil
}

// NfSetId is an NF Set Identifier (TS 23.003 §28.12), such as
// "set1.pcfset.5gc.mnc001.mcc001".
type NfSetId string

var (
	errUUID    = fmt.Errorf("%w: must be a UUID", ErrFormat)
	errNfSetId = fmt.Errorf("%w: must be set<id>.<nftype>set.5gc.mnc<3 digits>.mcc<3 digits>", ErrFormat)
)

// ParseNfSetId checks the form
// set<id>.<nftype>set.5gc[.nid<11 hex>].mnc<3 digits>.mcc<3 digits>.
func ParseNfSetId(s string) (NfSetId, error) {
	if len(s) > maxIdentity {
		return "", errNfSetId
	}
	p := strings.Split(s, ".")
	if len(p) == 6 && strings.HasPrefix(p[3], "nid") && len(p[3]) == 14 && isHex(p[3][3:]) {
		p = append(p[:3], p[4:]...)
	}
	if len(p) != 5 {
		return "", errNfSetId
	}
	id, okID := strings.CutPrefix(p[0], "set")
	nfType, okType := strings.CutSuffix(p[1], "set")
	if !okID || !okType || !isLabel(id) || !isLabel(nfType) || p[2] != "5gc" ||
		!isPlmnLabel(p[3], "mnc") || !isPlmnLabel(p[4], "mcc") {
		return "", errNfSetId
	}
	return NfSetId(s), nil
}

func isPlmnLabel(s, prefix string) bool {
	d, ok := strings.CutPrefix(s, prefix)
	return ok && len(d) == 3 && isDigits(d)
}

// isLabel reports whether s consists of letters, digits and hyphens and ends
// in a letter or a digit.
func isLabel(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isAlnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return s != "" && s[len(s)-1] != '-'
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// checkText accepts 1 to limit bytes of UTF-8 without control characters.
func checkText(name, s string, limit int) error {
	if s == "" || len(s) > limit {
		return fmt.Errorf("%w: %s must have 1 to %d bytes", ErrFormat, name, limit)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%w: %s has a control character", ErrFormat, name)
	}
	return nil
}

// maxIPDomain bounds the length of an ipDomain in bytes.
const maxIPDomain = 256

// ParseIPDomain checks an IPv4 address domain identifier (TS 29.521
// §5.6.2.2): 1 to 256 bytes of printable UTF-8.
func ParseIPDomain(s string) (string, error) {
	if err := checkText("ipDomain", s, maxIPDomain); err != nil {
		return "", err
	}
	return s, nil
}
