package bsf

import "github.com/prometheus/client_golang/prometheus"

type registryMetrics struct {
	removals              *prometheus.CounterVec
	conflicts             prometheus.Counter
	ambiguous             prometheus.Counter
	cookies               prometheus.Counter
	revalidationRequests  prometheus.Counter
	revalidationResponses *prometheus.CounterVec
	revalidationMissing   prometheus.Counter
}

func newRegistryMetrics(reg prometheus.Registerer) *registryMetrics {
	m := &registryMetrics{
		removals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocbsf_binding_removed_total", Help: "PCF bindings removed, by reason.",
		}, []string{"reason"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_binding_conflict_total", Help: "Registrations refused because another PCF holds the binding.",
		}),
		ambiguous: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_discovery_ambiguous_total", Help: "Discoveries that more than one binding matched.",
		}),
		cookies: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_pcf_cookie_total", Help: "Registrations whose ocnf-service-cookie was stored.",
		}),
		revalidationRequests: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_binding_revalidation_request_total", Help: "Binding revalidation requests.",
		}),
		revalidationResponses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocbsf_binding_revalidation_response_total", Help: "Binding revalidations answered, by result.",
		}, []string{"result"}),
		revalidationMissing: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_binding_revalidation_pcfBinding_missing_total", Help: "Revalidations that found no binding.",
		}),
	}
	reg.MustRegister(m.removals, m.conflicts, m.ambiguous, m.cookies,
		m.revalidationRequests, m.revalidationResponses, m.revalidationMissing)
	return m
}

type notifierMetrics struct {
	deliveries *prometheus.CounterVec
	backlog    prometheus.Gauge
}

func newNotifierMetrics(reg prometheus.Registerer) *notifierMetrics {
	m := &notifierMetrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ocbsf_notification_total", Help: "Notification attempts, by result.",
		}, []string{"result"}),
		backlog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ocbsf_notification_backlog", Help: "Notifications waiting in this instance.",
		}),
	}
	reg.MustRegister(m.deliveries, m.backlog)
	return m
}
