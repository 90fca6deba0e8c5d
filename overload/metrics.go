package overload

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/internal/admission"
)

// controllerMetrics are the metrics of the module. Names are those of the
// feature description where it has one.
type controllerMetrics struct {
	stateReports, resourceReports *prometheus.CounterVec
	httpRejected, diamRejected    *prometheus.CounterVec
	diamShutdown                  *prometheus.CounterVec
	requests, answers             *prometheus.CounterVec
	throttled                     *prometheus.CounterVec
}

func newControllerMetrics(c *Controller, reg prometheus.Registerer) *controllerMetrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &controllerMetrics{
		stateReports:    counter("pod_cong_state_report_total", "Changes of the congestion state.", "service", "level"),
		resourceReports: counter("pod_resource_congestion_state_report_total", "Changes of the congestion state of a resource.", "service", "type", "level"),
		httpRejected:    counter("ocbsf_http_congestion_message_reject_total", "Requests refused on the service-based interface.", "messageType", "priority", "reason"),
		diamRejected:    counter("diam_overload_message_reject_total", "Requests refused on Diameter, but for the operational state.", "messageType", "priority", "reason"),
		diamShutdown:    counter("diam_controlled_shutdown_message_reject_total", "Requests refused on Diameter for the operational state.", "messageType"),
		requests:        counter("ocbsf_http_message_priority_request_count_total", "Messages whose priority a message profile has evaluated.", "direction", "rcvd_priority", "eval_priority", "interfaceType", "msgType"),
		answers:         counter("ocbsf_http_message_priority_response_count_total", "Answers that got a priority from a message profile.", "direction", "eval_priority", "interfaceType", "msgType"),
		throttled:       counter("ocbsf_peer_throttled_total", "Requests not sent because the peer is overloaded.", "messageType"),
	}
	reg.MustRegister(m.stateReports, m.resourceReports, m.httpRejected, m.diamRejected, m.diamShutdown, m.requests, m.answers, m.throttled, &gauges{c: c})
	return m
}

// gauges collects the states of the module.
type gauges struct{ c *Controller }

var (
	descState     = prometheus.NewDesc("pod_congestion_state", "Congestion state: 0 NORMAL, 1 DANGER_OF_CONGESTION, 2 CONGESTION_L1, 3 CONGESTION_L2, 4 CONGESTED.", []string{"service"}, nil)
	descResource  = prometheus.NewDesc("pod_resource_congestion_state", "Congestion state of a resource.", []string{"service", "type"}, nil)
	descUse       = prometheus.NewDesc("pod_resource_stress", "Use of a resource: percent, or requests for queue.", []string{"service", "type"}, nil)
	descPending   = prometheus.NewDesc("congestion_http_pending_request_active_counter", "Requests under way.", []string{"service"}, nil)
	descProtect   = prometheus.NewDesc("ocbsf_pod_protection_state", "State of the entrance: 0 normal, 1 DoC, 2 Congested.", nil, nil)
	descStress    = prometheus.NewDesc("service_resource_stress", "Use of a resource as overload control sees it.", []string{"service", "type"}, nil)
	descOverload  = prometheus.NewDesc("service_resource_overload_level", "Overload level of a resource, 0 to 3.", []string{"service", "type"}, nil)
	descLevel     = prometheus.NewDesc("load_level", "Overload level of a service, 0 to 3.", []string{"service"}, nil)
	descMode      = prometheus.NewDesc("system_overload_threshold_config_mode", "1 when a threshold profile is active, 0 when none is.", nil, nil)
	descMissing   = prometheus.NewDesc("active_overload_threshold_fetch_failed", "1 when overload levels are enabled and there is no active threshold profile.", nil, nil)
	descOperation = prometheus.NewDesc("system_operational_state", "Operational state: 1 NORMAL, 2 PARTIAL_SHUTDOWN, 3 COMPLETE_SHUTDOWN.", nil, nil)
	descShed      = prometheus.NewDesc("ocbsf_adaptive_reduction", "Part of the requests that adaptive shedding refuses, 0 to 1.", []string{"service"}, nil)
	descAim       = prometheus.NewDesc("ocbsf_adaptive_stress", "Use of a resource; 1 is what adaptive shedding aims at.", []string{"service", "type"}, nil)
	descLoad      = prometheus.NewDesc("ocbsf_node_load", "Load of the node by its load profile, in percent.", nil, nil)
	descReduction = prometheus.NewDesc("ocbsf_node_reduction_metric", "Reduction that consumers are asked for, in percent.", nil, nil)
	descNode      = prometheus.NewDesc("ocbsf_node_overload_state", "State of the node: 0 normal, 1 overload, 2 self-protection.", nil, nil)
	descReports   = prometheus.NewDesc("ocbsf_peer_overload_reports", "Overload reports of peers that hold.", nil, nil)
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descState, descResource, descUse, descPending, descProtect, descStress, descOverload, descLevel, descMode, descMissing, descOperation,
		descShed, descAim, descLoad, descReduction, descNode, descReports,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	emit := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for s := range Service(services) {
		p, name := c.parts[s], s.String()
		emit(descState, float64(p.congestion.level), name)
		for i, r := range resourceNames {
			emit(descResource, float64(p.resources[i]), name, r)
			emit(descUse, p.use[i], name, r)
		}
		for i, r := range stressNames {
			emit(descStress, p.stress[i], name, r)
			emit(descOverload, float64(p.steps[i].level), name, r)
		}
		emit(descPending, float64(c.inputs[s].Pending()), name)
		emit(descLevel, float64(p.overload), name)
		emit(descShed, p.adaptive.reduction, name)
		for i, r := range aimNames {
			emit(descAim, p.adaptive.stress[i], name, r)
		}
	}
	protection := map[Level]float64{Danger: 1, Congested: 2}[c.parts[ManagementService].protection.level]
	emit(descProtect, protection)
	emit(descMode, boolean(c.settings.Levels.Management != "" || c.settings.Levels.Diameter != ""))
	emit(descMissing, boolean(c.settings.Levels.Enabled && (c.settings.Levels.Management == "" || c.settings.Levels.Diameter == "")))
	emit(descOperation, float64(c.settings.operation())+1)
	emit(descLoad, float64(c.node.load))
	emit(descReduction, float64(c.node.reduction))
	emit(descNode, float64(c.node.state))
	emit(descReports, float64(c.peers.count()))
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gateMetrics count what a gate decides. A counter is found by one look into a
// table: requests are refused when there is no time.
type gateMetrics struct {
	service  Service
	c        *controllerMetrics
	refusals map[string]*refusalCounters // by message
}

// refusalCounters are the counters of one kind of message, nil until they are
// needed.
type refusalCounters [priorities][reasons]atomic.Pointer[prometheus.Counter]

// messages are the names of requests by service.
var messages = [services][]string{
	{"register", "discover", "update", "deregister", "ue_register", "ue_discover", "ue_update", "ue_deregister",
		"mbs_register", "mbs_discover", "mbs_update", "mbs_deregister", "subscribe", "resubscribe", "unsubscribe"},
	{"AAR", "STR", "RAR", "ASR", "other"},
}

func newGateMetrics(s Service, c *controllerMetrics) *gateMetrics {
	m := &gateMetrics{service: s, c: c, refusals: make(map[string]*refusalCounters)}
	for _, name := range messages[s] {
		m.refusals[name] = new(refusalCounters)
	}
	return m
}

// refused counts a request that is refused.
func (m *gateMetrics) refused(why reason, r *admission.Request, priority int) {
	of := m.refusals[r.Message]
	if of == nil {
		m.counter(why, r.Message, priority).Inc()
		return
	}
	at := &of[priority][why]
	c := at.Load()
	if c == nil {
		fresh := m.counter(why, r.Message, priority)
		c = &fresh
		at.Store(c)
	}
	(*c).Inc()
}

func (m *gateMetrics) counter(why reason, message string, priority int) prometheus.Counter {
	switch {
	case m.service == ManagementService:
		return m.c.httpRejected.WithLabelValues(message, strconv.Itoa(priority), why.String())
	case why == byShutdown:
		return m.c.diamShutdown.WithLabelValues(message)
	}
	return m.c.diamRejected.WithLabelValues(message, strconv.Itoa(priority), why.String())
}

// evaluated counts a request whose priority a message profile has decided, and
// the priority that its answer gets.
func (m *gateMetrics) evaluated(r *admission.Request, request, answer int) {
	m.c.requests.WithLabelValues("in", label(received(r)), label(request), "Nbsf_Management", messageType(r.Message)).Inc()
	m.c.answers.WithLabelValues("out", label(answer), "Nbsf_Management", messageType(r.Message)).Inc()
}

// label is a priority as a label.
func label(priority int) string {
	if priority == admission.Absent {
		return "NA"
	}
	return strconv.Itoa(priority)
}
