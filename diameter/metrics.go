package diameter

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/diameter/rx"
)

// metrics are the metrics of the gateway. Those on the path of a message are
// looked up once.
type metrics struct {
	lastOwn            atomic.Pointer[ownCounter]
	received, timeouts [kinds]prometheus.Counter
	first              [kinds]prometheus.Counter // sent the first time
	latency            [kinds]prometheus.Observer
	success            [kinds]prometheus.Counter
	found              prometheus.Counter // lookups

	requests       *prometheus.CounterVec
	inter          *prometheus.CounterVec
	responses      *prometheus.CounterVec
	answers        *prometheus.CounterVec
	lookups        *prometheus.CounterVec
	malformed      *prometheus.CounterVec
	failedConns    *prometheus.CounterVec
	realmFailed    *prometheus.CounterVec
	conns          *prometheus.GaugeVec
	cookies        prometheus.Counter
	discarded      *prometheus.CounterVec
	repaved        prometheus.Counter
	staleRequests  prometheus.Counter
	staleResponses *prometheus.CounterVec
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func newMetrics(reg prometheus.Registerer, g *Gateway) *metrics {
	m := &metrics{
		requests:       counterVec("ocbsf_diam_request_network_total", "Rx requests sent to peers.", "msgType", "retry", "retryReason"),
		inter:          counterVec("ocbsf_diam_request_inter_total", "Rx requests sent to other instances.", "msgType", "retry", "retryReason"),
		responses:      counterVec("ocbsf_diam_response_network_total", "Rx answers received from peers, by result class.", "msgType", "responseCode"),
		answers:        counterVec("ocbsf_diam_response_local_total", "Answers that the gateway made itself, by result.", "responseCode"),
		lookups:        counterVec("ocbsf_diam_binding_discovery_total", "Lookups of bindings for AARs, by outcome.", "result"),
		malformed:      counterVec("ocbsf_diam_malformed_total", "Messages that could not be read or routed for what they are, by what was wrong.", "what"),
		failedConns:    counterVec("diam_failed_conn_network", "Diameter connections that failed, by reason.", "transport", "reason"),
		realmFailed:    counterVec("ocbsf_diam_realm_validation_failed_total", "AARs refused for their Destination-Realm.", "validation"),
		cookies:        counter("ocbsf_ocnf_service_cookie_total", "AARs that were forwarded with an OCNF-SERVICE-COOKIE."),
		discarded:      counterVec("ocbsf_diam_answer_discarded_total", "Answers that went nowhere, by reason.", "reason"),
		repaved:        counter("diam_repaving_disconnections_total", "Connections ended by repaving."),
		staleRequests:  counter("ocbsf_diamgw_notification_request_count_total", "Sessions that their PCF did not know."),
		staleResponses: counterVec("ocbsf_diamgw_notification_response_count_total", "What became of their bindings.", "result"),
		conns: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "diam_conn_network", Help: "1 while the configured peer is connected.",
		}, []string{"peer", "realm"}),
	}
	received := counterVec("ocbsf_diam_request_received_total", "Rx requests received.", "msgType")
	timeouts := counterVec("ocbsf_diam_timeout_total", "Rx requests that were not answered in time.", "msgType")
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ocbsf_diam_response_latency_seconds", Help: "Time from an Rx request to its answer.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
	}, []string{"msgType"})
	reg.MustRegister(m.requests, m.inter, m.responses, m.answers, m.lookups, m.malformed, m.failedConns, m.realmFailed, m.conns,
		m.cookies, m.discarded, m.repaved, m.staleRequests, m.staleResponses, received, timeouts, latency)
	for k := range kind(kinds) {
		m.received[k] = received.WithLabelValues(k.String())
		m.timeouts[k] = timeouts.WithLabelValues(k.String())
		m.latency[k] = latency.WithLabelValues(k.String())
		m.first[k] = m.requests.WithLabelValues(k.String(), "false", "")
		m.success[k] = m.responses.WithLabelValues(k.String(), "2001")
	}
	m.found = m.lookups.WithLabelValues("found")
	for name, x := range map[string]struct {
		help string
		f    func() float64
	}{
		"ocbsf_diam_pending_requests": {"Rx requests that wait for an answer.", func() float64 { return float64(g.pendingRequests()) }},
		"ocbsf_diam_connections":      {"Diameter connections, those before capabilities exchange included.", func() float64 { return float64(g.open.Load()) }},
		"diam_conn_network_responder": {"Peers that are connected and have made the connection.", func() float64 { return float64(g.responders()) }},
		"ocbsf_diam_sessions":         {"Rx sessions that are remembered.", func() float64 { return float64(g.sessions.len()) }},
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: x.help}, x.f))
	}
	return m
}

// sent counts a request that went out on the connection, with the reason when
// not the first time.
func (m *metrics) sent(c *conn, k kind, retryReason string) {
	switch {
	case c.fromInstance():
		m.inter.WithLabelValues(k.String(), strconv.FormatBool(retryReason != ""), retryReason).Inc()
	case retryReason == "":
		m.first[k].Inc()
	default:
		m.requests.WithLabelValues(k.String(), "true", retryReason).Inc()
	}
}

// answered counts the answer to a request.
func (m *metrics) answered(p *pending, r rx.Result, now time.Time) {
	m.latency[p.kind].Observe(now.Sub(p.sent).Seconds())
	if r == rx.Base(rx.Success) {
		m.success[p.kind].Inc()
		return
	}
	m.responses.WithLabelValues(p.kind.String(), label(r)).Inc()
}

// own counts an answer of the gateway itself.
func (m *metrics) own(r rx.Result) {
	last := m.lastOwn.Load()
	if last == nil || last.result != r {
		last = &ownCounter{r, m.answers.WithLabelValues(r.String())}
		m.lastOwn.Store(last)
	}
	last.Inc()
}

// ownCounter is the counter of a result. Under overload the same one is needed
// again and again.
type ownCounter struct {
	result rx.Result
	prometheus.Counter
}

// connected notes whether a peer is connected. Hosts that are not configured
// are too many to have a series each.
func (m *metrics) connected(p *peer, is bool) {
	if !p.known {
		return
	}
	v := 0.0
	if is {
		v = 1
	}
	m.conns.WithLabelValues(p.host, p.cfg.Realm).Set(v)
}

// label is the result as a label. Codes that neither RFC 6733 nor TS 29.214
// knows share one, so that a peer cannot make series without end.
func label(r rx.Result) string {
	class, number := r.Code/1000, r.Code%1000
	known := r.Vendor == 0 && class >= 1 && class <= 5 && number >= 1 && number <= 20 ||
		r.Vendor == rx.Vendor3GPP && (class == 4 || class == 5) && (number >= 61 && number <= 80 || number >= 241 && number <= 270)
	if !known {
		return "other"
	}
	return r.String()
}
