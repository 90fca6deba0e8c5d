package bsf

import (
	"net/netip"

	"bsfd/internal/tgpp"
)

// KeyKind tells what a Key holds.
type KeyKind uint8

// The kinds of lookup keys.
const (
	KeyPrefix KeyKind = iota + 1 // an IPv4 or IPv6 prefix of a UE or of a framed route
	KeyMac                       // a MAC address
	KeySupi                      // a SUPI
)

// Key is one thing by which a binding is found. Two keys are equal exactly
// when they stand for the same address or identifier, however it was spelled.
// A key for a prefix that is used to look up matches every binding whose own
// prefix contains it (TS 29.521 §4.2.4.2).
type Key struct {
	Kind   KeyKind
	Prefix netip.Prefix // KeyPrefix: masked
	Mac    [6]byte      // KeyMac
	Supi   tgpp.Supi    // KeySupi
}

// PrefixKey is the key of a UE address (as /32 or /128), a UE prefix or a
// framed route. Host bits do not count.
func PrefixKey(p netip.Prefix) Key { return Key{Kind: KeyPrefix, Prefix: p.Masked()} }

// MacKey is the key of a MAC address.
func MacKey(m tgpp.MacAddr48) Key { return Key{Kind: KeyMac, Mac: m.Octets()} }

// SupiKey is the key of all sessions of a subscriber.
func SupiKey(s tgpp.Supi) Key { return Key{Kind: KeySupi, Supi: s} }
