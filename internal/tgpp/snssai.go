package tgpp

import (
	"fmt"
	"strconv"
	"strings"
)

// Snssai is a Single Network Slice Selection Assistance Information
// (TS 29.571 §5.4.4.2): Sst 0..255 and an optional Sd of six hexadecimal
// digits, kept as it was sent. Snssai values are compared with Equal, because
// the digits of Sd may come in either case.
type Snssai struct {
	Sst uint8  `json:"sst"`
	Sd  string `json:"sd,omitempty"`
}

// ParseSd checks a slice differentiator: exactly six hexadecimal digits.
func ParseSd(s string) (string, error) {
	if len(s) != 6 || !isHex(s) {
		return "", fmt.Errorf("%w: sd must be 6 hexadecimal digits", ErrFormat)
	}
	return s, nil
}

// Equal reports whether a and b name the same slice: same Sst, and Sd absent
// in both or equal whatever the case of its digits.
func (s Snssai) Equal(o Snssai) bool {
	return s.Sst == o.Sst && strings.EqualFold(s.Sd, o.Sd)
}

// Key is the canonical text of the slice, "sst" or "sst-sd" with lower-case
// digits (TS 29.571 §5.4.4.2), fit for use as a map key.
func (s Snssai) Key() string {
	if s.Sd == "" {
		return strconv.Itoa(int(s.Sst))
	}
	return strconv.Itoa(int(s.Sst)) + "-" + strings.ToLower(s.Sd)
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return true
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
