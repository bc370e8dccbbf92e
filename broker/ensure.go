package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

var (
	ensureMethod = lookup("session.ensure")
	closeMethod  = lookup("session.close")
)

func lookup(method string) *catalog.Method {
	m, ok := catalog.Lookup(method)
	if !ok {
		panic("broker: the protocol has no " + method)
	}
	return m
}

// ensure gives the caller's session of a name: the one that is there, when it meets what is asked, or a new one. Two who
// ask for the same name at once share one.
func (b *Broker) ensure(ctx context.Context, c *call, ask *browserv1.EnsureSessionRequest) (proto.Message, error) {
	if ask.GetProviderId() == OwnID {
		ask.ProviderId = nil // the broker is the provider that was asked
	}
	placed(ctx)
	key := name{c.who.Principal.ID, ask.GetClientSessionId()}
	sl, before, err := b.sessions.hold(ctx, key)
	if err != nil {
		return nil, err
	}
	defer b.sessions.release(key, sl)

	if s := b.sessions.live(sl); s != nil && s.lostError() == nil {
		resp, err := b.again(ctx, c, s, ask)
		if err == nil || s.lostError() == nil {
			return resp, err
		}
	}
	if s := b.sessions.live(sl); s != nil && ask.GetPersist() {
		if err := s.awaitRelease(ctx); err != nil {
			return nil, err
		}
	}
	if sl.err != nil && sl.attempts > before && sameAsk(sl.failed, ask) {
		return nil, sl.err // it failed while this call waited for it
	}
	s, warnings, err := b.create(ctx, c, ask)
	if err != nil {
		if ctx.Err() == nil {
			b.sessions.settle(sl, nil, ask, err)
		}
		return nil, err
	}
	b.sessions.settle(sl, s, nil, nil)
	return s.ensured(true, s.answer.GetDefaultPageId(), warnings), nil
}

// awaitRelease waits until the provider has forgotten a lost session, whose profile the next one takes.
func (s *session) awaitRelease(ctx context.Context) error {
	s.mu.Lock()
	lost := s.lost != nil
	s.mu.Unlock()
	if !lost {
		return nil
	}
	select {
	case <-s.released:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sameAsk says whether two ask for the same, however long they would wait for it.
func sameAsk(a, b *browserv1.EnsureSessionRequest) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := proto.CloneOf(a), proto.CloneOf(b)
	x.TimeoutMs, y.TimeoutMs = nil, nil
	return proto.Equal(x, y)
}

// again comes back to a session: what is asked must be met by it, and its provider is asked too, which applies the
// viewport and notices a browser that is gone.
func (b *Broker) again(ctx context.Context, c *call, s *session, ask *browserv1.EnsureSessionRequest) (proto.Message, error) {
	c.provider = s.life.ID()
	if err := b.allow(c, s, nil, ""); err != nil {
		return nil, err
	}
	if err := s.meets(ask); err != nil {
		return nil, err
	}
	done := s.enter(c.who)
	defer done()
	ctx, unbind := s.bind(ctx)
	defer unbind()
	down := proto.CloneOf(s.down)
	if ask.Viewport != nil {
		down.Viewport = ask.GetViewport()
	}
	if ask.DialogPolicy != nil {
		down.DialogPolicy = ask.DialogPolicy
	}
	setTimeout(down, c.until)
	c.sent = true
	resp, err := b.pass(s.outward(ctx), s.life, ensureMethod, down)
	if err != nil {
		return nil, b.sessionFault(ctx, s, err)
	}
	answer, ok := resp.(*browserv1.EnsureSessionResponse)
	if !ok {
		return nil, wrongAnswer(s.life.ID(), resp)
	}
	if answer.GetSessionId() != s.native { // the provider made another: what the caller knew of is gone
		b.lose(s, fault.New(fault.BrowserNotRunning, "the provider started it afresh").Reason("provider_exited"))
		b.discard(context.WithoutCancel(ctx), s.life, answer.GetSessionId())
		return nil, s.lostError()
	}
	s.lane.learn(answer.GetDefaultPageId())
	return s.ensured(false, answer.GetDefaultPageId(), s.unmet(ask, answer.GetWarnings())), nil
}

// ensured is the answer to session.ensure, with the broker's ids.
func (s *session) ensured(created bool, page string, warnings []*browserv1.Warning) *browserv1.EnsureSessionResponse {
	resp := proto.CloneOf(s.answer)
	resp.Created, resp.DefaultPageId, resp.Warnings = created, page, warnings
	return resp
}

// meets tells the first demand that the session does not meet. What the caller leaves out, it does not demand.
func (s *session) meets(ask *browserv1.EnsureSessionRequest) error {
	switch want := wanted(ask.GetBrowserPreference()); {
	case ask.GetProviderId() != "" && ask.GetProviderId() != s.life.ID():
		return s.mismatch("provider_id", "it is served by "+s.life.ID())
	case want != "" && want != wanted(s.ask.GetBrowserPreference()) && !s.isBrowser(want):
		return s.mismatch("browser_preference", "its browser is "+s.answer.GetBrowserLabel())
	case ask.Isolation != nil && shared(ask.GetIsolation()) != shared(s.answer.GetIsolation()):
		return s.mismatch("isolation", "it was made with another")
	case ask.GetAttach() == browserv1.Attach_ATTACH_REQUIRE && !s.answer.GetAttachedToExistingBrowser():
		return s.mismatch("attach", "its browser was started for it")
	case ask.GetAttach() == browserv1.Attach_ATTACH_NEVER && s.answer.GetAttachedToExistingBrowser():
		return s.mismatch("attach", "its browser was running before")
	case ask.Persist != nil && ask.GetPersist() != s.ask.GetPersist():
		return s.mismatch("persist", fmt.Sprintf("it was made with persist %t", s.ask.GetPersist()))
	}
	for _, f := range ask.GetRequireFeatures() {
		if !slices.Contains(s.answer.GetFeatures(), f) {
			return s.mismatch("require_features", "it lacks "+f)
		}
	}
	caps := s.life.Describe().GetCapabilities()
	for _, name := range ask.GetRequireMethods() {
		m, ok := catalog.Lookup(name)
		has := slices.Contains(caps.GetCoreMethods(), name) || slices.Contains(caps.GetOptionalMethods(), name)
		if ok && m.Routed() && (!has || slices.Contains(s.lacks, name)) {
			return s.mismatch("require_methods", "it lacks "+name)
		}
	}
	return nil
}

func (s *session) isBrowser(want string) bool {
	k := Candidate{Family: s.answer.GetBrowserFamily(), Label: s.answer.GetBrowserLabel()}
	return k.is(want)
}

func shared(i browserv1.Isolation) bool { return i == browserv1.Isolation_ISOLATION_SHARED }

func (s *session) mismatch(field, why string) error {
	return fault.New(fault.InvalidRequest, "the session %q does not meet %s: %s", s.client, field, why).Reason("session_mismatch").
		Field(field).With("session_id", s.id).Hint("close it first, or use another client_session_id")
}

// create makes a session with the best provider that fits, and with the next one when that fails before anything was done.
func (b *Broker) create(ctx context.Context, c *call, ask *browserv1.EnsureSessionRequest) (*session, []*browserv1.Warning, error) {
	release, err := b.room(c.who)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	route, err := b.route(ctx, c, ask)
	if err != nil {
		return nil, nil, err
	}
	if len(route.Kept) == 0 {
		c.outcome = "no_provider"
		return nil, nil, route.none(ask)
	}
	c.outcome = "routed"
	var failures []error
	for _, k := range route.Kept {
		c.provider = k.Provider
		s, warnings, err := b.make(ctx, c, k, ask, &route.decision)
		b.made(k.Provider, err)
		if len(failures) > 0 {
			b.meter.fellBack(route.Kept[len(failures)-1].Provider, k.Provider, failures[len(failures)-1])
		}
		if err == nil {
			for i, f := range failures {
				warnings = append(warnings, failedOver(route.Kept[i], f))
			}
			return s, append(s.unattached(ask, warnings), k.warnings(ask)...), nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil || !passesOn(err) {
			return nil, nil, route.placeGuard(err)
		}
		b.log.Warn("provider made no session", "provider", k.Provider, "code", fault.Word(fault.CodeOf(err)), "reason", fault.ReasonOf(err))
	}
	c.provider = route.Kept[0].Provider
	return nil, nil, route.allFailed(failures)
}

// capacityRetry is when a caller who has too many sessions may ask again: others of it may have ended by then.
const capacityRetry = 5 * time.Second

// room refuses a session over the caller's limit. The function gives back the place of one that was being made.
func (b *Broker) room(who *Caller) (release func(), err error) {
	limit := b.policy.Load().Config().LimitsOf(who.Principal.Name).Sessions
	if limit == 0 {
		return func() {}, nil
	}
	owner := who.Principal.ID
	b.quotas.mu.Lock()
	defer b.quotas.mu.Unlock()
	have := len(b.sessions.all(func(s *session) bool { return s.owner == owner && s.lostError() == nil })) + b.quotas.making[owner]
	if have >= limit {
		return nil, fault.New(fault.NotReady, "there are %d sessions already, which is the limit", have).Reason("capacity").
			RetryAfter(int(capacityRetry.Milliseconds())).Hint("close one")
	}
	b.quotas.making[owner]++
	return func() {
		b.quotas.mu.Lock()
		defer b.quotas.mu.Unlock()
		if b.quotas.making[owner]--; b.quotas.making[owner] == 0 {
			delete(b.quotas.making, owner)
		}
	}, nil
}

// passesOn says whether another provider may be tried after this failure: nothing was done yet, and the request is not
// what is wrong.
func passesOn(err error) bool {
	switch fault.CodeOf(err) {
	case fault.SetupRequired, fault.BrowserNotRunning, fault.InternalError, fault.UnsupportedMethod, fault.UnsupportedTarget:
		return true
	case fault.NotReady:
		return fault.ReasonOf(err) != "in_use"
	default:
		return false
	}
}

// make makes a session with one candidate. A process that ends meanwhile is started once more.
func (b *Broker) make(ctx context.Context, c *call, k *Candidate, ask *browserv1.EnsureSessionRequest, d *policy.Decision) (*session, []*browserv1.Warning, error) {
	s := &session{id: newSessionID(), owner: c.who.Principal.ID, who: c.who.Principal, client: ask.GetClientSessionId(), ask: ask, made: time.Now(), released: make(chan struct{})}
	s.down = proto.CloneOf(ask)
	s.down.ClientSessionId, s.down.ProviderId, s.down.BrowserPreference = s.id, nil, proto.String(k.word())
	if ask.GetPersist() {
		s.down.ClientSessionId = profileName(name{s.owner, s.client})
	}
	if err := b.contain(s, d); err != nil {
		return nil, nil, err
	}
	answer, err := b.start(ctx, c, k, s)
	if fault.ReasonOf(err) == "provider_exited" && ctx.Err() == nil {
		answer, err = b.start(ctx, c, k, s)
	}
	if err != nil {
		s.leave()
		return nil, nil, err
	}
	warnings := answer.GetWarnings()
	s.settle(c.who, k, answer)
	s.ctx, s.cancel = context.WithCancelCause(b.ctx)
	b.sessions.add(s)
	return s, warnings, nil
}

// start asks a candidate's provider, which is started when it does not run, for the session.
func (b *Broker) start(ctx context.Context, c *call, k *Candidate, s *session) (*browserv1.EnsureSessionResponse, error) {
	life, err := b.acquire(ctx, k.row)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", k.Provider, err)
	}
	ctx, release := whileAlive(ctx, life)
	defer release()
	down := proto.CloneOf(s.down)
	setTimeout(down, c.until)
	c.sent = true
	resp, err := b.pass(s.outward(ctx), life, ensureMethod, down)
	if err != nil {
		var gone *fault.Error
		if errors.As(context.Cause(ctx), &gone) {
			return nil, gone
		}
		return nil, err
	}
	answer, ok := resp.(*browserv1.EnsureSessionResponse)
	if !ok || answer.GetSessionId() == "" {
		return nil, wrongAnswer(k.Provider, resp)
	}
	s.life, s.native = life, answer.GetSessionId()
	return proto.CloneOf(answer), nil
}

func wrongAnswer(provider string, resp proto.Message) error {
	return fault.New(fault.InternalError, "the provider answered session.ensure with a %s without a session_id", resp.ProtoReflect().Descriptor().Name()).
		Provider(provider)
}

// settle fills in what the answer and the candidate tell of the session.
func (s *session) settle(who *Caller, k *Candidate, answer *browserv1.EnsureSessionResponse) {
	caps := s.life.Describe().GetCapabilities()
	answer.SessionId, answer.ProviderId, answer.Warnings = s.id, s.life.ID(), nil
	if s.ask.Isolation != nil {
		answer.Isolation = s.ask.GetIsolation()
	} else if answer.GetIsolation() == browserv1.Isolation_ISOLATION_UNSPECIFIED {
		answer.Isolation = browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION
	}
	if answer.GetBrowserFamily() == "" {
		answer.BrowserFamily = k.Family
	}
	if answer.GetBrowserLabel() == "" {
		answer.BrowserLabel = k.Label
	}
	if len(answer.GetFeatures()) == 0 {
		answer.Features = slices.Compact(slices.Sorted(slices.Values(slices.Concat(caps.GetFeatures(), k.browser.GetFeatures()))))
	}
	s.answer, s.lacks = answer, k.browser.GetWithoutMethods()
	s.facts = sessionFacts(s.ask)
	s.seat = k.row.candidate()
	s.seat.Families, s.seat.Features = []string{answer.GetBrowserFamily()}, answer.GetFeatures()
	s.used = s.made
	s.take(who)
	s.lane.active = answer.GetDefaultPageId()
}

// sessionFacts are what the policy sees of a session.
func sessionFacts(ask *browserv1.EnsureSessionRequest) policy.Session {
	return policy.Session{
		ClientSessionID: ask.GetClientSessionId(), BrowserPreference: ask.GetBrowserPreference(),
		Isolation: enumWord(ask.GetIsolation().String(), "ISOLATION_", "per_client_session"),
		Attach:    enumWord(ask.GetAttach().String(), "ATTACH_", "never"),
		Persist:   ask.GetPersist(), Metadata: ask.GetMetadata().AsMap(),
	}
}

// enumWord gives an enum value as the protocol writes it.
func enumWord(value, prefix, unset string) string {
	w := strings.ToLower(strings.TrimPrefix(value, prefix))
	if w == "unspecified" {
		return unset
	}
	return w
}
