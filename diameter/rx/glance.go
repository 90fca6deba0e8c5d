package rx

import "encoding/binary"

// Brief is what a decision on a request needs to know.
type Brief struct {
	// The values of AVPs, nil when they are not there.
	SessionID, DRMP, RxRequestType, DestinationHost, CalledStationID []byte
	// Urgent is set for emergency calls and priority services.
	Urgent bool
}

// Brief is the brief of a request. What it refers to is the message.
func (v *View) Brief() Brief {
	return Brief{v.SessionID.Data, v.DRMP.Data, v.RxRequestType.Data, v.DestinationHost.Data, v.CalledStationID.Data, v.Urgent()}
}

// Glance is a brief of a request and nothing else. It is for requests that come
// when there is no time to read them.
type Glance struct {
	Header
	Brief
	Raw []byte
	// Plain is set when Session-Id is the first AVP (RFC 6733 §8.8), there is no
	// Proxy-Info and no OC-Supported-Features: then Refuse answers it.
	Plain bool
}

// Glance looks at a request; ok is false for one that is not well formed, as
// far as this looks. What it refers to is the message.
func (g *Glance) Glance(h Header, raw []byte) (ok bool) {
	*g = Glance{Header: h, Raw: raw, Plain: true}
	for off := HeaderLen; off < len(raw); {
		rest := raw[off:]
		if len(rest) < 8 {
			return false
		}
		code, word := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		length, head := int(word&0xffffff), 8+int(word>>31)*4
		if length < head || length > len(rest) {
			return false
		}
		if head == 8 {
			g.base(Code(code), rest[8:length], off == HeaderLen)
		} else {
			g.vendor(Code(code), binary.BigEndian.Uint32(rest[8:]), rest[12:length])
		}
		off += (length + 3) &^ 3
	}
	g.Plain = g.Plain && g.SessionID != nil
	return true
}

// base notes an AVP without a vendor.
func (g *Glance) base(code Code, data []byte, first bool) {
	switch code {
	case SessionID:
		g.SessionID, g.Plain = data, g.Plain && first
	case DRMP:
		g.DRMP = data
	case DestinationHost:
		g.DestinationHost = data
	case CalledStationID:
		g.CalledStationID = data
	case ProxyInfo, OCSupportedFeatures:
		g.Plain = false
	}
}

// vendor notes an AVP of a vendor.
func (g *Glance) vendor(code Code, vendor uint32, data []byte) {
	switch {
	case vendor == VendorETSI && code == ReservationPriority:
		n, ok := (&AVP{Data: data}).Uint32()
		g.Urgent = g.Urgent || ok && n > 0
	case vendor != Vendor3GPP:
	case code == RxRequestType:
		g.RxRequestType = data
	case code == ServiceURN:
		g.Urgent = g.Urgent || isSOS(data)
	case code == MPSIdentifier:
		g.Urgent = g.Urgent || len(data) > 0
	}
}

// Refusal is the part of an answer that all requests which are refused for one
// reason have in common.
type Refusal struct {
	flags uint8
	tail  []byte
}

// NewRefusal prepares answers of the origin with a result and a text. ok is
// false for a result whose answers have the form of their command.
func NewRefusal(o Origin, r Result, text string) (f Refusal, ok bool) {
	if !r.Protocol() {
		return f, false
	}
	f.flags = FlagError
	f.tail = appendAVP(f.tail, OriginHost, AVPMandatory, 0, o.Host)
	f.tail = appendAVP(f.tail, OriginRealm, AVPMandatory, 0, o.Realm)
	f.tail = r.append(f.tail)
	if o.StateID != 0 {
		f.tail = appendUint32(f.tail, OriginStateID, AVPMandatory, 0, o.StateID)
	}
	if text != "" {
		f.tail = appendAVP(f.tail, ErrorMessage, 0, 0, text)
	}
	return f, true
}

// Refuse appends the answer to a request that is plain; it is the one that
// AppendAnswer makes.
func (g *Glance) Refuse(dst []byte, f *Refusal) []byte {
	start := len(dst)
	h := g.Header
	h.Flags = h.Flags&FlagProxiable | f.flags
	dst = appendHeader(dst, h)
	dst = append(dst, g.Raw[HeaderLen:HeaderLen+(8+len(g.SessionID)+3)&^3]...)
	return finish(append(dst, f.tail...), start)
}
