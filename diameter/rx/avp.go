package rx

import "encoding/binary"

// Code is an AVP code.
type Code uint32

// The AVPs that this package reads or writes (RFC 6733 §4.5, TS 29.214 §5.3).
// Those of 3GPP are marked; the others have vendor 0.
const (
	FramedIPAddress             Code = 8
	CalledStationID             Code = 30
	ProxyState                  Code = 33
	FramedIPv6Prefix            Code = 97
	HostIPAddress               Code = 257
	AuthApplicationID           Code = 258
	AcctApplicationID           Code = 259
	VendorSpecificApplicationID Code = 260
	RedirectHostUsage           Code = 261
	RedirectMaxCacheTime        Code = 262
	SessionID                   Code = 263
	OriginHost                  Code = 264
	SupportedVendorID           Code = 265
	VendorID                    Code = 266
	FirmwareRevision            Code = 267
	ResultCode                  Code = 268
	ProductName                 Code = 269
	DisconnectCause             Code = 273
	OriginStateID               Code = 278
	FailedAVP                   Code = 279
	ProxyHost                   Code = 280
	ErrorMessage                Code = 281
	RouteRecord                 Code = 282
	DestinationRealm            Code = 283
	ProxyInfo                   Code = 284
	RedirectHost                Code = 292
	DestinationHost             Code = 293
	TerminationCause            Code = 295
	OriginRealm                 Code = 296
	ExperimentalResult          Code = 297
	ExperimentalResultCode      Code = 298
	InbandSecurityID            Code = 299
	DRMP                        Code = 301
	SubscriptionID              Code = 443
	SubscriptionIDData          Code = 444
	SubscriptionIDType          Code = 450
	ReservationPriority         Code = 458 // ETSI
	AbortCause                  Code = 500 // 3GPP
	SpecificAction              Code = 513 // 3GPP
	ServiceURN                  Code = 525 // 3GPP
	MPSIdentifier               Code = 528 // 3GPP
	RxRequestType               Code = 533 // 3GPP
	IPDomainID                  Code = 537 // 3GPP
	OCSupportedFeatures         Code = 621
	OCFeatureVector             Code = 622
	OCOLR                       Code = 623
	OCSequenceNumber            Code = 624
	OCValidityDuration          Code = 625
	OCReportType                Code = 626
	OCReductionPercentage       Code = 627
	SourceID                    Code = 649
	LoadCode                    Code = 650
	LoadTypeCode                Code = 651
	LoadValue                   Code = 652
)

// The flags of an AVP (RFC 6733 §4.1).
const (
	AVPVendor    = 0x80 // V
	AVPMandatory = 0x40 // M
	avpReserved  = 0x1f
)

// AVP is one attribute of a message.
type AVP struct {
	Code   Code
	Vendor uint32
	Flags  uint8
	// Raw is the AVP from its header to the end of its data, without padding.
	Raw []byte
	// Data is its value.
	Data []byte
}

// is reports whether the AVP has the code and vendor.
func (a *AVP) is(code Code, vendor uint32) bool { return a.Code == code && a.Vendor == vendor }

// Uint32 is the value of an AVP of type Unsigned32, Integer32 or Enumerated.
func (a *AVP) Uint32() (uint32, bool) {
	if len(a.Data) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(a.Data), true
}

// Next reads the AVP that begins at off and returns where the next begins. b
// is a whole message or the data of a grouped AVP. The error is a *Error with
// INVALID_AVP_LENGTH.
func Next(b []byte, off int) (AVP, int, error) {
	rest := b[off:]
	if len(rest) < 8 {
		return AVP{}, 0, lengthError(rest)
	}
	length := int(binary.BigEndian.Uint32(rest[4:]) & 0xffffff)
	a := AVP{Code: Code(binary.BigEndian.Uint32(rest)), Flags: rest[4]}
	head := 8
	if a.Flags&AVPVendor != 0 {
		head = 12
	}
	if length < head || length > len(rest) {
		return AVP{}, 0, lengthError(rest)
	}
	if head == 12 {
		a.Vendor = binary.BigEndian.Uint32(rest[8:])
	}
	a.Raw, a.Data = rest[:length], rest[head:length]
	return a, off + min((length+3)&^3, len(rest)), nil
}

// appendAVP appends an AVP with its padding.
func appendAVP[T string | []byte](dst []byte, code Code, flags uint8, vendor uint32, data T) []byte {
	head := 8
	if vendor != 0 {
		flags |= AVPVendor
		head = 12
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	dst = binary.BigEndian.AppendUint32(dst, uint32(flags)<<24|uint32(head+len(data)))
	if vendor != 0 {
		dst = binary.BigEndian.AppendUint32(dst, vendor)
	}
	dst = append(dst, data...)
	return append(dst, padding[:-len(data)&3]...)
}

var padding [3]byte

func appendUint32(dst []byte, code Code, flags uint8, vendor, v uint32) []byte {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return appendAVP(dst, code, flags, vendor, b[:])
}

// Encode returns one AVP with its padding.
func Encode(code Code, flags uint8, vendor uint32, data []byte) []byte {
	return appendAVP(nil, code, flags, vendor, data)
}
