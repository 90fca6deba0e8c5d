// Package admission is the language between those who receive requests and
// the one who decides whether they are served: what is known of a request
// before any of its content is read, and the answer for one that is refused.
package admission

import (
	"sync/atomic"
	"time"
)

// Absent is a number that a request does not have.
const Absent = -1

// Request is what a decision needs to know.
type Request struct {
	// Message is the kind of request: the name of the operation on the
	// service-based interface, such as "register", or the abbreviation of the
	// command on Diameter, such as "AAR".
	Message string
	// Method is the HTTP method; empty on Diameter.
	Method string
	// Application is the Diameter application, 0 on HTTP.
	Application uint32
	// RequestType is the Rx-Request-Type (TS 29.214 §5.3.32), or Absent.
	RequestType int
	// OCPriority is oc-message-priority, 0 (highest) to 31, or Absent.
	OCPriority int
	// SBIPriority is 3gpp-Sbi-Message-Priority (TS 29.500 §5.2.3.2.2), 0
	// (highest) to 31, or Absent.
	SBIPriority int
	// DRMP is the DRMP of RFC 7944, 0 (highest) to 15, or Absent.
	DRMP int
	// Begins is set for a request that begins a session; Ends for one that
	// ends it.
	Begins, Ends bool
	// Urgent is set for emergency calls and priority services: a Service-URN
	// of "sos", an MPS-Identifier, or a Reservation-Priority above the default
	// (TS 29.214 §4.4.6, TS 29.213).
	Urgent bool
	// DNN is the data network name, as far as it is known without reading the
	// content; empty otherwise.
	DNN string
	// Priority is what the decision found, 0 (highest) to 31. It stays as it was
	// when the decision did not look.
	Priority int
	// Peer is who sent it, nil when nothing is to be told to it.
	Peer *Peer
}

// Refusal is the answer for a request that is not served.
type Refusal struct {
	// Status, Cause and Title are those of ProblemDetails (TS 29.571
	// §5.2.4.1); Status is 400 to 599.
	Status int
	Cause  string
	Title  string
	// Detail tells people why.
	Detail string
	// RetryAfter is when the consumer may try again, 0 for no such field.
	RetryAfter time.Duration
	// Result is a Result-Code, or an Experimental-Result-Code of Vendor when
	// that is not 0.
	Result, Vendor uint32
}

// Peer is what was last told to a consumer, kept with its connection. The zero
// Peer has been told nothing.
type Peer struct {
	Load, Overload Told
}

// Told is one value as it was last told to a peer. Two that race for one peer
// may both tell it, which does no harm.
type Told struct {
	at    atomic.Int64 // nanoseconds since 1970, 0 for never
	value atomic.Int64
}

// Last is when which value was told; a zero time says never.
func (t *Told) Last() (at time.Time, value int64) {
	n := t.at.Load()
	if n == 0 {
		return time.Time{}, 0
	}
	return time.Unix(0, n), t.value.Load()
}

// Note notes that the value is told now.
func (t *Told) Note(at time.Time, value int64) {
	t.value.Store(value)
	t.at.Store(at.UnixNano())
}

// Overload is an overload report: the part of the requests that is to stay
// away (RFC 7683 §7.3).
type Overload struct {
	// Sequence grows with every change.
	Sequence uint64
	// Reduction is in percent, 0 to 100; 0 ends the overload.
	Reduction int
	Validity  time.Duration
}

// Report is what a Diameter peer is told in an answer.
type Report struct {
	// Load is a Load-Value, 0 to 65535 and the higher the less loaded (RFC
	// 8583 §7.3), or Absent.
	Load int
	// Overload is nil for no report.
	Overload *Overload
}

// Backlog tells whether a connection is read as fast as it is written to. A
// read that fills its buffer leaves something behind; one that does not has
// read all there was. The zero Backlog is that of a connection that is read
// empty. One goroutine notes reads; any may ask.
type Backlog struct {
	// since is when the first of the reads in a row filled its buffer, last
	// when the last one did; nanoseconds since 1970, since is 0 for none.
	since, last atomic.Int64
}

// pause is how long after a read that filled its buffer the next one must have
// come back: when it waits, there is nothing to read.
const pause = 200 * time.Millisecond

// Read notes that n octets were read into a buffer of a size.
func (b *Backlog) Read(n, size int) {
	first := b.since.Load() == 0
	if n < size {
		if !first {
			b.since.Store(0)
		}
		return
	}
	now := time.Now().UnixNano()
	if first || now-b.last.Load() > int64(pause) {
		b.since.Store(now)
	}
	b.last.Store(now)
}

// Since is for how long every read has filled its buffer.
func (b *Backlog) Since(now time.Time) time.Duration {
	at := b.since.Load()
	if at == 0 || now.UnixNano()-b.last.Load() > int64(pause) {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, at)))
}
