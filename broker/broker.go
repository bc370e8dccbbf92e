// Package broker carries a call from a face to a provider and its answer back: it looks the method up, checks the fields,
// finds the session and its owner, asks the policy, picks a provider for a new session, keeps calls in order, and replaces
// ids on the way down and up. It takes providers as Sources and knows no process.
package broker

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker/egress"
	"github.com/droverhq/drover/broker/trace"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// OwnID is the provider_id of the broker itself.
const OwnID = "drover"

// hopGrace is how much longer the broker waits than the provider was told to, so that the provider's own answer wins.
const hopGrace = time.Second

// callIDKey is the gRPC metadata in which a provider gets the id that its progress reports carry.
const callIDKey = "drover-call-id"

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

// call is one call under way.
type call struct {
	who    *Caller
	method *catalog.Method
	req    proto.Message
	until  time.Time // the caller's deadline
	id     string    // the broker's own, where the caller gave one; progress reports carry it
	theirs *structpb.Value

	provider string   // who answered
	rule     string   // file and line of what the policy decided by, where something was written
	ruleName string   // its name
	outcome  string   // what the policy decided: allowed, denied, routed, no_provider; empty where it was not asked
	url      string   // the first URL of the request, without query and fragment
	custom   string   // the custom method that provider.command names
	without  []string // providers that a question leaves out
	sent     bool     // it left for the provider
}

// Call answers one method for a caller. The request belongs to the broker from then on: ids in it are replaced. An error is
// a fault, and names the provider that had a part in it.
func (b *Broker) Call(ctx context.Context, who *Caller, m *catalog.Method, req proto.Message) (proto.Message, error) {
	start := time.Now()
	c := &call{who: who, method: m, req: req, until: start.Add(catalog.Timeout(m, req))}
	if d, ok := ctx.Deadline(); ok && d.Before(c.until) {
		c.until = d
	}
	ctx, cancel := context.WithDeadline(ctx, c.until.Add(hopGrace))
	defer cancel()
	ctx, forget := b.calls.note(ctx, c)
	defer forget()
	ctx, leave, err := b.halt.enter(ctx)
	defer leave()

	var resp proto.Message
	if err == nil {
		resp, err = b.traced(ctx, c, b.answer)
	}
	if err != nil {
		err = b.placeFiles(c, c.fail(ctx, err))
	}
	b.quotas.spend(who.Principal.ID, b.policy.Load().Config().LimitsOf(who.Principal.Name), resp)
	b.record(ctx, c, err, time.Since(start))
	return resp, err
}

// answer is the way of a call, from top to bottom.
func (b *Broker) answer(ctx context.Context, c *call) (proto.Message, error) {
	if err := c.method.Check(c.req); err != nil {
		return nil, err
	}
	if err := b.quotas.admit(c.who.Principal.ID, b.policy.Load().Config().LimitsOf(c.who.Principal.Name)); err != nil {
		return nil, err
	}
	if !c.method.NeedsSession() {
		return b.own(ctx, c)
	}
	if r, ok := c.req.(*browserv1.CloseSessionRequest); ok {
		return b.close(ctx, c, r)
	}
	s, err := b.sessions.find(c.who, catalog.SessionID(c.req))
	if err != nil {
		return nil, err
	}
	c.provider = s.life.ID()
	if err := b.allow(c, s, nil, ""); err != nil {
		return nil, err
	}
	if slices.Contains(s.lacks, c.method.Name) {
		return nil, fault.New(fault.UnsupportedMethod, "%s cannot do %s with %s", c.provider, c.method.Name, s.answer.GetBrowserLabel())
	}
	return b.inLane(ctx, c, s, func(ctx context.Context) (proto.Message, error) {
		catalog.SetSessionID(c.req, s.native)
		catalog.SetProviderID(c.req, "")
		setTimeout(c.req, c.until)
		return b.pass(ctx, s.life, c.method, c.req)
	})
}

// own answers the methods that are not about a session, or not only.
func (b *Broker) own(ctx context.Context, c *call) (proto.Message, error) {
	switch r := c.req.(type) {
	case *browserv1.EnsureSessionRequest: // which has its place when it waits for others of its name
		return b.ensure(ctx, c, r)
	case *browserv1.ListSessionsRequest:
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.list(c, r)
	case *browserv1.DescribeRequest:
		placed(ctx)
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.describe(ctx, r)
	case *browserv1.StatusRequest:
		placed(ctx)
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.status(ctx, r)
	case *browserv1.CommandRequest:
		return b.command(ctx, c, r)
	case *browserv1.DrainRequest:
		return b.drain(ctx, c, r)
	case *browserv1.RestartRequest:
		return b.restart(ctx, c, r)
	}
	switch c.method.Spec.GetAnswerer() {
	case browserv1.Answerer_ANSWERER_FACE:
		return nil, fault.New(fault.UnsupportedMethod, "%s belongs to a connection", c.method.Name).
			Hint("call it over stdio, the unix socket or the WebSocket")
	case browserv1.Answerer_ANSWERER_UNSPECIFIED:
		return b.forward(ctx, c)
	default:
		return nil, fault.New(fault.UnsupportedMethod, "%s cannot be called", c.method.Name)
	}
}

// inLane makes a call to a session's provider when its turn comes, and learns from the answer.
func (b *Broker) inLane(ctx context.Context, c *call, s *session, send func(context.Context) (proto.Message, error)) (proto.Message, error) {
	done := s.enter(c.who)
	defer done()
	ctx, unbind := s.bind(ctx)
	defer unbind()
	turn := s.lane.enter(c.method, c.req)
	defer s.lane.leave(turn)
	placed(ctx)
	if err := b.await(ctx, c, turn); err != nil {
		return nil, err
	}
	page := catalog.PageID(c.req)
	c.sent = true
	began := time.Now()
	resp, err := send(ctx)
	if refusal := s.refused(c, began, resp, err); refusal != nil {
		return nil, refusal
	}
	if err != nil {
		return nil, b.sessionFault(ctx, s, err)
	}
	b.meter.answered(resp)
	if active, ok := activePage(c.req, page, resp); ok {
		s.lane.learn(active)
	}
	return resp, nil
}

// await waits for a call's turn.
func (b *Broker) await(ctx context.Context, c *call, t *turn) error {
	if t.free() {
		return nil
	}
	defer b.meter.waiting()()
	return t.wait(ctx, c.until)
}

// allow asks the policy about a call on a session, or about a provider, and opens its URLs exactly as they were checked.
func (b *Broker) allow(c *call, s *session, row *Row, custom string) error {
	f := policy.Facts{Method: c.method.Name, ReadOnly: c.method.Spec.GetReadOnly(), Custom: custom, Client: client(c.who)}
	c.custom = custom
	switch {
	case s != nil:
		seat := s.seat
		seat.Sessions, seat.Latency = b.held(seat.ID), b.health.latency(seat.ID)
		f.Session, f.Providers = s.facts, []policy.Candidate{seat}
	case row != nil:
		f.Providers = []policy.Candidate{b.seat(row)}
	}
	for _, field := range c.method.Spec.GetUrlFields() {
		text := catalog.Texts(c.req, field)
		if len(text) == 0 {
			continue
		}
		u, err := policy.ParseURL(text[0])
		if err != nil {
			return fault.New(fault.InvalidRequest, "%s is not an absolute URL", field).Field(field).
				Hint("write it with its scheme, such as https://example.com/").Cause(err)
		}
		setText(c.req, field, u.Text)
		f.URLs = append(f.URLs, u)
		if c.url == "" {
			c.url = bare(u)
		}
	}
	return b.decide(c, s, f)
}

// decide asks the policy, and notes what it decided by.
func (b *Broker) decide(c *call, s *session, f policy.Facts) error {
	d := b.policy.Load().Decide(f)
	b.recent.add(f)
	c.decided(&d)
	if d.Denied == nil && s != nil && s.proxy == nil && d.Reach.Contained() && c.method.Name != closeMethod.Name {
		name, where := d.Reach.Guard()
		c.rule = where
		return fault.New(fault.PermissionDenied, "the guard %q at %s holds for the session now, which was made before it", name, where).
			Reason(policy.ReasonPolicy).With("rule", name).With("where", where).Hint("close it and ensure it again")
	}
	return denied(d.Denied)
}

// decided notes where the rule stands that a decision was made by.
func (c *call) decided(d *policy.Decision) {
	c.rule, c.ruleName, c.outcome = "", "", "allowed"
	switch {
	case d.Denied != nil:
		c.rule, c.ruleName, c.outcome = d.Denied.Where, d.Denied.Rule, "denied"
	case d.Allowed != "":
		c.rule = d.Allowed
	case len(d.Matched) > 0:
		c.rule, c.ruleName = d.Matched[0].Where, d.Matched[0].Name
	}
}

func client(c *Caller) policy.Client {
	return policy.Client{Name: c.Principal.Name, Labels: c.Principal.Labels}
}

// denied makes the fault of a denial; nil for none.
func denied(d *policy.Denial) error {
	if d == nil {
		return nil
	}
	e := fault.New(fault.PermissionDenied, "%s", d.Message).Reason(d.Reason)
	switch {
	case d.Hint != "":
		e.Hint("%s", d.Hint)
	case d.Where != "":
		e.Hint("it stands at %s", d.Where)
	}
	if d.Rule != "" {
		e.With("rule", d.Rule)
	}
	if d.Where != "" {
		e.With("where", d.Where)
	}
	return e
}

// fail makes the fault that the caller gets: the cause of an end that was forced, the protocol's word for a deadline, and
// who had a part in it.
func (c *call) fail(ctx context.Context, err error) error {
	var forced, known *fault.Error
	e := fault.From(err)
	switch late := errors.Is(ctx.Err(), context.DeadlineExceeded); {
	case errors.As(context.Cause(ctx), &forced):
		e = forced
	case late, errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &known):
		e = c.late()
	case ctx.Err() != nil:
		e = fault.From(ctx.Err())
	}
	return e.Clone().Provider(c.provider).Method(c.method.Name)
}

// late is the fault of a call that ran out of time on the way.
func (c *call) late() *fault.Error {
	code, acted := fault.NotReady, c.sent && !c.method.Spec.GetReadOnly() && !c.method.Spec.GetIdempotent()
	if c.method.Spec.GetNavigates() {
		code = fault.NavigationTimeout
	}
	e := fault.New(code, "%s ran out of time", c.method.Name).Reason("deadline_exceeded")
	switch {
	case !c.sent:
		e.Hint("it was still waiting for earlier calls")
	case acted && code == fault.NotReady:
		e.Retry("").Hint("it may have had an effect; look with page.snapshot first")
	}
	return e
}

// record logs and counts a call that ended.
func (b *Broker) record(ctx context.Context, c *call, err error, took time.Duration) {
	word := wordOf(err)
	b.meter.call(ctx, c, err, took)
	if c.sent && err == nil {
		b.health.took(c.provider, took)
	}
	if b.audit != nil {
		b.audit(c.entry(word, err, took))
	}
	if !b.log.IsInfo() {
		return
	}
	args := []any{"method", c.method.Name, "provider", c.provider, "caller", c.who.Principal.Name, "code", word, "ms", took.Milliseconds()}
	if r := fault.ReasonOf(err); r != "" {
		args = append(args, "reason", r)
	}
	b.log.Info("call", args...)
}

// calls finds a call by the id that its progress reports carry.
type calls struct {
	last atomic.Uint64
	mu   sync.Mutex
	byID map[string]*call
}

// note gives a call an id, where its caller gave it one that progress could be told under.
func (t *calls) note(ctx context.Context, c *call) (context.Context, func()) {
	theirs, ok := ctx.Value(requestKey{}).(*structpb.Value)
	if !ok {
		return ctx, func() {}
	}
	c.theirs = theirs
	c.id = strconv.FormatUint(t.last.Add(1), 36)
	t.mu.Lock()
	t.byID[c.id] = c
	t.mu.Unlock()
	return metadata.AppendToOutgoingContext(ctx, callIDKey, c.id), func() {
		t.mu.Lock()
		delete(t.byID, c.id)
		t.mu.Unlock()
	}
}
