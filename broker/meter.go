package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meter counts what the broker does. Labels are bounded: methods, providers and codes, never an id or a URL.
type meter struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	held     *prometheus.GaugeVec
	active   *prometheus.GaugeVec
}

func newMeter() *meter {
	m := &meter{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_requests_total", Help: "Calls that ended, by method, provider and code (ok, or the error's).",
		}, []string{"method", "provider", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "drover_request_seconds", Help: "How long calls took, waiting for their turn included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 13),
		}, []string{"method"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drover_sessions", Help: "Live sessions by provider.",
		}, []string{"provider"}),
	}
	m.active = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drover_policy_info", Help: "The config file in force, by its SHA-256; empty for the defaults.",
	}, []string{"sha256"})
	m.registry.MustRegister(m.requests, m.seconds, m.held, m.active)
	return m
}

func (m *meter) call(method, provider, code string, took time.Duration) {
	m.requests.WithLabelValues(method, provider, code).Inc()
	m.seconds.WithLabelValues(method).Observe(took.Seconds())
}

func (m *meter) sessions(provider string, change float64) {
	m.held.WithLabelValues(provider).Add(change)
}

// policy notes which config is in force.
func (m *meter) policy(hash string) {
	m.active.Reset()
	m.active.WithLabelValues(hash).Set(1)
}

// Metrics gives the broker's counters.
func (b *Broker) Metrics() prometheus.Gatherer { return b.meter.registry }
