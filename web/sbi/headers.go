package sbi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"bsfd/internal/admission"
	"bsfd/internal/tgpp"
)

// Names of header fields as net/http spells them.
const (
	HeaderOrigination  = "3gpp-Sbi-Origination-Timestamp"
	HeaderSender       = "3gpp-Sbi-Sender-Timestamp"
	HeaderCustomSender = "Custom-Sbi-Sender-Timestamp"
	HeaderMaxRspTime   = "3gpp-Sbi-Max-Rsp-Time"
	HeaderBinding      = "3gpp-Sbi-Binding"
	HeaderCallback     = "3gpp-Sbi-Callback"
	// HeaderMessagePriority and HeaderOCPriority are the priorities of a
	// message, 0 (highest) to 31.
	HeaderMessagePriority = "3gpp-Sbi-Message-Priority"
	HeaderOCPriority      = "Oc-Message-Priority"
	HeaderRevalidation    = "X-Oc-Binding-Revalidation"
	HeaderCookie          = "Ocnf-Service-Cookie"
)

// Timestamp reads a timestamp header (TS 29.500 §5.2.3.2.9). An absent or
// malformed value is the zero time: optional headers never fail a request.
func Timestamp(h http.Header, field string) time.Time {
	v := h[field]
	if len(v) != 1 {
		return time.Time{}
	}
	t, err := tgpp.ParseTimestamp(v[0])
	if err != nil {
		return time.Time{}
	}
	return t
}

// MaxRspTime reads 3gpp-Sbi-Max-Rsp-Time (TS 29.500 §5.2.3.2.10): one to five
// digits, milliseconds. ok is false when it is absent or anything else, a
// negative number included.
func MaxRspTime(h http.Header) (d time.Duration, ok bool) {
	v := h[HeaderMaxRspTime]
	if len(v) != 1 {
		return 0, false
	}
	s := strings.Trim(v[0], " \t")
	if len(s) < 1 || len(s) > 5 || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return time.Duration(n) * time.Millisecond, err == nil
}

// Deadline is when the consumer stops waiting (TS 29.500 §6.11.2): the time at
// which it, or the originator, sent the request, plus its Max-Rsp-Time. ok is
// false when the request does not say.
func Deadline(h http.Header) (at time.Time, ok bool) {
	wait, ok := MaxRspTime(h)
	if !ok {
		return time.Time{}, false
	}
	sent := Timestamp(h, HeaderOrigination)
	if sent.IsZero() {
		sent = Timestamp(h, HeaderSender)
	}
	return sent.Add(wait), !sent.IsZero()
}

// Priority reads a message priority (TS 29.500 §5.2.3.2.2): 0 to 31 without a
// leading zero. Anything else is admission.Absent: it never fails a request.
func Priority(h http.Header, field string) int {
	v := h[field]
	if len(v) != 1 {
		return admission.Absent
	}
	s := strings.Trim(v[0], " \t")
	if len(s) < 1 || len(s) > 2 || len(s) == 2 && s[0] == '0' || s[0] < '0' || s[0] > '9' {
		return admission.Absent
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 31 {
		return admission.Absent
	}
	return n
}

// deadlineContext carries the deadline of the consumer without a timer: work
// that waits in a queue looks at it before it begins.
type deadlineContext struct {
	context.Context
	at time.Time
}

// Deadline implements context.Context.
func (c deadlineContext) Deadline() (time.Time, bool) { return c.at, true }

// WithDeadline returns a context that knows until when the consumer waits. It
// does not end then: work that waits in a queue looks at its Deadline before
// it begins.
func WithDeadline(ctx context.Context, at time.Time) context.Context {
	return deadlineContext{ctx, at}
}
