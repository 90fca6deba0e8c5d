package bsf

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/tgpp"
)

// MultipleMatches says what discovery answers when several bindings match.
type MultipleMatches string

// The policies for a discovery with several answers.
const (
	MatchError  MultipleMatches = "error"  // 400 MULTIPLE_BINDING_INFO_FOUND
	MatchLatest MultipleMatches = "latest" // the binding that was registered last
)

// Config configures a Registry.
type Config struct {
	// SameAddress is the policy for an address that is registered twice.
	SameAddress SameAddress `koanf:"sameAddress" usage:"a second registration of a UE address: supersede or keep"`
	// MultipleMatches is the policy for a discovery with several answers.
	MultipleMatches MultipleMatches `koanf:"multipleMatches" usage:"discovery with several answers: error or latest"`
	// Collision configures collision detection between PCFs.
	Collision CollisionRules `koanf:"collision"`
	// Revalidation lets PCFs ask whether a binding is still there.
	Revalidation bool `koanf:"revalidation" usage:"honour x-oc-binding-revalidation"`
	// StoreCookie keeps the ocnf-service-cookie of a registration.
	StoreCookie bool `koanf:"storeCookie" usage:"keep the ocnf-service-cookie of a registration"`
	// Features is the set offered in suppFeat.
	Features tgpp.Features `koanf:"features" usage:"features offered in suppFeat, hexadecimal"`
	// ShowUeIdentifier writes SUPI, GPSI and UE addresses to the log.
	ShowUeIdentifier bool `koanf:"-"`
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	if err := c.SameAddress.Check(); err != nil {
		return fmt.Errorf("sameAddress: %w", err)
	}
	if c.MultipleMatches != MatchError && c.MultipleMatches != MatchLatest {
		return fmt.Errorf("multipleMatches: must be %q or %q", MatchError, MatchLatest)
	}
	if c.Features&^SupportedFeatures != 0 {
		return fmt.Errorf("features: only the bits of %s are supported", SupportedFeatures)
	}
	return nil
}

// Waker is told when there is something to notify, and when a subscription has
// ended so that nothing more is sent to it. Notifier implements
// it.
type Waker interface {
	Wake()
	Forget(subscription ID)
}

// Registry holds who serves which UE. It is safe for concurrent use.
type Registry struct {
	cfg      Config
	bindings BindingStore
	docs     DocumentStore
	waker    Waker
	log      zerolog.Logger
	// removals logs the bindings that a rule removed: all of a few, some of
	// the many when a PCF registers everything again.
	removals zerolog.Logger
	metrics  *registryMetrics
}

// removalLines is how many removed bindings a second are logged.
const removalLines = 100

// NewRegistry checks the configuration and returns a Registry on the stores.
// Metrics are registered with reg.
func NewRegistry(cfg Config, bindings BindingStore, docs DocumentStore, waker Waker, log zerolog.Logger, reg prometheus.Registerer) (*Registry, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	log = log.With().Str("component", "bsf").Logger()
	return &Registry{
		cfg: cfg, bindings: bindings, docs: docs, waker: waker,
		log:      log,
		removals: log.Sample(&zerolog.BurstSampler{Burst: removalLines, Period: time.Second}),
		metrics:  newRegistryMetrics(reg),
	}, nil
}

// Registration is a request to register the PCF of a PDU session.
type Registration struct {
	Binding         PcfBinding
	Cookie          string
	NotificationURL string
	// Revalidation is set when the PCF asks whether the binding is still
	// there.
	Revalidation bool
	// Origination, Sender and CustomSender are the timestamps of the request.
	Origination  time.Time
	Sender       time.Time
	CustomSender time.Time
}

// Register stores a binding (TS 29.521 §4.2.2.2) and returns it as stored. A
// revalidation that finds its binding unchanged returns that one. Errors:
// *Violation, *Conflict, and those of the store.
func (r *Registry) Register(ctx context.Context, reg *Registration) (*Record, error) {
	b := &reg.Binding
	if b.SuppFeat != nil {
		common := *b.SuppFeat & r.cfg.Features
		b.SuppFeat = &common
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	rec := &Record{
		ID: NewID(), Binding: *b, Created: now, Audited: now,
		Origination: reg.Origination, Sender: reg.Sender, CustomSender: reg.CustomSender,
		NotificationURL: reg.NotificationURL,
	}
	if reg.Cookie != "" && r.cfg.StoreCookie {
		rec.Cookie = reg.Cookie
		r.metrics.cookies.Inc()
	}
	rules := r.rules(reg.Revalidation)
	if rules.Revalidate {
		r.metrics.revalidationRequests.Inc()
	}
	out, err := r.bindings.Create(ctx, rec, rules)
	switch {
	case err != nil:
		if rules.Revalidate {
			r.logRevalidation(rec, "the binding could not be restored", err)
		}
		return nil, err
	case out.Conflict != nil:
		r.metrics.conflicts.Inc()
		return nil, out.Conflict
	case out.Duplicate != nil:
		r.metrics.revalidationResponses.WithLabelValues("duplicate").Inc()
		return out.Duplicate, nil
	}
	if rules.Revalidate {
		r.noteRestored(rec, &out)
	}
	r.changed(out)
	return rec, nil
}

func (r *Registry) rules(revalidate bool) Rules {
	return Rules{
		SameAddress: r.cfg.SameAddress,
		Collision:   r.cfg.Collision,
		Revalidate:  revalidate && r.cfg.Revalidation,
	}
}

// changed does what follows a committed change: bindings that went are logged
// and counted, and subscribers are told.
func (r *Registry) changed(out Outcome) {
	for _, x := range out.Remove {
		r.metrics.removals.WithLabelValues(string(x.Reason)).Inc()
		r.removals.Info().Str("binding", x.Record.ID.String()).Str("reason", string(x.Reason)).
			Str("pcfId", string(x.Record.Binding.PcfId)).Msg("binding removed")
	}
	if out.Queued {
		r.waker.Wake()
	}
}

// noteRestored counts and logs a revalidation that had to create its binding.
func (r *Registry) noteRestored(rec *Record, out *Outcome) {
	for _, x := range out.Remove {
		if x.Reason == ReasonRevalidated {
			r.metrics.revalidationResponses.WithLabelValues("recreated").Inc()
			return
		}
	}
	r.metrics.revalidationResponses.WithLabelValues("restored").Inc()
	r.metrics.revalidationMissing.Inc()
	r.logRevalidation(rec, "the binding was missing and is restored", ErrNotFound)
}

// logRevalidation writes the audit line that operators of the feature look
// for, under the marker BINDING.
func (r *Registry) logRevalidation(rec *Record, text string, cause error) {
	b := &rec.Binding
	e := r.log.Warn().Dict("marker", zerolog.Dict().Str("name", "BINDING")).
		Str("dnn", string(b.Dnn)).Str("snssai", b.Snssai.Key()).
		Str("pcfFqdn", string(b.PcfFqdn)).Str("errorCause", cause.Error())
	if b.IpDomain != "" {
		e = e.Str("ipDomain", b.IpDomain)
	}
	if r.cfg.ShowUeIdentifier {
		e = e.Str("supi", string(b.Supi))
		if b.Ipv4Addr.IsValid() {
			e = e.Str("ipv4Addr", b.Ipv4Addr.String())
		}
		if b.Ipv6Prefix.IsValid() {
			e = e.Str("ipv6Prefix", b.Ipv6Prefix.String())
		}
	}
	e.Msg("Binding Audit: " + text)
}

// Discover returns the binding that answers the query, or ErrNotFound. Several
// answers are an *Ambiguous error, or the latest of them, as configured.
func (r *Registry) Discover(ctx context.Context, q *Query) (*Record, error) {
	found, err := r.bindings.Find(ctx, q.key())
	if err != nil {
		return nil, err
	}
	var best *Record
	n := 0
	for _, rec := range found {
		if !q.Matches(&rec.Binding) {
			continue
		}
		if n++; best == nil || rec.Later(best) {
			best = rec
		}
	}
	switch {
	case n == 0:
		return nil, ErrNotFound
	case n > 1 && r.cfg.MultipleMatches == MatchError:
		r.metrics.ambiguous.Inc()
		return nil, &Ambiguous{Count: n}
	}
	return best, nil
}

// Change is what an update does to a binding.
type Change struct {
	// Apply changes the binding. It may run more than once, and its error is
	// that of the update.
	Apply func(*PcfBinding) error
	// Unnegotiated serves also PCFs that negotiated no features at all.
	Unnegotiated bool
}

// Update changes a binding (TS 29.521 §4.2.5.2) and returns it as stored. The
// result must satisfy Check, otherwise nothing changes. Errors: ErrNotFound,
// ErrModificationNotAllowed, *Violation, those of the change and of the store.
func (r *Registry) Update(ctx context.Context, id ID, change Change) (*Record, error) {
	out, err := r.bindings.Update(ctx, id, Rules{SameAddress: r.cfg.SameAddress}, func(old Record) (*Record, error) {
		if b := &old.Binding; !b.Negotiated(FeatureBindingUpdate) && !(change.Unnegotiated && b.negotiatedNothing()) {
			return nil, ErrModificationNotAllowed
		}
		rec := old.Clone()
		if err := change.Apply(&rec.Binding); err != nil {
			return nil, err
		}
		if err := rec.Binding.Check(); err != nil {
			return nil, err
		}
		return rec, nil
	})
	if err != nil {
		return nil, err
	}
	r.changed(out)
	return out.Record, nil
}

// Deregister removes a binding (TS 29.521 §4.2.3.2), or returns ErrNotFound.
func (r *Registry) Deregister(ctx context.Context, id ID) error {
	_, err := r.remove(ctx, id, ReasonDeregistered)
	return err
}

// Remove removes a binding that its PCF did not deregister, and logs it.
// Subscribers are told as of a deregistration. It returns ErrNotFound when
// there is none.
func (r *Registry) Remove(ctx context.Context, id ID, reason Reason) error {
	rec, err := r.remove(ctx, id, reason)
	if err == nil {
		r.removals.Info().Str("binding", id.String()).Str("reason", string(reason)).
			Str("pcfId", string(rec.Binding.PcfId)).Msg("binding removed")
	}
	return err
}

func (r *Registry) remove(ctx context.Context, id ID, reason Reason) (*Record, error) {
	out, err := r.bindings.Delete(ctx, id)
	if err != nil {
		return nil, err
	}
	r.metrics.removals.WithLabelValues(string(reason)).Inc()
	if out.Queued {
		r.waker.Wake()
	}
	return out.Record, nil
}
