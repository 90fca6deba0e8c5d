package rx

import (
	"encoding/binary"
	"net/netip"
)

// SubscriptionKind is the Subscription-Id-Type (RFC 8506 §8.47).
type SubscriptionKind uint32

// The kinds of Subscription-Id that name a subscriber of 5G.
const (
	SubscriptionE164 SubscriptionKind = 0
	SubscriptionIMSI SubscriptionKind = 1
	SubscriptionNAI  SubscriptionKind = 3
)

// Subscription is a Subscription-Id.
type Subscription struct {
	Kind SubscriptionKind
	Data []byte
}

// Key is what an AAR says about the UE: the address and what refines it. The
// slices refer to the message.
type Key struct {
	Ipv4 netip.Addr
	Ipv6 netip.Prefix
	// IPDomain and DNN are empty when absent.
	IPDomain, DNN []byte
	// IMSI, NAI and E164 are the Subscription-Ids, empty when absent.
	IMSI, NAI, E164 []byte
	// Bare is set when the Framed-IPv6-Prefix is an address without reserved
	// octet and length, Bits when it has bits beyond its length.
	Bare, Bits bool
}

// Key reads it. The error is a *Error: an address of the wrong size or a
// prefix that is none. A message without any address is no error.
func (v *View) Key() (k Key, err error) {
	if v.FramedIPAddress.Present() {
		if len(v.FramedIPAddress.Data) != 4 {
			return k, invalid(InvalidAVPLength, v.at(v.FramedIPAddress), "Framed-IP-Address: %d octets, not 4", len(v.FramedIPAddress.Data))
		}
		k.Ipv4 = netip.AddrFrom4([4]byte(v.FramedIPAddress.Data))
	}
	if v.FramedIPv6Prefix.Present() {
		if err = v.ipv6Prefix(&k); err != nil {
			return k, err
		}
	}
	k.IPDomain, k.DNN = v.IPDomainID.Data, v.CalledStationID.Data
	if v.subscription {
		return k, v.subscriptions(&k)
	}
	return k, nil
}

// at is the AVP of a field.
func (v *View) at(f Field) *AVP {
	// Scan has read it before.
	a, _, _ := Next(v.Raw, f.At)
	return &a
}

// Invalid is the error for a field whose value is against the letter.
func (v *View) Invalid(f Field, text string) error {
	return invalid(InvalidAVPValue, v.at(f), "%s", text)
}

// ipv6Prefix reads a Framed-IPv6-Prefix (RFC 3162 §2.3): a reserved octet, the
// length in bits, and the octets of the prefix, those that are 0 at the end
// may be absent. Sixteen octets that do not begin with the reserved octet, 0,
// are an address.
func (v *View) ipv6Prefix(k *Key) error {
	d := v.FramedIPv6Prefix.Data
	if len(d) < 2 || len(d) > 18 {
		return invalid(InvalidAVPLength, v.at(v.FramedIPv6Prefix), "Framed-IPv6-Prefix: %d octets, not 2 to 18", len(d))
	}
	if len(d) == 16 && d[0] != 0 {
		k.Bare, k.Ipv6 = true, netip.PrefixFrom(netip.AddrFrom16([16]byte(d)), 128)
		return nil
	}
	bits := int(d[1])
	if bits > 128 {
		return invalid(InvalidAVPValue, v.at(v.FramedIPv6Prefix), "Framed-IPv6-Prefix: a length of %d bits", bits)
	}
	if need := (bits + 7) / 8; len(d)-2 < need {
		return invalid(InvalidAVPLength, v.at(v.FramedIPv6Prefix), "Framed-IPv6-Prefix: %d octets for %d bits", len(d)-2, bits)
	}
	var octets [16]byte
	copy(octets[:], d[2:])
	p := netip.PrefixFrom(netip.AddrFrom16(octets), bits)
	k.Ipv6 = p.Masked()
	k.Bits = p != k.Ipv6
	return nil
}

// subscriptions reads the Subscription-Ids. The first of a kind counts.
func (v *View) subscriptions(k *Key) error {
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			return err
		}
		if a.is(SubscriptionID, 0) {
			s, err := subscription(&a)
			if err != nil {
				return err
			}
			k.take(s)
		}
		off = next
	}
	return nil
}

func (k *Key) take(s Subscription) {
	for _, x := range []struct {
		kind SubscriptionKind
		to   *[]byte
	}{{SubscriptionIMSI, &k.IMSI}, {SubscriptionNAI, &k.NAI}, {SubscriptionE164, &k.E164}} {
		if s.Kind == x.kind && *x.to == nil {
			*x.to = s.Data
		}
	}
}

func subscription(group *AVP) (s Subscription, err error) {
	const noKind = SubscriptionKind(0xffffffff)
	s.Kind = noKind
	for off := 0; off < len(group.Data); {
		a, next, err := Next(group.Data, off)
		if err != nil {
			return s, err
		}
		switch {
		case a.is(SubscriptionIDType, 0) && len(a.Data) == 4:
			s.Kind = SubscriptionKind(binary.BigEndian.Uint32(a.Data))
		case a.is(SubscriptionIDType, 0):
			return s, invalid(InvalidAVPLength, &a, "Subscription-Id-Type: %d octets, not 4", len(a.Data))
		case a.is(SubscriptionIDData, 0):
			s.Data = a.Data
		}
		off = next
	}
	return s, nil
}
