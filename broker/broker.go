// Package broker carries a call from a face to a provider and its answer back: it looks the method up, checks the fields,
// finds the session and its owner, asks the policy, picks a provider for a new session, keeps calls in order, and replaces
// ids on the way down and up. It takes providers as Sources and knows no process.
package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/droverhq/drover/broker/egress"
	"github.com/droverhq/drover/broker/trace"
	"github.com/droverhq/drover/policy"
)

// OwnID is the provider_id of the broker itself.
const OwnID = "drover"

// Options make a broker; the zero value is good.
type Options struct {
	// Policy decides; nil for the default one.
	Policy *policy.Policy
	// Sources are the providers; SetSources changes them.
	Sources []Source
	// Logger gets one line a call; nil for none.
	Logger hclog.Logger
	// Tracer tells the way of each call; nil for nobody.
	Tracer *trace.Tracer
	// Version is the program's version, which provider.describe tells.
	Version string
	// Resolve gives the addresses of host names for guards; nil for the system's resolver.
	Resolve egress.Resolve
	// Collectors are what else Metrics tells, such as of provider processes.
	Collectors []prometheus.Collector
	// Audit gets every call that ended; nil for none. It must not wait.
	Audit func(Entry)
}

// Broker serves the normalized methods. All its methods may be called concurrently.
type Broker struct {
	log     hclog.Logger
	version string
	meter   *meter
	tracer  *trace.Tracer

	applying sync.RWMutex // over the two that follow, where they have to belong together
	policy   atomic.Pointer[policy.Policy]
	sources  atomic.Pointer[[]Source]
	table    atomic.Pointer[Table]

	sessions sessions
	hub      hub
	lives    lives
	calls    calls
	halt     *halt
	quotas   quotas
	health   health
	recent   recent
	audit    func(Entry)
	resolve  egress.Resolve

	ctx    context.Context // ends with the broker
	cancel context.CancelCauseFunc
	work   work
}

// work is the broker's own goroutines.
type work struct {
	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
}

// run does something beside the rest; after the end, when nothing is left to wait for, at once.
func (w *work) run(f func()) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		f()
		return
	}
	w.wg.Go(f)
	w.mu.Unlock()
}

// end waits for everything that runs.
func (w *work) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wg.Wait()
}

// New makes a broker. Close ends it.
func New(o Options) *Broker {
	b := &Broker{
		log: o.Logger, version: o.Version, tracer: o.Tracer, sessions: newSessions(),
		hub: hub{subs: map[*Subscription]struct{}{}}, lives: lives{known: map[Provider]struct{}{}},
		calls: calls{byID: map[string]*call{}}, halt: newHalt(), quotas: quotas{byOwner: map[string]*quota{}, making: map[string]int{}}, health: newHealth(), audit: o.Audit, resolve: o.Resolve,
	}
	b.meter = newMeter(b, o.Collectors)
	if b.log == nil {
		b.log = hclog.NewNullLogger()
	}
	if o.Policy == nil {
		o.Policy = policy.New(nil)
	}
	b.ctx, b.cancel = context.WithCancelCause(context.Background())
	b.policy.Store(o.Policy)
	b.meter.policy(o.Policy.Config().Hash)
	b.SetSources(o.Sources)
	b.work.run(b.reap)
	return b
}

// Apply puts another policy and another set of providers in force at once; sessions stay, with the life they have.
func (b *Broker) Apply(p *policy.Policy, sources []Source) {
	s := slices.Clone(sources)
	b.applying.Lock()
	b.policy.Store(p)
	b.sources.Store(&s)
	b.applying.Unlock()
	b.meter.policy(p.Config().Hash)
	b.refresh()
}

// SetPolicy puts another policy in force; sessions stay.
func (b *Broker) SetPolicy(p *policy.Policy) {
	b.policy.Store(p)
	b.meter.policy(p.Config().Hash)
	b.refresh()
}

// Policy gives the policy in force.
func (b *Broker) Policy() *policy.Policy { return b.policy.Load() }

// SetSources puts another set of providers in the table; sessions stay with the life they have.
func (b *Broker) SetSources(sources []Source) {
	s := slices.Clone(sources)
	b.sources.Store(&s)
	b.refresh()
}

// Close closes every session, waits for that at most until ctx ends, and ends the broker. Calls under way fail.
func (b *Broker) Close(ctx context.Context) {
	b.halt.close()
	b.halt.cancel(ShuttingDown())
	b.closeAll(ctx, b.sessions.all(func(*session) bool { return true }), "shutdown")
	b.cancel(ShuttingDown())
	b.work.end()
}
