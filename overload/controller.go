package overload

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/admission"
)

// Service is a part of the function that is protected on its own.
type Service int

// The services.
const (
	// Management is the service-based interface.
	ManagementService Service = iota
	// DiameterService is the Rx gateway.
	DiameterService
	services = iota
)

// String is the name of the service in logs and metrics.
func (s Service) String() string { return [services]string{"bsf-management", "diam-gateway"}[s] }

// Identity is how the node is called in what it tells about itself.
type Identity struct {
	// InstanceID is the NF instance id, the scope of LCI and OCI.
	InstanceID string
	// Name is the name of the instance in error texts.
	Name string
}

// Controller holds the state of the module: it takes samples, and makes the
// rules that gates decide by.
type Controller struct {
	log      zerolog.Logger
	id       Identity
	source   Source
	gates    [services]*Gate
	adverts  atomic.Pointer[adverts]
	peers    *Peers
	failing  atomic.Pointer[map[int]bool] // statuses that count as failures
	sbiSends atomic.Int32                 // priority of notifications

	mu       sync.Mutex
	settings Settings
	plans    [services]*plan
	inputs   [services]Input
	parts    [services]*serviceState
	node     nodeState
	routes   map[string]*routeMeter
	rateAt   time.Time
	metrics  *controllerMetrics
}

// New returns a controller with the settings. It starts nothing.
func New(settings Settings, id Identity, source Source, log zerolog.Logger, reg prometheus.Registerer) (*Controller, error) {
	c := &Controller{
		log: log.With().Str("component", "overload").Logger(), id: id, source: source,
		routes: make(map[string]*routeMeter),
	}
	c.metrics = newControllerMetrics(c, reg)
	c.peers = newPeers(c.metrics.throttled)
	for s := range Service(services) {
		c.parts[s] = new(serviceState)
		c.gates[s] = &Gate{controller: c, service: s, metrics: newGateMetrics(s, c.metrics)}
		c.inputs[s] = nothing{}
	}
	return c, c.Reconfigure(settings)
}

// Gate decides for the service.
func (c *Controller) Gate(s Service) *Gate { return c.gates[s] }

// Peers are the reports of peers about their load.
func (c *Controller) Peers() *Peers { return c.peers }

// Input is where the requests of a service come in.
type Input interface {
	// Pending is how many requests are under way.
	Pending() int
	// Backlog is for how long a connection has had more to read each time than
	// was read, the longest of all connections; 0 when all are read empty.
	Backlog() time.Duration
}

// nothing is an input without requests.
type nothing struct{}

func (nothing) Pending() int           { return 0 }
func (nothing) Backlog() time.Duration { return 0 }

// Watch says where the requests of the service come in.
func (c *Controller) Watch(s Service, in Input) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inputs[s] = in
}

// Reconfigure takes the settings over, whole or, when one is wrong, not at
// all. They count from the next request on.
func (c *Controller) Reconfigure(settings Settings) error {
	if err := settings.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.settings.operation(); was != settings.operation() && was >= 0 {
		c.log.Warn().Stringer("from", was).Stringer("to", settings.operation()).Msg("operational state changed")
	}
	c.settings = settings
	for svc := range Service(services) {
		c.plans[svc] = newPlan(&settings, svc)
	}
	for _, line := range settings.unsupported() {
		c.log.Error().Msg(line)
	}
	failing := make(map[int]bool)
	for _, code := range settings.Levels.FailureCodes {
		failing[code] = true
	}
	c.failing.Store(&failing)
	c.sbiSends.Store(int32(newSBIPriority(&settings).sent()))
	c.peers.configure(&settings)
	c.keepRoutes()
	c.apply()
	return nil
}

// Operation is the operational state that counts now.
func (c *Controller) Operation() Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.operation()
}

// MaySend reports whether a request may be sent to an HTTP server: not in the
// operational state COMPLETE_SHUTDOWN, and not when the server is overloaded.
func (c *Controller) MaySend(uri string) bool {
	return c.Operation() != OperationComplete && c.peers.MaySend(uri)
}

// Answered notes the answer of an HTTP server.
func (c *Controller) Answered(uri string, status int, header http.Header) {
	c.peers.Answered(uri, status, header)
}

// SendPriority is the 3gpp-Sbi-Message-Priority of notifications, or
// admission.Absent.
func (c *Controller) SendPriority() int { return int(c.sbiSends.Load()) }

// failure reports whether an answer counts as a failure of the service.
func (c *Controller) failure(s Service, code int) bool {
	if s == DiameterService {
		const unableToComply = 5012
		return code/1000 == 3 || code == unableToComply
	}
	if failing := *c.failing.Load(); len(failing) > 0 {
		return failing[code]
	}
	return code/100 == 5
}

// tickInterval is the shortest time between two samples.
const tickInterval = 50 * time.Millisecond

// Run takes samples until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	t := time.NewTicker(tickInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			c.step(now)
		}
	}
}

// step takes a sample and adjusts what is due.
func (c *Controller) step(now time.Time) {
	u := c.source.Usage()
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range Service(services) {
		c.parts[s].step(c, s, now, u, c.inputs[s])
	}
	c.node.step(c, now, u)
	c.rates(now)
	c.peers.sweep(now)
	c.apply()
}

// due reports whether a period has passed since at, and begins the next one.
func due(at *time.Time, now time.Time, period time.Duration) bool {
	if now.Sub(*at) < period-tickInterval/2 {
		return false
	}
	*at = now
	return true
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// keepRoutes keeps a meter for each route that there is.
func (c *Controller) keepRoutes() {
	routes := make(map[string]*routeMeter)
	for _, r := range c.settings.Routes {
		if routes[r.ID] = c.routes[r.ID]; routes[r.ID] == nil {
			routes[r.ID] = new(routeMeter)
		}
	}
	c.routes = routes
}

// rates ends a sampling period of the routes.
func (c *Controller) rates(now time.Time) {
	last := c.rateAt
	if !due(&c.rateAt, now, milliseconds(c.settings.RateLimiting.SamplingPeriod)) || last.IsZero() {
		return
	}
	for _, r := range c.settings.Routes {
		c.routes[r.ID].period(now.Sub(last), r.Rate)
	}
}

// apply makes the rules of the gates from settings and states.
func (c *Controller) apply() {
	s := &c.settings
	for i := range Service(services) {
		c.gates[i].rules.Store(c.rulesFor(i))
	}
	c.adverts.Store(newAdverts(s, c.id, &c.node))
}

// rulesFor makes the rules of a service.
func (c *Controller) rulesFor(svc Service) *rules {
	s, part := &c.settings, c.parts[svc]
	r := &rules{priority: c.plans[svc].priority, profile: c.plans[svc].profile, counts: part.counts(s, svc)}
	for _, shed := range part.shedding(c, svc) {
		r.merge(shed)
	}
	r.pressed = r.sheds || part.adaptive.limit > 0 || c.node.state == selfProtection
	c.closeFor(r, svc)
	if c.node.state == selfProtection {
		profile := c.node.profile(s)
		r.node, r.sheds = c.refusal(svc, "", "the node protects itself"), true
		r.exclude = newExcluder(find(s.ExcludeProfiles, profile.Exclude, func(p *ExcludeProfile) string { return p.Name }))
	}
	if svc == ManagementService && s.RateLimiting.Enabled {
		c.limit(r)
	}
	return r
}

// merge adds a reason to shed; of several for one priority the largest share
// counts.
func (r *rules) merge(shed [priorities]verdict) {
	for p, v := range shed {
		if v.share > r.shed[p].share {
			r.shed[p], r.sheds = v, true
		}
	}
}

// limit adds the rates of the routes.
func (c *Controller) limit(r *rules) {
	for _, route := range c.settings.Routes {
		if route.Rate == 0 {
			continue
		}
		m := c.routes[route.ID]
		refusal := c.named(route.ErrorCodeProfile, "the rate of route "+route.ID+" is exceeded")
		if refusal == nil {
			refusal = &admission.Refusal{Status: 429, Cause: "NF_CONGESTION_RISK", Title: "Too many requests", Detail: "the rate of route " + route.ID + " is exceeded", RetryAfter: time.Second}
		}
		r.routes = append(r.routes, limited{route.Method, route.Path, route.PriorityBound, m.share, m, refusal})
		r.sheds = true
	}
}

// refusal is the answer for requests that are shed: that of the error code
// profile when it is named, else that of the service.
func (c *Controller) refusal(svc Service, profile, why string) *admission.Refusal {
	detail := fmt.Sprintf("%s: %s", c.id.Name, why)
	if svc == DiameterService {
		result, vendor := diameterResult(c.settings.Diameter.ResponseCode, c.settings.Diameter.VendorID)
		return &admission.Refusal{Detail: detail, Result: result, Vendor: vendor}
	}
	if r := c.named(profile, detail); r != nil {
		return r
	}
	a := c.settings.Management.Advanced
	return &admission.Refusal{
		Status: httpStatus(a.ResponseCode), Cause: a.Cause, Title: "Congestion", Detail: detail, RetryAfter: time.Duration(a.RetryAfter) * time.Second,
	}
}

// named is the answer of an error code profile, nil when none is named.
func (c *Controller) named(profile, detail string) *admission.Refusal {
	p := find(c.settings.ErrorCodes, profile, func(p *ErrorCodeProfile) string { return p.Name })
	if p == nil {
		return nil
	}
	r := &admission.Refusal{
		Status: httpStatus(p.Code), Cause: p.Cause, Title: p.Title, Detail: detail, RetryAfter: time.Duration(p.RetryAfter) * time.Second,
	}
	if p.Description != "" {
		r.Detail = p.Description
	}
	if r.Title == "" {
		r.Title = "Request refused"
	}
	return r
}
