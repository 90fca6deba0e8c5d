package sbi

import (
	"context"
	"net"
	"net/http"
	"time"

	"bsfd/internal/admission"
)

// Admitter decides which requests are served.
type Admitter interface {
	// AdmitHTTP decides on a request before its body is read: nil serves it.
	// What the consumer is to be told goes into the header of the answer.
	AdmitHTTP(r *admission.Request, answer http.Header) *admission.Refusal
	// Pressed reports whether more comes than can be served, so that those whose
	// requests are refused are to be read the slower.
	Pressed() bool
	// Failed notes the status of an answer that is an error and no refusal.
	Failed(status int)
}

// congested is the condition of requests that are refused for the load. What
// it answers is decided with each refusal.
var congested = &Condition{Name: "congested", Status: 503, Cause: "NF_CONGESTION", Title: "Congestion", ErrorID: 125}

// refused is the problem of a refusal.
func refused(r *admission.Refusal) *Problem {
	c := *congested
	c.Status, c.Cause, c.Title = r.Status, r.Cause, r.Title
	p := Fail(&c, r.Detail)
	if r.RetryAfter > 0 {
		return p.With("Retry-After", RetryAfter(r.RetryAfter))
	}
	return p
}

// Refuse answers a request that is refused. When that is for pressure, it notes
// the refusal for the connection, which is read the slower the more of its
// requests are refused.
func (e *Errors) Refuse(w http.ResponseWriter, r *http.Request, refusal *admission.Refusal, pressed bool) (status int, cause string) {
	if c, ok := r.Context().Value(connKey{}).(*guardedConn); ok && pressed {
		c.refused.Add(1)
		c.guard.refusal.Store(time.Now().UnixNano())
	}
	return e.Write(w, r, refused(refusal))
}

// PeerOf is who sent a request, for what it has been told: all requests of a
// connection are from one peer. It is nil where there is no connection.
func PeerOf(ctx context.Context) *admission.Peer {
	if c, ok := ctx.Value(connKey{}).(*guardedConn); ok {
		return &c.peer
	}
	return nil
}

// PeerName is what the sender of a request calls itself in User-Agent, or its
// address.
func PeerName(r *http.Request) string {
	if name := agent(r); name != "" {
		return name
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
