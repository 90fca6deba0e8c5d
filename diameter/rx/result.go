package rx

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// Result is the outcome in an answer: a Result-Code, or an Experimental-Result
// when Vendor is not 0 (RFC 6733 §7.1, §7.6).
type Result struct {
	Code   uint32
	Vendor uint32
}

// The results of the base protocol (RFC 6733 §7.1).
const (
	Success                = 2001
	LimitedSuccess         = 2002
	CommandUnsupported     = 3001
	UnableToDeliver        = 3002
	RealmNotServed         = 3003
	TooBusy                = 3004
	LoopDetected           = 3005
	RedirectIndication     = 3006
	ApplicationUnsupported = 3007
	InvalidHdrBits         = 3008
	InvalidAVPBits         = 3009
	UnknownPeer            = 3010
	ElectionLost           = 4003
	UnknownSessionID       = 5002
	InvalidAVPValue        = 5004
	MissingAVP             = 5005
	AVPOccursTooManyTimes  = 5009
	NoCommonApplication    = 5010
	UnsupportedVersion     = 5011
	UnableToComply         = 5012
	InvalidBitInHeader     = 5013
	InvalidAVPLength       = 5014
	InvalidMessageLength   = 5015
	NoCommonSecurity       = 5017
)

// IPCANSessionNotAvailable is the Experimental-Result-Code of Rx for a UE
// address that no session has (TS 29.214 §5.5).
const IPCANSessionNotAvailable = 5065

// Base is a Result-Code.
func Base(code uint32) Result { return Result{Code: code} }

// Protocol reports whether the result is a protocol error, whose answer has
// the E bit and the generic form (RFC 6733 §7.2).
func (r Result) Protocol() bool { return r.Vendor == 0 && r.Code/1000 == 3 }

// Success reports whether the request was carried out.
func (r Result) Success() bool { return r.Code/1000 == 2 }

// String is the code, with the vendor in front of an Experimental-Result.
func (r Result) String() string {
	code := strconv.FormatUint(uint64(r.Code), 10)
	if r.Vendor == 0 {
		return code
	}
	return strconv.FormatUint(uint64(r.Vendor), 10) + ":" + code
}

// append writes the Result-Code or the Experimental-Result.
func (r Result) append(dst []byte) []byte {
	if r.Vendor == 0 {
		return appendUint32(dst, ResultCode, AVPMandatory, 0, r.Code)
	}
	var group [24]byte
	g := appendUint32(group[:0], VendorID, AVPMandatory, 0, r.Vendor)
	return appendAVP(dst, ExperimentalResult, AVPMandatory, 0, appendUint32(g, ExperimentalResultCode, AVPMandatory, 0, r.Code))
}

// Error is what is wrong with a message and how it is answered.
type Error struct {
	Result Result
	// Failed is the content of the Failed-AVP: an AVP with padding, or nil.
	Failed []byte
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Result.Code) }

func fail(code uint32, failed []byte, format string, args ...any) *Error {
	return &Error{Base(code), failed, fmt.Sprintf(format, args...)}
}

// lengthError is about an AVP whose length is wrong: the Failed-AVP holds its
// header, made right for no more data than the header needs (RFC 6733 §7.1.5).
func lengthError(rest []byte) *Error {
	var head [12]byte
	n := copy(head[:], rest)
	size := 8
	if n > 4 && head[4]&AVPVendor != 0 {
		size = 12
	}
	binary.BigEndian.PutUint32(head[4:], uint32(head[4])<<24|uint32(size))
	return fail(InvalidAVPLength, append([]byte(nil), head[:size]...), "AVP %d: wrong length", binary.BigEndian.Uint32(head[:]))
}

// invalid is about an AVP that is there but cannot be accepted.
func invalid(code uint32, a *AVP, format string, args ...any) *Error {
	failed := append([]byte(nil), a.Raw...)
	return fail(code, append(failed, padding[:-len(failed)&3]...), format, args...)
}

// missing is about an AVP that is not there: the Failed-AVP holds one with as
// many zero octets as its type needs.
func missing(code Code, vendor uint32, size int, name string) *Error {
	return fail(MissingAVP, appendAVP(nil, code, AVPMandatory, vendor, make([]byte, size)), "%s: missing", name)
}
