package rx

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// Field is where an AVP stands in a message.
type Field struct {
	// At and End delimit the AVP with its padding; End is 0 when it is absent.
	At, End int
	// Data is its value.
	Data []byte
}

// Present reports whether the message has the AVP.
func (f Field) Present() bool { return f.End != 0 }

// maxHops is how many Route-Records a message may have. One that has passed
// more agents goes round in circles.
const maxHops = 16

// View is a message with the places of the AVPs that routing needs. The zero
// View is empty; Scan fills it. It refers to the message and allocates
// nothing.
type View struct {
	Header
	Raw []byte

	SessionID        Field
	OriginHost       Field
	OriginRealm      Field
	DestinationHost  Field
	DestinationRealm Field
	OriginStateID    Field
	ResultCode       Field
	Experimental     Field
	DRMP             Field
	RxRequestType    Field
	FramedIPAddress  Field
	FramedIPv6Prefix Field
	CalledStationID  Field
	IPDomainID       Field
	// ServiceURN, MPSIdentifier and ReservationPriority tell emergency calls
	// and priority services.
	ServiceURN          Field
	MPSIdentifier       Field
	ReservationPriority Field
	OCSupportedFeatures Field
	// OCOLR and Load are the last of them.
	OCOLR Field
	Load  Field
	// ProxyInfo is the last of them.
	ProxyInfo Field

	subscription bool // there is a Subscription-Id
	hops         int
	routes       [maxHops]span
}

type span struct{ at, end int32 }

// Scan fills the view from a whole message, whose header length is that of
// raw. It checks lengths and flags of the AVPs that it knows and that none of
// them occurs twice; of others it checks the length alone, since an agent
// passes them as they are (RFC 6733 §6.1.8). The error is a *Error; the view
// then has what came before.
func (v *View) Scan(raw []byte) error {
	*v = View{Header: ParseHeader(raw), Raw: raw}
	for off := HeaderLen; off < len(raw); {
		// This is Next by hand: most AVPs are none that it has to keep.
		rest := raw[off:]
		if len(rest) < 8 {
			return lengthError(rest)
		}
		word := binary.BigEndian.Uint32(rest[4:])
		length, head := int(word&0xffffff), 8+int(word>>31)*4
		if length < head || length > len(rest) {
			return lengthError(rest)
		}
		vendor := uint32(VendorIETF)
		if head > 8 {
			vendor = binary.BigEndian.Uint32(rest[8:])
		}
		end := off + min((length+3)&^3, len(rest))
		code := Code(binary.BigEndian.Uint32(rest))
		if f := v.field(code, vendor); f != nil {
			if f.Present() || word>>24&avpReserved != 0 {
				return badField(rest[:length])
			}
			*f = Field{off, end, rest[head:length]}
		} else if vendor == VendorIETF {
			if err := v.noteRepeatable(code, Field{off, end, rest[head:length]}); err != nil {
				return err
			}
		}
		off = end
	}
	return nil
}

// badField is about a known AVP that occurs twice or has reserved flags.
func badField(raw []byte) error {
	a, _, err := Next(raw, 0)
	switch {
	case err != nil:
		return err
	case a.Flags&avpReserved != 0:
		return invalid(InvalidAVPBits, &a, "AVP %d: reserved flags are set", a.Code)
	default:
		return invalid(AVPOccursTooManyTimes, &a, "AVP %d: occurs twice", a.Code)
	}
}

func (v *View) noteRepeatable(code Code, f Field) error {
	switch code {
	case RouteRecord:
		if v.hops == maxHops {
			return fail(LoopDetected, nil, "more than %d Route-Records", maxHops)
		}
		v.routes[v.hops] = span{int32(f.End - len(f.Data) - pad(len(f.Data))), int32(f.End - pad(len(f.Data)))}
		v.hops++
	case ProxyInfo:
		v.ProxyInfo = f
	case SubscriptionID:
		v.subscription = true
	case OCOLR:
		v.OCOLR = f
	case LoadCode:
		v.Load = f
	}
	return nil
}

// pad is how many octets of padding follow n octets of data.
func pad(n int) int { return -n & 3 }

// field is where the place of an AVP is kept that occurs once.
func (v *View) field(code Code, vendor uint32) *Field {
	if vendor == VendorIETF {
		return v.baseField(code)
	}
	switch {
	case vendor == Vendor3GPP:
		switch code {
		case IPDomainID:
			return &v.IPDomainID
		case RxRequestType:
			return &v.RxRequestType
		case ServiceURN:
			return &v.ServiceURN
		case MPSIdentifier:
			return &v.MPSIdentifier
		}
	case vendor == VendorETSI && code == ReservationPriority:
		return &v.ReservationPriority
	}
	return nil
}

func (v *View) baseField(code Code) *Field {
	switch code {
	case SessionID:
		return &v.SessionID
	case OriginHost:
		return &v.OriginHost
	case OriginRealm:
		return &v.OriginRealm
	case DestinationHost:
		return &v.DestinationHost
	case DestinationRealm:
		return &v.DestinationRealm
	case OriginStateID:
		return &v.OriginStateID
	case ResultCode:
		return &v.ResultCode
	case ExperimentalResult:
		return &v.Experimental
	case DRMP:
		return &v.DRMP
	case FramedIPAddress:
		return &v.FramedIPAddress
	case FramedIPv6Prefix:
		return &v.FramedIPv6Prefix
	case CalledStationID:
		return &v.CalledStationID
	case OCSupportedFeatures:
		return &v.OCSupportedFeatures
	}
	return nil
}

// Visited reports whether a Route-Record has the identity (RFC 6733 §6.1.3).
// Identities are compared without regard to case.
func (v *View) Visited(identity string) bool {
	for _, s := range v.routes[:v.hops] {
		if EqualIdentity(v.Raw[s.at:s.end], identity) {
			return true
		}
	}
	return false
}

// EqualIdentity reports whether two DiameterIdentities are the same. They are
// host names: case does not count.
func EqualIdentity[T string | []byte](a T, b string) bool {
	return len(a) == len(b) && (string(a) == b || CompareIdentity(a, b) == 0)
}

// CompareIdentity orders two DiameterIdentities octet by octet, without regard
// to case; a longer one comes after its beginning (RFC 6733 §5.6.4).
func CompareIdentity[T string | []byte](a T, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := lower(a[i]), lower(b[i]); x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// CheckRequest reports the first thing for which a request of Rx cannot be
// routed: header bits that no Rx request has, or an AVP that is missing. The
// error is a *Error.
func (v *View) CheckRequest() error {
	switch {
	case v.Flags&FlagError != 0:
		return fail(InvalidHdrBits, nil, "the E bit is set in a request")
	case v.Flags&FlagProxiable == 0:
		return fail(InvalidHdrBits, nil, "the P bit is not set")
	case !v.SessionID.Present():
		return missing(SessionID, 0, 1, "Session-Id")
	case !v.OriginHost.Present():
		return missing(OriginHost, 0, 1, "Origin-Host")
	case !v.OriginRealm.Present():
		return missing(OriginRealm, 0, 1, "Origin-Realm")
	case !v.DestinationRealm.Present():
		return missing(DestinationRealm, 0, 1, "Destination-Realm")
	case v.Command == ReAuth || v.Command == AbortSession:
		if !v.DestinationHost.Present() {
			return missing(DestinationHost, 0, 1, "Destination-Host")
		}
	}
	return nil
}

// Result is the Result-Code or Experimental-Result of an answer; ok is false
// when it has neither in a form that can be read.
func (v *View) Result() (r Result, ok bool) {
	if v.ResultCode.Present() {
		code, ok := (&AVP{Data: v.ResultCode.Data}).Uint32()
		return Base(code), ok
	}
	b := v.Experimental.Data
	for off := 0; off < len(b); {
		a, next, err := Next(b, off)
		if err != nil {
			return Result{}, false
		}
		n, fits := a.Uint32()
		switch {
		case a.is(VendorID, 0):
			r.Vendor = n
		case a.is(ExperimentalResultCode, 0) && fits:
			r.Code, ok = n, true
		}
		off = next
	}
	return r, ok
}

// OwnProxyInfo is the last Proxy-Info when its Proxy-Host is the identity
// (RFC 6733 §6.2.2).
func (v *View) OwnProxyInfo(identity string) (f Field, ok bool) {
	b := v.ProxyInfo.Data
	for off := 0; off < len(b); {
		a, next, err := Next(b, off)
		if err != nil {
			return Field{}, false
		}
		if a.is(ProxyHost, 0) {
			return v.ProxyInfo, EqualIdentity(a.Data, identity)
		}
		off = next
	}
	return Field{}, false
}

// ForgetProxyInfo hides the last Proxy-Info from AppendAnswer when its
// Proxy-Host is the identity: the one that this node has added itself.
func (v *View) ForgetProxyInfo(identity string) {
	if f, ok := v.OwnProxyInfo(identity); ok {
		v.ProxyInfo.End = f.At
	}
}

// Initial reports whether an AAR begins a session as far as it says so itself:
// it has Rx-Request-Type INITIAL_REQUEST or none (TS 29.214 §5.3.32).
func (v *View) Initial() bool {
	return !v.RxRequestType.Present() || bytes.Equal(v.RxRequestType.Data, []byte{0, 0, 0, 0})
}
