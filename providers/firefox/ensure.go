package firefox

import (
	"context"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// ensure is session.ensure. A session always attaches to the person's Firefox, for there is no other.
func (p *Provider) ensure(ctx context.Context, r *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
	want := demandOf(r)
	p.mu.Lock()
	s := p.clients[r.GetClientSessionId()]
	p.mu.Unlock()
	if s != nil && s.b.gone() {
		<-s.b.lost
		s = nil
	}
	if s != nil {
		if err := s.again(ctx, r, want); err != nil {
			return nil, err
		}
		return s.response(false), nil
	}
	if g := p.guestOf(r.GetClientSessionId()); g != nil {
		return g.response(false), nil
	}
	if r.GetPersist() {
		return nil, fault.New(fault.InvalidRequest, "a session in a person's own Firefox has no profile of its own to keep").Field("persist").
			Reason("persist_unsupported").Hint("the person's profile keeps everything already; leave persist out")
	}
	b, err := p.choose(ctx, r.GetBrowserPreference())
	if err != nil {
		return nil, err
	}
	if b.public() {
		g, err := p.openGuest(ctx, b, r, want)
		if err != nil {
			return nil, err
		}
		return g.response(true), nil
	}
	s, err = p.openSession(ctx, b, r, want)
	if err != nil {
		return nil, err
	}
	resp := s.response(true)
	if want.isolation != browserv1.Isolation_ISOLATION_SHARED {
		resp.Warnings = append(resp.Warnings, &browserv1.Warning{
			Code: "reduced_fidelity", Message: "the session has a window of its own, but shares cookies and storage with the person's Firefox",
		})
	}
	return resp, nil
}

func demandOf(r *browserv1.EnsureSessionRequest) demand {
	d := demand{isolation: r.GetIsolation(), attach: r.GetAttach()}
	if d.isolation == browserv1.Isolation_ISOLATION_UNSPECIFIED {
		d.isolation = browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION
	}
	return d
}

// choose gives the browser for a preference: the one that the config names, else the first with our add-on, else the public bridge.
func (p *Provider) choose(ctx context.Context, preference string) (*browser, error) {
	config, _ := p.settings()
	var found *browser
	for _, b := range p.discover(ctx) {
		switch {
		case config.Profile != "" && b.link.hello.Instance != config.Profile,
			strings.EqualFold(preference, labelPublic) && !b.public(),
			b.unfit() != nil:
			continue
		case found == nil || found.public() && !b.public():
			found = b
		}
	}
	if found != nil {
		return found, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	why := p.missing(ctx)
	for _, b := range p.discover(ctx) {
		if d := b.unfit(); d != nil {
			why = d // One is there, and this is what it lacks.
		}
	}
	steps := make([]any, len(why.GetManualSteps()))
	for i, s := range why.GetManualSteps() {
		steps[i] = s
	}
	e := fault.New(fault.SetupRequired, "%s", why.GetMessage()).Reason(why.GetCode()).With("manual_steps", steps)
	if len(why.GetManualSteps()) > 0 {
		e.Hint("%s", why.GetManualSteps()[0])
	}
	return nil, e
}

// openSession makes a session with a window of its own.
func (p *Provider) openSession(ctx context.Context, b *browser, r *browserv1.EnsureSessionRequest, want demand) (*session, error) {
	_, host := p.settings()
	s := newSession(p, b, r.GetClientSessionId(), want, host.GetRunDir())
	b.mu.Lock()
	b.sessions[s.name] = s
	b.mu.Unlock()
	var opened struct {
		Tab int64 `json:"tab"`
	}
	params := map[string]any{}
	if v := r.GetViewport(); v != nil {
		params["width"], params["height"] = v.GetWidth(), v.GetHeight()
	}
	if err := b.request(ctx, s, "session.open", params, &opened); err != nil {
		err = s.refused(ctx, err)
		s.end(context.WithoutCancel(ctx))
		return nil, err
	}
	pg := s.adopt(opened.Tab)
	b.mu.Lock()
	s.activateLocked(pg) // A tab that the person shared may have been told of first.
	s.viewport = r.GetViewport()
	b.mu.Unlock()
	p.mu.Lock()
	old, closed := p.clients[s.client], p.closed
	if old == nil && !closed {
		p.sessions[s.id], p.clients[s.client] = s, s
	}
	p.mu.Unlock()
	if old != nil || closed {
		s.end(context.WithoutCancel(ctx)) // Another call with the same name was faster; its session is the one.
	}
	switch {
	case closed:
		return nil, errBrowserGone()
	case old != nil:
		return old, nil
	}
	return s, nil
}

// again meets session.ensure for a session that is there.
func (s *session) again(ctx context.Context, r *browserv1.EnsureSessionRequest, want demand) error {
	if r.Isolation != nil && (want.isolation == browserv1.Isolation_ISOLATION_SHARED) != (s.demand.isolation == browserv1.Isolation_ISOLATION_SHARED) {
		return fault.New(fault.InvalidRequest, "the session is there with another isolation").Reason("session_mismatch").
			Field("isolation").Hint("ask for the same, or use another client_session_id")
	}
	if r.Viewport == nil {
		return nil
	}
	s.b.mu.Lock()
	s.viewport = r.GetViewport()
	pages := append([]*page(nil), s.pages...)
	s.b.mu.Unlock()
	for _, pg := range pages {
		if err := pg.resize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// response is what session.ensure answers.
func (s *session) response(created bool) *browserv1.EnsureSessionResponse {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.EnsureSessionResponse{
		SessionId: s.id, BrowserFamily: family, BrowserLabel: s.b.label(), AttachedToExistingBrowser: true,
		Isolation: s.demand.isolation, ProviderId: s.p.srv.Info().ID, Created: created, Features: features,
	}
	if s.active != nil {
		resp.DefaultPageId = s.active.id
	}
	return resp
}

// closeSession is session.close. It closes what the session opened, and leaves what the person shared.
func (p *Provider) closeSession(ctx context.Context, r *browserv1.CloseSessionRequest) (*browserv1.CloseSessionResponse, error) {
	if g := p.guest(r.GetSessionId()); g != nil {
		return g.close(), nil
	}
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	p.drop(s, false)
	s.end(ctx)
	return &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_DETACHED}, nil
}
