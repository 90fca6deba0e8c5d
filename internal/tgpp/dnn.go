package tgpp

import (
	"fmt"
	"strings"
)

// Dnn is a Data Network Name (TS 23.003 §9A): a network identifier, or a full
// name that ends in the operator identifier ".mncNNN.mccNNN.gprs". It is kept
// as it was sent; comparisons go through Match or Key.
type Dnn string

// maxDnn is the length limit of an encoded APN (TS 23.003 §9.1) in bytes.
const maxDnn = 100

var errDnn = fmt.Errorf("%w: dnn must be dot-separated labels of letters, digits and hyphens", ErrFormat)

// ParseDnn checks a DNN: dot-separated labels of letters, digits, hyphens and
// underscores, at most 63 bytes each and 100 in all.
func ParseDnn(s string) (Dnn, error) {
	if s == "" || len(s) > maxDnn {
		return "", errDnn
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 {
			return "", errDnn
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; !isAlnum(c) && c != '-' && c != '_' {
				return "", errDnn
			}
		}
	}
	return Dnn(s), nil
}

// Key is the lower-case network identifier: what two spellings of one data
// network have in common, fit for use as a map key.
func (d Dnn) Key() string {
	ni, _ := d.split()
	return strings.ToLower(ni)
}

// SameNetwork reports whether d and o have the same network identifier,
// whatever the case: whether their Keys are equal.
func (d Dnn) SameNetwork(o Dnn) bool {
	dn, _ := d.split()
	on, _ := o.split()
	return strings.EqualFold(dn, on)
}

// Match reports whether d and o may name the same data network: equal network
// identifiers whatever the case, and equal operator identifiers when both
// have one (TS 23.003 §9A).
func (d Dnn) Match(o Dnn) bool {
	dn, do := d.split()
	on, oo := o.split()
	return strings.EqualFold(dn, on) && (do == "" || oo == "" || strings.EqualFold(do, oo))
}

// split returns the network identifier and the operator identifier, the
// latter with its leading dot or empty.
func (d Dnn) split() (ni, oi string) {
	const oiLen = len(".mncNNN.mccNNN.gprs")
	s := string(d)
	if len(s) <= oiLen {
		return s, ""
	}
	tail := s[len(s)-oiLen:]
	if strings.EqualFold(tail[:4], ".mnc") && isDigits(tail[4:7]) &&
		strings.EqualFold(tail[7:11], ".mcc") && isDigits(tail[11:14]) &&
		strings.EqualFold(tail[14:], ".gprs") {
		return s[:len(s)-oiLen], tail
	}
	return s, ""
}
