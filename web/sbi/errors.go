package sbi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/refusal"
)

// Errors writes error answers as configured and counts and logs them.
type Errors struct {
	cfg     ErrorConfig
	server  string
	journal Journal
	last    atomic.Pointer[asked]
	in, out prometheus.Counter
}

// Check reports the first wrong setting with its key. known are the conditions
// that may be overridden by name.
func (c ErrorConfig) Check(known []*Condition) error {
	for name, o := range c.Overrides {
		if !slices.ContainsFunc(known, func(k *Condition) bool { return k.Name == name }) {
			return fmt.Errorf("errors.conditions.%s: unknown condition", name)
		}
		if o.Status != 0 && (o.Status < 400 || o.Status > 599) {
			return fmt.Errorf("errors.conditions.%s.status: must be 400 to 599", name)
		}
	}
	for _, code := range c.ServerHeaderCodes {
		if code < 400 || code > 599 {
			return fmt.Errorf("errors.serverHeaderCodes: must be 400 to 599")
		}
	}
	if c.Log.Rate <= 0 || c.Log.MaxBurst < 1 {
		return fmt.Errorf("errors.log: rate and maxBurst must be positive")
	}
	return nil
}

// Journal remembers and logs what is refused; refusal.Journal is one.
type Journal interface {
	Count(k refusal.Key) (wanted bool)
	Note(r *refusal.Refusal, more func(*zerolog.Event))
}

// NewErrors returns an Errors for a checked configuration.
func NewErrors(cfg ErrorConfig, journal Journal, reg prometheus.Registerer) *Errors {
	e := &Errors{
		cfg:     cfg,
		journal: journal,
		server:  "BSF-" + cfg.InstanceID,
		in: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "error_handler_in_total", Help: "Errors given to the error handler.",
		}),
		out: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "error_handler_out_total", Help: "Errors answered by the error handler.",
		}),
	}
	reg.MustRegister(e.in, e.out)
	return e
}

// Write answers a request with a problem and returns the status and the cause
// that the consumer saw.
func (e *Errors) Write(w http.ResponseWriter, r *http.Request, p *Problem) (status int, cause string) {
	e.in.Inc()
	eff := p.Condition.effective(e.cfg.Overrides)
	detail := p.Detail
	if eff.desc != "" {
		detail = eff.desc
	}
	if e.cfg.ApplicationErrorID {
		detail = fmt.Sprintf("%s: BSF_MGMT: %s: EC-BSF-MGMT-%03d-%04d", e.cfg.Fqdn, detail, eff.status, p.Condition.ErrorID)
	}
	h := w.Header()
	for field, values := range p.Header {
		h[field] = values
	}
	h["Content-Type"] = problemType
	if e.cfg.ServerHeader && e.cfg.InstanceID != "" &&
		(len(e.cfg.ServerHeaderCodes) == 0 || slices.Contains(e.cfg.ServerHeaderCodes, eff.status)) {
		h["Server"] = []string{e.server}
	}
	w.WriteHeader(eff.status)
	if r.Method != http.MethodHead {
		// A consumer that went away needs no answer.
		_, _ = w.Write(p.appendJSON(make([]byte, 0, 512), eff, detail, r.URL.Path))
	}
	e.out.Inc()
	e.note(r, p, eff, detail)
	return eff.status, eff.cause
}

// note remembers an error answer and logs it, with the fields that operators of
// the feature expect.
func (e *Errors) note(r *http.Request, p *Problem, eff effective, detail string) {
	key := refusal.Key{Interface: "sbi", What: e.what(r), Result: strconv.Itoa(eff.status), Cause: eff.cause}
	if len(p.InvalidParams) > 0 {
		key.Param = p.InvalidParams[0].Param
	}
	if !e.journal.Count(key) {
		return
	}
	params := make([]refusal.Param, len(p.InvalidParams))
	for i, ip := range p.InvalidParams {
		params[i] = refusal.Param(ip)
	}
	example := key.What
	if r.URL.RawQuery != "" {
		example += "?" + maskedQuery(r.URL.RawQuery)
	}
	e.journal.Note(&refusal.Refusal{
		Interface: key.Interface, What: key.What, Result: key.Result, Cause: key.Cause, Params: params, Detail: detail,
		Peer: r.RemoteAddr, UserAgent: agent(r), Example: example, Failure: eff.status >= http.StatusInternalServerError,
	}, func(line *zerolog.Event) {
		line.Int("errorStatus", eff.status).Str("errorTitle", eff.title).
			Str("errorDetails", detail).Str("errorCause", eff.cause).Str("sender", e.server)
		if e.cfg.ShowUeIdentifier && p.Subscriber != "" {
			line.Str("subscriberId", p.Subscriber)
		}
	})
}

// asked is what requests of one method and path are called.
type asked struct{ method, path, what string }

// what is the method and the path of a request without identifiers of a UE.
// Those that are refused are often all alike.
func (e *Errors) what(r *http.Request) string {
	if last := e.last.Load(); last != nil && last.method == r.Method && last.path == r.URL.Path {
		return last.what
	}
	what := r.Method[:min(len(r.Method), 16)] + " " + refusal.Mask(r.URL.Path, maxNoted)
	e.last.Store(&asked{r.Method, r.URL.Path, what})
	return what
}

// maxNoted bounds the texts of a request that are remembered, in bytes.
const maxNoted = 128

// agent is what the sender of a request calls itself.
func agent(r *http.Request) string {
	name := r.UserAgent()
	return strings.ToValidUTF8(name[:min(len(name), maxNoted)], "")
}

// maskedQuery is a query without the values that identify a UE.
func maskedQuery(raw string) string {
	var b strings.Builder
	for pair := range strings.SplitSeq(raw[:min(len(raw), 4*maxNoted)], "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "ipv4Addr", "ipv6Prefix", "macAddr48", "supi", "gpsi":
			value = "*"
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(refusal.Mask(name, maxNoted) + "=" + refusal.Mask(value, maxNoted))
	}
	return b.String()
}

// Header values that every answer shares; handlers must not change them.
var (
	problemType = []string{"application/problem+json"}
	// JSONType is the Content-Type of resources.
	JSONType = []string{"application/json"}
)
