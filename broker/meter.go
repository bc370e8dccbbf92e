package broker

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker/trace"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// meter counts what the broker does. Labels are bounded: methods, providers, rules, codes and a few words of our own, never
// an id, a URL, or a word that a caller or a page could choose. docs/observability.md tells what each is for.
type meter struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	decisions *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	depth     prometheus.Gauge
	waits     prometheus.Histogram
	tokens    prometheus.Histogram
	stale     *prometheus.CounterVec
	dialogs   *prometheus.CounterVec
	active    *prometheus.GaugeVec
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "drover_" + name, Help: help}, labels)
}

func newMeter(b *Broker, others []prometheus.Collector) *meter {
	m := &meter{
		registry: prometheus.NewRegistry(),
		requests: counter("requests_total", "Calls that ended, by method, provider and code (ok, or the error's).", "method", "provider", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "drover_request_seconds", Help: "How long calls took, waiting for their turn included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 13),
		}, []string{"method"}),
		decisions: counter("route_decisions_total",
			"Decisions of the policy, by the rule or guard that made them (empty for the defaults) and outcome: allowed, denied, routed, no_provider.", "rule", "outcome"),
		fallbacks: counter("fallbacks_total", "Sessions that one provider did not make and the next was asked for, by the error's code.", "from", "to", "reason"),
		depth:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "drover_queue_depth", Help: "Calls that wait for their turn on a page or session."}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "drover_queue_wait_seconds", Help: "How long calls waited for their turn; those that did not have to are not counted.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		tokens: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "drover_snapshot_tokens", Help: "The size of snapshots in tokens of four bytes, as providers gave them.",
			Buckets: prometheus.ExponentialBuckets(125, 2, 12),
		}),
		stale:   counter("stale_refs_total", "Calls with a ref that stands for nothing any more, by what is gone: its document or its element.", "reason"),
		dialogs: counter("dialogs_total", "Dialogs of pages: opened, accepted, dismissed.", "action"),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "drover_policy_info", Help: "The config file in force, by its SHA-256; empty for the defaults.",
		}, []string{"sha256"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.decisions, m.fallbacks, m.depth, m.waits, m.tokens, m.stale, m.dialogs, m.active, standing{b})
	m.registry.MustRegister(others...)
	return m
}

// call counts a call that ended. Where the call is traced, its trace is the exemplar of how long it took.
func (m *meter) call(ctx context.Context, c *call, err error, took time.Duration) {
	word := wordOf(err)
	m.requests.WithLabelValues(c.method.Name, c.provider, word).Inc()
	seconds := m.seconds.WithLabelValues(c.method.Name)
	if id := trace.ID(ctx); id == "" {
		seconds.Observe(took.Seconds())
	} else if o, ok := seconds.(prometheus.ExemplarObserver); ok {
		o.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": id})
	}
	if c.outcome != "" {
		m.decisions.WithLabelValues(c.ruleName, c.outcome).Inc()
	}
	if fault.ReasonOf(err) == reasonStale {
		gone := "element"
		if fault.From(err).Details["gone"] == "document" {
			gone = "document"
		}
		m.stale.WithLabelValues(gone).Inc()
	}
}

// reasonStale is the protocol's reason for a ref that stands for nothing any more.
const reasonStale = "stale_ref"

// wordOf is the code of an error as the protocol writes it; ok for none.
func wordOf(err error) string {
	if err == nil {
		return "ok"
	}
	return fault.Word(fault.CodeOf(err))
}

// fellBack counts a session that one provider did not make and another was asked for.
func (m *meter) fellBack(from, to string, err error) {
	m.fallbacks.WithLabelValues(from, to, wordOf(err)).Inc()
}

// waiting counts a call that has to wait for its turn; the function ends that.
func (m *meter) waiting() func() {
	began := time.Now()
	m.depth.Inc()
	return func() {
		m.depth.Dec()
		m.waits.Observe(time.Since(began).Seconds())
	}
}

// bytesPerToken is what a token is taken for.
const bytesPerToken = 4

// answered looks at what a provider answered.
func (m *meter) answered(resp proto.Message) {
	s, ok := resp.(*browserv1.SnapshotResponse)
	if !ok {
		return
	}
	size := len(s.GetOutline())
	if size == 0 {
		size = proto.Size(s)
	}
	m.tokens.Observe(float64(size) / bytesPerToken)
}

// heard counts the dialogs that providers tell of.
func (m *meter) heard(kind string, payload *structpb.Struct) {
	switch accepted := payload.GetFields()["accepted"].GetBoolValue(); {
	case kind == "dialog.opened":
		m.dialogs.WithLabelValues("opened").Inc()
	case kind == "dialog.closed" && accepted:
		m.dialogs.WithLabelValues("accepted").Inc()
	case kind == "dialog.closed":
		m.dialogs.WithLabelValues("dismissed").Inc()
	}
}

// policy notes which config is in force.
func (m *meter) policy(hash string) {
	m.active.Reset()
	m.active.WithLabelValues(hash).Set(1)
}

// Metrics gives the broker's counters.
func (b *Broker) Metrics() prometheus.Gatherer { return b.meter.registry }

// standing is what is counted when somebody asks: how providers are, and how many sessions they have.
type standing struct{ broker *Broker }

var (
	upDesc       = prometheus.NewDesc("drover_provider_up", "Whether a provider may take a session (1) or not (0).", []string{"provider"}, nil)
	sessionsDesc = prometheus.NewDesc("drover_sessions", "Sessions by provider and state: ready, or lost and not forgotten yet.", []string{"provider", "state"}, nil)
)

// Describe lists what Collect gives.
func (s standing) Describe(out chan<- *prometheus.Desc) {
	out <- upDesc
	out <- sessionsDesc
}

// Collect looks at the table and the sessions.
func (s standing) Collect(out chan<- prometheus.Metric) {
	counts := map[[2]string]int{}
	for _, row := range s.broker.refresh().rows {
		up := 0.0
		if !row.Disabled && row.Status.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up, row.ID)
		counts[[2]string{row.ID, "ready"}], counts[[2]string{row.ID, "lost"}] = 0, 0
	}
	for _, one := range s.broker.sessions.all(func(*session) bool { return true }) {
		state := strings.ToLower(strings.TrimPrefix(one.describe().GetState().String(), "SESSION_STATE_"))
		counts[[2]string{one.life.ID(), state}]++
	}
	for labels, n := range counts {
		out <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(n), labels[:]...)
	}
}
