package sbi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"
)

// Errors writes error answers as configured and counts and logs them.
type Errors struct {
	cfg     ErrorConfig
	server  string
	log     zerolog.Logger
	limit   *rate.Limiter
	dropped prometheus.Counter
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

// NewErrors returns an Errors for a checked configuration.
func NewErrors(cfg ErrorConfig, log zerolog.Logger, reg prometheus.Registerer) *Errors {
	e := &Errors{
		cfg:    cfg,
		log:    log.With().Str("component", "sbi").Logger(),
		server: "BSF-" + cfg.InstanceID,
		limit:  rate.NewLimiter(rate.Limit(cfg.Log.Rate), cfg.Log.MaxBurst),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_error_log_dropped_total", Help: "Error log lines dropped by the burst limit.",
		}),
		in: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "error_handler_in_total", Help: "Errors given to the error handler.",
		}),
		out: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "error_handler_out_total", Help: "Errors answered by the error handler.",
		}),
	}
	reg.MustRegister(e.dropped, e.in, e.out)
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
	e.note(eff, detail, p.Subscriber)
	return eff.status, eff.cause
}

// note logs an error answer in the form that operators of the feature expect.
func (e *Errors) note(eff effective, detail, subscriber string) {
	if !e.cfg.Log.Enabled {
		return
	}
	if !e.limit.Allow() {
		e.dropped.Inc()
		return
	}
	line := e.log.Warn().Int("errorStatus", eff.status).Str("errorTitle", eff.title).
		Str("errorDetails", detail).Str("errorCause", eff.cause).Str("sender", e.server)
	if e.cfg.Log.ShowUeIdentifier && subscriber != "" {
		line = line.Str("subscriberId", subscriber)
	}
	line.Msg("error response")
}

// Header values that every answer shares; handlers must not change them.
var (
	problemType = []string{"application/problem+json"}
	// JSONType is the Content-Type of resources.
	JSONType = []string{"application/json"}
)
