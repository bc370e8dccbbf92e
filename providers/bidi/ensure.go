package bidi

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/containment"
	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// ensure is session.ensure.
func (p *Provider) ensure(ctx context.Context, r *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
	want := demandOf(r)
	p.mu.Lock()
	s := p.clients[r.GetClientSessionId()]
	p.mu.Unlock()
	if s != nil && s.b.gone() {
		s.lose() // The news may not have come this far yet.
		s = nil
	}
	if s != nil {
		if err := s.again(ctx, r, want); err != nil {
			return nil, err
		}
		return s.response(false), nil
	}
	var warnings []*browserv1.Warning
	b, err := p.browserFor(ctx, r, want, &warnings)
	if err != nil {
		return nil, err
	}
	s, err = p.openSession(ctx, b, r, want)
	if err != nil {
		if b.persist {
			b.close(context.WithoutCancel(ctx))
		}
		return nil, err
	}
	resp := s.response(true)
	resp.Warnings = warnings
	return resp, nil
}

func demandOf(r *browserv1.EnsureSessionRequest) demand {
	d := demand{isolation: r.GetIsolation(), attach: r.GetAttach(), persist: r.GetPersist()}
	if d.isolation == browserv1.Isolation_ISOLATION_UNSPECIFIED {
		d.isolation = browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION
	}
	if d.attach == browserv1.Attach_ATTACH_UNSPECIFIED {
		d.attach = browserv1.Attach_ATTACH_NEVER
	}
	return d
}

// browserFor gives the browser that a new session shall use, and starts it or attaches to it where needed.
func (p *Provider) browserFor(ctx context.Context, r *browserv1.EnsureSessionRequest, want demand, warnings *[]*browserv1.Warning) (*browser, error) {
	p.starting.Lock()
	defer p.starting.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	egress, told, err := containment.Admit(ctx, &want.attach, want.isolation, want.persist)
	if err != nil {
		return nil, err
	}
	*warnings = append(*warnings, told...)
	if want.attach == browserv1.Attach_ATTACH_PREFER || want.attach == browserv1.Attach_ATTACH_REQUIRE {
		b, err := p.attach(ctx, r.GetBrowserPreference())
		if err == nil {
			return b, nil
		}
		if want.attach == browserv1.Attach_ATTACH_REQUIRE {
			return nil, err
		}
		*warnings = append(*warnings, &browserv1.Warning{
			Code: "not_attached", Message: "no running browser could be attached to, so one was started: " + fault.From(err).Message,
		})
	}
	config, _ := p.settings()
	found, err := config.choose(r.GetBrowserPreference())
	if err != nil {
		return nil, err
	}
	if found.family == familyChromium && config.sandboxDisabled() {
		*warnings = append(*warnings, &browserv1.Warning{Code: "sandbox_disabled", Message: sandboxMessage})
	}
	if want.persist {
		return p.startPersistent(ctx, found, r.GetClientSessionId(), egress)
	}
	key := found.path
	if egress != "" { // the browser's own traffic finds no way out; each session has its proxy
		key, egress = key+" contained", containment.Nowhere
	}
	p.mu.Lock()
	b := p.shared[key]
	p.mu.Unlock()
	if b != nil && !b.gone() {
		return b, nil
	}
	if b, err = p.start(ctx, found, "", egress); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.shared[key] = b
	p.mu.Unlock()
	return b, nil
}

// start starts a browser; profile is its folder, or "" for a temporary one, and egress the proxy that keeps it inside a
// guard, or "" for none.
func (p *Provider) start(ctx context.Context, found product, profile, egress string) (_ *browser, err error) {
	plugins.Progress(ctx, "starting_browser", "starting "+found.label)
	ctx, end := plugins.Trace(ctx, "start browser")
	defer func() { end(err) }()
	begin := p.startChromium
	if found.family == familyFirefox {
		begin = p.startFirefox
	}
	b, err := begin(ctx, found, profile, egress)
	if err == nil {
		b.product.version = b.caps.BrowserVersion
		return b, nil
	}
	why := err.Error()
	if b != nil {
		if line := b.proc.out.lastLine(); line != "" && ctx.Err() == nil {
			why += " (" + line + ")"
		}
		b.close(context.WithoutCancel(ctx))
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fault.New(fault.NotReady, "%s did not start: %s", found.label, why).Reason("browser_start_failed").
		Retry("same").With("browser", found.path).Hint("run provider.verify for what is wrong").Cause(err)
}

// openSession makes a session in a browser, with its first page.
func (p *Provider) openSession(ctx context.Context, b *browser, r *browserv1.EnsureSessionRequest, want demand) (*session, error) {
	config, host := p.settings()
	s := &session{
		p: p, b: b, id: "bidi-" + newToken(), client: r.GetClientSessionId(), demand: want, user: defaultUser, engine: inpage.NewSession(),
		viewport: r.GetViewport(), policy: r.GetDialogPolicy(), changed: make(chan struct{}),
		files: shelf.Shelf{Root: host.GetRunDir(), Prefix: folderPrefix("files-"), Downloads: host.GetDownloadDir()},
	}
	if s.viewport == nil && !b.attached && config.headless() {
		s.viewport = &browserv1.Size{Width: defaultWidth, Height: defaultHeight}
	}
	if want.isolation != browserv1.Isolation_ISOLATION_SHARED && !b.persist {
		res, err := do(ctx, b.conn, browserCreateUserContext, newUserContext{Proxy: b.proxyFor(plugins.Egress(ctx))})
		if err != nil {
			return nil, s.refused(ctx, err)
		}
		s.user = res.UserContext
	}
	b.mu.Lock()
	b.sessions[s] = struct{}{}
	if s.user != defaultUser {
		b.users[s.user] = s
	}
	b.mu.Unlock()
	err := s.setUp(ctx)
	if err == nil {
		_, err = s.newPage(ctx, false)
	}
	if err != nil {
		s.end(context.WithoutCancel(ctx))
		return nil, s.refused(ctx, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.clients[s.client]; old != nil && !old.b.gone() {
		// Another call with the same name was faster; its session is the one.
		b.wg.Go(func() { s.end(context.WithoutCancel(ctx)) })
		return old, nil
	}
	p.sessions[s.id] = s
	p.clients[s.client] = s
	return s, nil
}

// setUp prepares a user context before it has a page: viewport, engine, downloads. A person's own browser keeps its ways
// with downloads.
func (s *session) setUp(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if s.viewport != nil && s.user != defaultUser {
		group.Go(func() error {
			_, err := do(ctx, s.b.conn, contextViewport, viewportParams{
				UserContexts: []string{s.user}, Viewport: &viewport{s.viewport.GetWidth(), s.viewport.GetHeight()},
			})
			return err
		})
	}
	if s.user != defaultUser {
		group.Go(func() error {
			res, err := do(ctx, s.b.conn, scriptPreload, preloadParams{
				Function: "() => {" + s.engine.Script() + "}", Sandbox: sandbox, UserContexts: []string{s.user},
			})
			s.preload = res.Script
			return err
		})
	}
	if !s.b.attached || s.user != defaultUser {
		group.Go(func() error {
			dir, err := s.incoming()
			if err != nil {
				return err
			}
			_, err = do(ctx, s.b.conn, browserDownloads, downloadBehavior{
				Behavior: &downloadTarget{Type: "allowed", Folder: dir}, UserContexts: []string{s.user},
			})
			return err
		})
	}
	return group.Wait()
}

// again meets session.ensure for a session that is there.
func (s *session) again(ctx context.Context, r *browserv1.EnsureSessionRequest, want demand) error {
	mismatch := func(field, has string) error {
		return fault.New(fault.InvalidRequest, "the session is there with another %s (%s)", field, has).Reason("session_mismatch").
			Field(field).Hint("ask for the same, or use another client_session_id")
	}
	prefer := r.GetBrowserPreference()
	switch {
	case (want.isolation == browserv1.Isolation_ISOLATION_SHARED) != (s.demand.isolation == browserv1.Isolation_ISOLATION_SHARED) && r.Isolation != nil:
		return mismatch("isolation", "shared or not")
	case want.persist != s.demand.persist && r.Persist != nil:
		return mismatch("persist", "kept or not")
	case want.attach == browserv1.Attach_ATTACH_REQUIRE && !s.b.attached, r.Attach != nil && want.attach == browserv1.Attach_ATTACH_NEVER && s.b.attached:
		return mismatch("attach", "attached or not")
	case slices.Contains([]string{familyFirefox, familyChromium}, prefer) && prefer != s.b.product.family:
		return mismatch("browser_preference", s.b.product.family)
	}
	s.b.mu.Lock()
	if r.DialogPolicy != nil {
		s.policy = r.GetDialogPolicy()
	}
	var pages []*page
	if r.Viewport != nil {
		s.viewport = r.GetViewport()
		pages = append(pages, s.pages...)
	}
	s.b.mu.Unlock()
	for _, pg := range pages {
		if err := pg.resize(ctx, r.GetViewport()); err != nil {
			return err
		}
	}
	return nil
}

// resize gives a page the session's viewport.
func (p *page) resize(ctx context.Context, size *browserv1.Size) error {
	if size == nil {
		return nil
	}
	_, err := do(ctx, p.b.conn, contextViewport, viewportParams{Context: p.context, Viewport: &viewport{size.GetWidth(), size.GetHeight()}})
	if err != nil {
		if refused(err, "no such frame") {
			return nil // It was closed meanwhile.
		}
		return p.explain(ctx, err)
	}
	return nil
}

// response is what session.ensure answers.
func (s *session) response(created bool) *browserv1.EnsureSessionResponse {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	resp := &browserv1.EnsureSessionResponse{
		SessionId: s.id, BrowserFamily: s.b.product.family, BrowserLabel: s.b.product.label, AttachedToExistingBrowser: s.b.attached,
		Isolation: s.demand.isolation, ProviderId: s.p.srv.Info().ID, Created: created, Features: featuresOf(s.b.product.family),
	}
	if s.active != nil {
		resp.DefaultPageId = s.active.id
	}
	return resp
}

// closeSession is session.close.
func (p *Provider) closeSession(ctx context.Context, r *browserv1.CloseSessionRequest) (*browserv1.CloseSessionResponse, error) {
	s, err := p.session(r.GetSessionId())
	if err != nil {
		return nil, err
	}
	p.drop(s)
	s.end(ctx)
	resp := &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}
	if s.b.attached {
		resp.Disposition = browserv1.Disposition_DISPOSITION_DETACHED
	}
	return resp, nil
}

// refused gives an error of the browser at large the protocol's words.
func (s *session) refused(ctx context.Context, err error) error {
	var own *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.b.gone(), errors.Is(err, errLinkDown):
		<-s.b.lost
		return errBrowserGone().Cause(err)
	}
	return fault.New(fault.InternalError, "the browser refused: %v", err).Cause(err)
}
