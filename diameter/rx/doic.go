package rx

import (
	"encoding/binary"
	"time"
)

// ReportType says what an overload report is about (RFC 7683 §7.6).
type ReportType uint32

// The report types.
const (
	ReportHost  ReportType = 0 // requests with the Destination-Host
	ReportRealm ReportType = 1 // requests of the realm without one
)

// featureLoss is the loss algorithm, the only one (RFC 7683 §7.2).
const featureLoss = 1

// OLR is an overload report (RFC 7683 §7.3).
type OLR struct {
	Sequence uint64
	Type     ReportType
	// Reduction is in percent. One above 100 is none that counts.
	Reduction uint32
	Validity  time.Duration
}

// Bounds of OC-Validity-Duration (RFC 7683 §7.5).
const (
	defaultValidity = 30 * time.Second
	maxValidity     = 86400 * time.Second
)

// ParseOLR reads the data of an OC-OLR; ok is false when a part that it needs
// is missing or has the wrong size.
func ParseOLR(b []byte) (r OLR, ok bool) {
	r.Validity = defaultValidity
	var sequence, reduction bool
	for off := 0; off < len(b); {
		a, next, err := Next(b, off)
		if err != nil {
			return r, false
		}
		n, fits := a.Uint32()
		switch {
		case a.is(OCSequenceNumber, 0) && len(a.Data) == 8:
			r.Sequence, sequence = binary.BigEndian.Uint64(a.Data), true
		case a.is(OCReportType, 0) && fits:
			r.Type = ReportType(n)
		case a.is(OCReductionPercentage, 0) && fits:
			r.Reduction, reduction = n, true
		case a.is(OCValidityDuration, 0) && fits:
			if r.Validity = time.Duration(n) * time.Second; r.Validity > maxValidity {
				r.Validity = defaultValidity
			}
		}
		off = next
	}
	return r, sequence && reduction && r.Type <= ReportRealm
}

// AppendSupported appends OC-Supported-Features with the loss algorithm.
func AppendSupported(dst []byte) []byte {
	var group [16]byte
	return appendAVP(dst, OCSupportedFeatures, 0, 0, appendUint64(group[:0], OCFeatureVector, featureLoss))
}

// AppendOLR appends OC-OLR.
func AppendOLR(dst []byte, r *OLR) []byte {
	var group [64]byte
	g := appendUint64(group[:0], OCSequenceNumber, r.Sequence)
	g = appendUint32(g, OCReportType, 0, 0, uint32(r.Type))
	g = appendUint32(g, OCReductionPercentage, 0, 0, r.Reduction)
	g = appendUint32(g, OCValidityDuration, 0, 0, uint32(r.Validity/time.Second))
	return appendAVP(dst, OCOLR, 0, 0, g)
}

func appendUint64(dst []byte, code Code, v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return appendAVP(dst, code, 0, 0, b[:])
}

// LoadType says whose load a report tells (RFC 8583 §7.2).
type LoadType uint32

// The load types.
const (
	LoadHost LoadType = 0
	LoadPeer LoadType = 1
)

// Load is a load report (RFC 8583 §7.1).
type Load struct {
	Type LoadType
	// Value is 0 to 65535, the higher the less loaded.
	Value    uint16
	SourceID []byte
}

// ParseLoad reads the data of a Load; ok is false when a part is missing or
// has the wrong size.
func ParseLoad(b []byte) (l Load, ok bool) {
	var kind, value bool
	for off := 0; off < len(b); {
		a, next, err := Next(b, off)
		if err != nil {
			return l, false
		}
		n, fits := a.Uint32()
		switch {
		case a.is(LoadTypeCode, 0) && fits && n <= uint32(LoadPeer):
			l.Type, kind = LoadType(n), true
		case a.is(LoadValue, 0) && len(a.Data) == 8:
			v := binary.BigEndian.Uint64(a.Data)
			l.Value, value = uint16(v), v <= 65535
		case a.is(SourceID, 0):
			l.SourceID = a.Data
		}
		off = next
	}
	return l, kind && value && len(l.SourceID) > 0
}

// AppendLoad appends Load.
func AppendLoad(dst []byte, kind LoadType, value uint16, source string) []byte {
	var group [320]byte
	g := appendUint32(group[:0], LoadTypeCode, 0, 0, uint32(kind))
	g = appendUint64(g, LoadValue, uint64(value))
	return appendAVP(dst, LoadCode, 0, 0, appendAVP(g, SourceID, 0, 0, source))
}

// AppendWithout appends the message without the AVPs for which drop is true,
// with extra AVPs at its end.
func AppendWithout(dst []byte, v *View, drop func(*AVP) bool, extra []byte) []byte {
	start := len(dst)
	dst = append(dst, v.Raw[:HeaderLen]...)
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			// Scan has read it before.
			break
		}
		if !drop(&a) {
			dst = append(dst, v.Raw[off:next]...)
		}
		off = next
	}
	return finish(append(dst, extra...), start)
}

// Find is the data of the first AVP with the code and vendor, nil for none.
func (v *View) Find(code Code, vendor uint32) []byte {
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			return nil
		}
		if a.is(code, vendor) {
			return a.Data
		}
		off = next
	}
	return nil
}

// Urgent reports whether a request belongs to an emergency call or to a
// priority service: a Service-URN of sos, an MPS-Identifier, or a Reservation-
// Priority other than DEFAULT (TS 29.214 §4.4.6.1, §5.3).
func (v *View) Urgent() bool {
	if v.ServiceURN.Present() && isSOS(v.ServiceURN.Data) || len(v.MPSIdentifier.Data) > 0 {
		return true
	}
	n, ok := (&AVP{Data: v.ReservationPriority.Data}).Uint32()
	return ok && n > 0
}

// isSOS reports whether a service URN is that of emergency calls (RFC 5031
// §4.2), with or without its prefix.
func isSOS(b []byte) bool {
	const prefix = "urn:service:"
	if len(b) > len(prefix) && EqualIdentity(b[:len(prefix)], prefix) {
		b = b[len(prefix):]
	}
	return len(b) >= 3 && EqualIdentity(b[:3], "sos") && (len(b) == 3 || b[3] == '.')
}
