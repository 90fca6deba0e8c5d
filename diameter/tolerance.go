package diameter

import (
	"errors"

	"bsfd/diameter/rx"
	"bsfd/internal/tolerate"
)

// The rows of Tolerances.
const (
	tolHostIPAddress = iota
	tolBarePrefix
	tolPrefixBits
	tolSubscriptionText
	tolAnswerApplication
	tolRepeatedAVP
)

// Tolerances is what the gateway serves although RFC 6733, RFC 3162 or TS
// 29.214 has it otherwise. docs/interoperability.md holds the same table.
var Tolerances = tolerate.Table{
	tolHostIPAddress: {
		Name:    "hostIPAddress",
		Accepts: "a CER without Host-IP-Address",
		Keeps:   "the connection opens",
		Seen:    "Kamailio (cdp) whose socket was not ready yet",
	},
	tolBarePrefix: {
		Name:    "barePrefix",
		Accepts: "a Framed-IPv6-Prefix of 16 octets that is an address, without the reserved octet and the length",
		Keeps:   "the lookup is for that address; the AVP is passed on as it came",
		Seen:    "AFs that write the address of the UE",
	},
	tolPrefixBits: {
		Name:    "prefixBits",
		Accepts: "a Framed-IPv6-Prefix with bits set beyond its length",
		Keeps:   "the bits do not count; the AVP is passed on as it came",
		Seen:    "AFs that write the address of the UE with 64 bits",
	},
	tolSubscriptionText: {
		Name:    "subscriptionText",
		Accepts: "Subscription-Id-Data with a prefix of its type (`imsi-`, `msisdn-`, `nai-`, `tel:`) or with `+`",
		Keeps:   "the lookup is without it; the AVP is passed on as it came",
		Seen:    "AFs that keep identifiers as SUPI, GPSI or URI",
	},
	tolAnswerApplication: {
		Name:    "answerApplication",
		Accepts: "an answer with another Application-Id in its header than the request had",
		Keeps:   "it is passed on with the Application-Id of the request",
		Seen:    "Kamailio (cdp): ASA with 0",
	},
	tolRepeatedAVP: {
		Name:    "repeatedAVP",
		Accepts: "an AVP that may occur once and occurs again with the same value",
		Keeps:   "it is passed on once",
		Seen:    "Kamailio (cdp): Destination-Realm in the STR after an ASR",
	},
}

// scan reads a message into the turn's view, without what it says twice.
func (c *conn) scan(t *turn, m []byte) error {
	err := t.view.Scan(m)
	if err == nil {
		return nil
	}
	if fault := (*rx.Error)(nil); !errors.As(err, &fault) || fault.Result != rx.Base(rx.AVPOccursTooManyTimes) || !c.g.allowed.Has(tolerate.Of(tolRepeatedAVP)) {
		return err
	}
	if t.view.Scan(rx.WithoutRepeats(m)) != nil {
		return err
	}
	c.g.tolerates(c.host(), tolRepeatedAVP)
	return nil
}

// tolerates notes that a peer made use of a tolerance, and reports whether it
// is allowed.
func (g *Gateway) tolerates(peer string, row int) bool {
	used := tolerate.Of(row)
	if !g.allowed.Has(used) {
		return false
	}
	g.tolerated.Note(peer, used)
	return true
}

// checkKey refuses what is read of an AAR with a tolerance that is not allowed.
func (c *conn) checkKey(v *rx.View, k *rx.Key) error {
	for _, x := range [...]struct {
		is  bool
		row int
		f   rx.Field
	}{
		{k.Bare, tolBarePrefix, v.FramedIPv6Prefix},
		{k.Bits, tolPrefixBits, v.FramedIPv6Prefix},
	} {
		if x.is && !c.g.tolerates(c.host(), x.row) {
			return v.Invalid(x.f, "Framed-IPv6-Prefix: not as in RFC 3162")
		}
	}
	return nil
}
