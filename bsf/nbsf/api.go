package nbsf

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/admission"
	"bsfd/internal/tolerate"
	"bsfd/web/sbi"
)

// BasePath is the path of the API below its apiRoot.
const BasePath = "/nbsf-management/v1"

// Config configures the API.
type Config struct {
	// APIRoot, when set, begins the Location of created resources; otherwise
	// it is taken from the request.
	APIRoot string `koanf:"apiRoot" usage:"begins the Location of created resources; taken from the request when empty"`
	// Scheme is that of the listener, "http" or "https".
	Scheme string `koanf:"-"`
	// Strict refuses what Tolerances lists.
	Strict bool `koanf:"strict" usage:"refuse what docs/interoperability.md lists as tolerated, on all interfaces"`
	// Tolerate names the rows of Tolerances that are allowed.
	Tolerate []string `koanf:"-"`
	// DiamRealm is the realm of a Diameter host that names none.
	DiamRealm string `koanf:"-"`
	// MaxBodyBytes bounds a body after decompression.
	MaxBodyBytes int `koanf:"-"`
	// MaxCookieBytes bounds the ocnf-service-cookie header.
	MaxCookieBytes int `koanf:"maxCookieBytes" usage:"bound of the ocnf-service-cookie header"`
	// LateArrival answers 504 to requests whose consumer no longer waits.
	LateArrival bool `koanf:"lateArrival" usage:"answer 504 to requests whose consumer no longer waits"`
	// BindingHeader is the level of the 3gpp-Sbi-Binding header in answers:
	// "nf-instance", "nf-set", or "off".
	BindingHeader string `koanf:"bindingHeader" usage:"3gpp-Sbi-Binding in answers: nf-instance, nf-set or off"`
	// InstanceID and SetID are what that header names.
	InstanceID string `koanf:"-"`
	SetID      string `koanf:"-"`
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	switch {
	case c.APIRoot != "":
		if _, err := parseHTTPURI(c.APIRoot); err != nil {
			return fmt.Errorf("apiRoot: %s", reasonText(err))
		}
	case c.BindingHeader != "off" && c.BindingHeader != "nf-instance" && c.BindingHeader != "nf-set":
		return fmt.Errorf(`bindingHeader: must be "off", "nf-instance" or "nf-set"`)
	case c.BindingHeader == "nf-set" && c.SetID == "":
		return fmt.Errorf("bindingHeader: nf-set needs nf.setId")
	case c.MaxCookieBytes < 0 || c.MaxCookieBytes > 16<<10:
		return fmt.Errorf("maxCookieBytes: must be 0 to 16384")
	}
	return nil
}

// allowed are the tolerances that may be used.
func (c Config) allowed() (tolerate.Set, error) {
	set, err := Tolerances.Parse(c.Tolerate)
	if c.Strict {
		set = 0
	}
	return set, err
}

// API serves Nbsf_Management. It is an http.Handler.
type API struct {
	cfg         Config
	registry    *bsf.Registry
	admitter    sbi.Admitter
	errors      *sbi.Errors
	allowed     tolerate.Set
	tolerated   *tolerate.Ledger
	decoders    *decoders
	calls       sync.Pool
	collections map[string]*collection
	binding     []string // value of the 3gpp-Sbi-Binding header, or nil
	log         zerolog.Logger

	requests  *prometheus.CounterVec
	responses *prometheus.CounterVec
	latency   *prometheus.HistogramVec
}

// New checks the configuration and returns the API over the registry, for the
// requests that the admitter lets in.
func New(cfg Config, registry *bsf.Registry, admitter sbi.Admitter, errs *sbi.Errors, log zerolog.Logger, reg prometheus.Registerer) (*API, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	allowed, err := cfg.allowed()
	if err != nil {
		return nil, fmt.Errorf("nbsf.tolerate: %w", err)
	}
	log = log.With().Str("component", "nbsf").Logger()
	a := &API{
		cfg: cfg, registry: registry, admitter: admitter, errors: errs,
		allowed: allowed, decoders: newDecoders(allowed),
		tolerated: tolerate.NewLedger(Tolerances, "ocbsf_nbsf_tolerated_total", log, reg),
		calls:     sync.Pool{New: func() any { return &call{allowed: allowed} }},
		log:       log,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocbsf_ingress_request_total", Help: "Requests, by operation.",
		}, []string{"operation_type"}),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocbsf_ingress_response_total", Help: "Answers, by operation, status and cause.",
		}, []string{"operation_type", "response_code", "application_error_code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ocbsf_ingress_latency_seconds", Help: "Time from the request to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}, []string{"operation_type"}),
	}
	switch cfg.BindingHeader {
	case "nf-instance":
		v := "bl=nf-instance; nfinst=" + cfg.InstanceID
		if cfg.SetID != "" {
			v += "; nfset=" + cfg.SetID
		}
		a.binding = []string{v}
	case "nf-set":
		a.binding = []string{"bl=nf-set; nfset=" + cfg.SetID}
	}
	reg.MustRegister(a.requests, a.responses, a.latency)
	a.routes()
	return a, nil
}

// operation is one method of one resource.
type operation struct {
	method string
	name   string
	handle func(*call) error
	// body is the media type of the request, or empty for none.
	body string
	// missing is the condition for an unknown id.
	missing *sbi.Condition
	// begins is set when the operation begins a session.
	begins bool

	requests  prometheus.Counter
	latency   prometheus.Observer
	successes map[int]prometheus.Counter
}

// resource is a collection, or the resources in it, with its methods.
type resource struct {
	operations []operation
	allow      string
}

// collection is a collection with the resources in it.
type collection struct {
	self, element *resource
}

// routes fills the table of collections. The paths of the API have two forms,
// /collection and /collection/{id}, so a table serves them without a tree.
func (a *API) routes() {
	binding, subscription := sbi.NotFound, subscriptionNotFound
	a.collections = map[string]*collection{
		"pcfBindings": {
			a.resource(operation{method: http.MethodPost, name: "register", body: typeJSON, handle: a.register},
				operation{method: http.MethodGet, name: "discover", handle: a.discover}),
			a.resource(operation{method: http.MethodPatch, name: "update", body: typeMergePatch, handle: a.update, missing: binding},
				operation{method: http.MethodDelete, name: "deregister", handle: a.deregister, missing: binding}),
		},
		"pcf-ue-bindings": {
			a.resource(operation{method: http.MethodPost, name: "ue_register", body: typeJSON, handle: a.registerUe},
				operation{method: http.MethodGet, name: "ue_discover", handle: a.discoverUe}),
			a.resource(operation{method: http.MethodPatch, name: "ue_update", body: typeMergePatch, handle: a.updateUe, missing: binding},
				operation{method: http.MethodDelete, name: "ue_deregister", handle: a.deregisterUe, missing: binding}),
		},
		"pcf-mbs-bindings": {
			a.resource(operation{method: http.MethodPost, name: "mbs_register", body: typeJSON, handle: a.registerMbs},
				operation{method: http.MethodGet, name: "mbs_discover", handle: a.discoverMbs}),
			a.resource(operation{method: http.MethodPatch, name: "mbs_update", body: typeMergePatch, handle: a.updateMbs, missing: binding},
				operation{method: http.MethodDelete, name: "mbs_deregister", handle: a.deregisterMbs, missing: binding}),
		},
		"subscriptions": {
			a.resource(operation{method: http.MethodPost, name: "subscribe", body: typeJSON, handle: a.subscribe}),
			a.resource(operation{method: http.MethodPut, name: "resubscribe", body: typeJSON, handle: a.resubscribe, missing: subscription},
				operation{method: http.MethodDelete, name: "unsubscribe", handle: a.unsubscribe, missing: subscription}),
		},
	}
}

func (a *API) resource(operations ...operation) *resource {
	var methods []string
	for i := range operations {
		op := &operations[i]
		methods = append(methods, op.method)
		op.begins = op.method == http.MethodPost
		op.requests = a.requests.WithLabelValues(op.name)
		op.latency = a.latency.WithLabelValues(op.name)
		op.successes = make(map[int]prometheus.Counter)
		for _, status := range [...]int{http.StatusOK, http.StatusCreated, http.StatusNoContent} {
			op.successes[status] = a.responses.WithLabelValues(op.name, strconv.Itoa(status), "")
		}
	}
	return &resource{operations, strings.Join(methods, ", ")}
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var used tolerate.Set
	target, id := a.find(r.URL.Path)
	if target == nil && a.allowed.Has(tol(tolPath)) {
		used = tol(tolPath)
		target, id = a.find(plainPath(r.URL.Path))
	}
	if target == nil {
		a.unknownPath(w, r)
		return
	}
	for i := range target.operations {
		if op := &target.operations[i]; op.method == r.Method {
			a.serve(w, r, op, id, used)
			return
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		a.errors.Write(w, r, sbi.Fail(sbi.MethodNotAllowed, "allowed: "+target.allow).With("Allow", target.allow))
	default:
		a.errors.Write(w, r, sbi.Fail(sbi.NotImplemented, "unknown method"))
	}
}

// find returns the resource of a path and the id in it, or nil.
func (a *API) find(path string) (target *resource, id string) {
	path, ok := strings.CutPrefix(path, BasePath+"/")
	name, id, hasID := strings.Cut(path, "/")
	found := a.collections[name]
	switch {
	case !ok || found == nil || hasID && (id == "" || strings.Contains(id, "/")):
		return nil, ""
	case hasID:
		return found.element, id
	}
	return found.self, ""
}

// plainPath is a path without doubled slashes and without one at its end.
func plainPath(path string) string {
	return "/" + strings.Join(strings.FieldsFunc(path, func(r rune) bool { return r == '/' }), "/")
}

func (a *API) unknownPath(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, BasePath+"/"), path == BasePath:
		a.errors.Write(w, r, sbi.Fail(sbi.UnknownPath, "no such resource"))
	case strings.HasPrefix(path, "/nbsf-management/"):
		p := sbi.Fail(sbi.InvalidAPI, "only version v1 is supported")
		p.Extra = func(dst []byte) []byte { return append(dst, `,"supportedApiVersions":["v1"]`...) }
		a.errors.Write(w, r, p)
	default:
		a.errors.Write(w, r, sbi.Fail(sbi.InvalidAPI, "this host serves "+BasePath))
	}
}

// call is one request with what its operation needs. Calls are used again:
// requests run on fresh goroutines, and what is here costs their small stacks
// nothing.
type call struct {
	w          http.ResponseWriter
	r          *http.Request
	op         *operation
	id         string // of the path
	d          *decoder
	reg        bsf.Registration
	query      bsf.Query
	asked      admission.Request
	out        []byte
	subscriber string
	// patchType is the media type of a PATCH.
	patchType string
	// allowed are the tolerances that may be used, used those that were.
	allowed, used tolerate.Set
}

// tolerate notes the use of tolerances, and reports whether they are allowed.
func (c *call) tolerate(used tolerate.Set) bool {
	if !c.allowed.Has(used) {
		return false
	}
	c.used |= used
	return true
}

// serve runs an operation: late arrivals are turned away, errors become
// ProblemDetails, and everything is counted.
func (a *API) serve(w http.ResponseWriter, r *http.Request, op *operation, id string, used tolerate.Set) {
	start := time.Now()
	op.requests.Inc()
	c := a.calls.Get().(*call)
	c.w, c.r, c.op, c.id, c.used = w, r, op, id, used
	if refusal := a.admit(c); refusal != nil {
		a.refuse(c, refusal)
	} else if err := a.perform(c); err != nil {
		a.fail(c, err)
	} else if c.used != 0 || c.d != nil && c.d.used != 0 {
		a.noteTolerated(c)
	}
	a.release(c)
	op.latency.Observe(time.Since(start).Seconds())
}

// noteTolerated counts what was served against the letter.
func (a *API) noteTolerated(c *call) {
	if c.d != nil {
		c.used |= c.d.used
	}
	a.tolerated.Note(sbi.PeerName(c.r), c.used)
}

// release gives a call back. Its strings may live on in the registry; nothing
// of it is written to again but the buffer of the answer.
func (a *API) release(c *call) {
	const keep = 64 << 10
	if c.d != nil {
		a.decoders.put(c.d)
	}
	out := c.out[:0]
	if cap(out) > keep {
		out = nil
	}
	*c = call{out: out, allowed: a.allowed}
	a.calls.Put(c)
}

// admit asks whether the request is served, before anything of it is read but
// its header.
func (a *API) admit(c *call) *admission.Refusal {
	h := c.r.Header
	q := &c.asked
	*q = admission.Request{
		Message: c.op.name, Method: c.op.method, RequestType: admission.Absent, DRMP: admission.Absent,
		OCPriority: sbi.Priority(h, sbi.HeaderOCPriority), SBIPriority: sbi.Priority(h, sbi.HeaderMessagePriority),
		Begins: c.op.begins, Ends: c.op.method == http.MethodDelete, Peer: sbi.PeerOf(c.r.Context()),
	}
	if c.op.method == http.MethodGet {
		q.DNN = queryDNN(c.r.URL.RawQuery)
	}
	return a.admitter.AdmitHTTP(q, c.w.Header())
}

func (a *API) refuse(c *call, refusal *admission.Refusal) {
	status, cause := a.errors.Refuse(c.w, c.r, refusal, a.admitter.Pressed())
	a.responses.WithLabelValues(c.op.name, strconv.Itoa(status), cause).Inc()
}

// perform runs the operation of a request that is served.
func (a *API) perform(c *call) error {
	if err := a.check(c); err != nil {
		return err
	}
	return c.op.handle(c)
}

// check turns requests away whose header says that they cannot be served.
func (a *API) check(c *call) error {
	if !sbi.AcceptsJSON(c.r) && !c.tolerate(tol(tolAccept)) {
		return sbi.Fail(sbi.NotAcceptable, "the answer is application/json")
	}
	if c.op.body != "" {
		if p := a.checkMediaType(c); p != nil {
			return p
		}
	}
	if !a.cfg.LateArrival {
		return nil
	}
	if at, ok := sbi.Deadline(c.r.Header); ok {
		if time.Now().After(at) {
			return sbi.Fail(sbi.TimedOutRequest, "the consumer stopped waiting before the request arrived")
		}
		c.r = c.r.WithContext(sbi.WithDeadline(c.r.Context(), at))
	}
	return nil
}

// checkMediaType returns the problem with a body of another media type than the
// operation has.
func (a *API) checkMediaType(c *call) *sbi.Problem {
	switch got := sbi.MediaType(c.r); {
	case got == c.op.body:
		c.patchType = got
		return nil
	case c.op.body == typeMergePatch && got == typeJSONPatch && c.allowed&tol(tolPatchType, tolJSONPatch) != 0:
		c.patchType = got
		return nil
	case c.op.body == typeMergePatch && plainJSON(got) && c.tolerate(tol(tolPatchType)):
		c.patchType = typeJSON
		return nil
	case c.op.body == typeJSON && plainJSON(got) && c.tolerate(tol(tolMediaType)):
		return nil
	}
	return sbi.Fail(sbi.UnsupportedMediaType, "the body must be "+c.op.body).With("Accept", c.op.body)
}

// plainJSON reports whether a media type says no more than that a body is JSON,
// or nothing.
func plainJSON(mediaType string) bool {
	return mediaType == "" || mediaType == typeJSON || mediaType == "text/json"
}

func (a *API) fail(c *call, err error) {
	p := problem(err)
	if p.Condition == sbi.SystemFailure {
		a.log.Error().Err(err).Str("operation", c.op.name).Msg("request failed")
	}
	if p.Condition == sbi.NotFound {
		p.Condition = c.op.missing
	}
	p.Subscriber = c.subscriber
	status, cause := a.errors.Write(c.w, c.r, p)
	a.admitter.Failed(status)
	a.responses.WithLabelValues(c.op.name, strconv.Itoa(status), cause).Inc()
}

// decode reads the body of the request as an object.
func (a *API) decode(c *call, members func(*decoder) func(name string)) error {
	c.d = a.decoders.get()
	if p := sbi.ReadBody(c.r, &c.d.in, a.cfg.MaxBodyBytes); p != nil {
		return p
	}
	if p := c.d.decode(members(c.d)); p != nil {
		return p
	}
	return nil
}

const (
	typeJSON       = "application/json"
	typeMergePatch = "application/merge-patch+json"
	typeJSONPatch  = "application/json-patch+json"
)

// created answers 201 with the Location of the new resource.
func (a *API) created(c *call, collection string, id bsf.ID, body []byte) {
	h := c.w.Header()
	root := a.cfg.APIRoot
	if root == "" {
		root = a.cfg.Scheme + "://" + c.r.Host
	}
	h["Location"] = []string{root + BasePath + "/" + collection + "/" + id.String()}
	a.answer(c, http.StatusCreated, body)
}

// answer writes a success with a body, or without when it is nil.
func (a *API) answer(c *call, status int, body []byte) {
	h := c.w.Header()
	if a.binding != nil && status != http.StatusNoContent {
		h[sbi.HeaderBinding] = a.binding
	}
	if body != nil {
		h["Content-Type"] = sbi.JSONType
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	c.w.WriteHeader(status)
	if body != nil {
		// A consumer that went away needs no answer.
		_, _ = c.w.Write(body)
	}
	c.op.successes[status].Inc()
}
