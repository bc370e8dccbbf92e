package cdp

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	browserdomain "github.com/chromedp/cdproto/browser"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/containment"
	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/shelf"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

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
	if p.remote != nil {
		if egress != "" {
			return nil, fault.New(fault.PermissionDenied, "a guard holds for the session, and a person's browser cannot be kept inside it").
				Reason("policy_denied").Hint("ask for another provider")
		}
		return p.dial(ctx, r, warnings)
	}
	if want.attach == browserv1.Attach_ATTACH_PREFER || want.attach == browserv1.Attach_ATTACH_REQUIRE {
		b, err := p.attach(ctx)
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
	config := p.settings()
	if config.sandboxDisabled() {
		*warnings = append(*warnings, &browserv1.Warning{Code: "sandbox_disabled", Message: sandboxMessage})
	}
	found, err := config.choose(r.GetBrowserPreference())
	if err != nil {
		return nil, err
	}
	key, more := found.path, []string(nil)
	if egress != "" { // the browser's own traffic finds no way out; each session has its proxy
		key, more = key+" contained", containment.Chromium(containment.Nowhere)
	}
	if want.persist {
		if egress != "" {
			more = containment.Chromium(egress)
		}
		return p.startPersistent(ctx, found, r.GetClientSessionId(), more...)
	}
	p.mu.Lock()
	b := p.shared[key]
	p.mu.Unlock()
	if b != nil && !b.gone() {
		return b, nil
	}
	if b, err = p.start(ctx, found, "", nil, more...); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.shared[key] = b
	p.mu.Unlock()
	return b, nil
}

// start starts a browser; dir is its profile, or "" for a temporary one. The browser lets go of the lock when it is gone.
func (p *Provider) start(ctx context.Context, found product, dir string, lock *profileLock, more ...string) (_ *browser, err error) {
	config := p.settings()
	plugins.Progress(ctx, "starting_browser", "starting "+found.label)
	ctx, end := plugins.Trace(ctx, "start browser")
	defer func() { end(err) }()
	p.mu.Lock()
	runDir := p.host.GetRunDir()
	p.mu.Unlock()
	proc, conn, err := startProcess(found.path, append(config.arguments(), more...), dir, runDir)
	if err != nil {
		return nil, errStart(found, err.Error()).Cause(err)
	}
	b, err := p.connect(conn, found, proc, lock) //nolint:contextcheck // the browser outlives the call that starts it
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.browsers[b] = struct{}{}
	p.mu.Unlock()
	if err := b.begin(ctx); err != nil {
		b.close(context.WithoutCancel(ctx))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, errStart(found, proc.stderr.lastLine()).Cause(err)
	}
	return b, nil
}

func errStart(found product, why string) *fault.Error {
	return fault.New(fault.NotReady, "%s did not start: %s", found.label, why).Reason("browser_start_failed").
		Retry("same").With("browser", found.path).Hint("run provider.verify for what is wrong")
}

// begin has the browser attach this provider to every page before it runs.
func (b *browser) begin(ctx context.Context) error {
	version, err := ask(ctx, b, browserdomain.GetVersion, protocol.Empty{})
	if err != nil {
		return err
	}
	b.product.fromUserAgent(version.Product)
	_, err = ask(ctx, b, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: yes(), Filter: only("page"),
	})
	return err
}

// openSession makes a session in a browser, with its first page.
func (p *Provider) openSession(ctx context.Context, b *browser, r *browserv1.EnsureSessionRequest, want demand) (*session, error) {
	p.mu.Lock()
	runDir, downloads := p.host.GetRunDir(), p.host.GetDownloadDir()
	p.mu.Unlock()
	s := &session{
		files: shelf.Shelf{Root: runDir, Prefix: profilePrefix + strconv.Itoa(os.Getpid()) + "-files-", Downloads: downloads},
		p:     p, b: b, id: p.srv.Info().ID + "-" + newToken(), client: r.GetClientSessionId(), demand: want, engine: inpage.NewSession(),
		viewport: r.GetViewport(), policy: r.GetDialogPolicy(), changed: make(chan struct{}),
	}
	if s.viewport == nil && !b.attached && p.settings().headless() {
		s.viewport = &browserv1.Size{Width: defaultWidth, Height: defaultHeight}
	}
	if want.isolation != browserv1.Isolation_ISOLATION_SHARED && !b.persist && p.remote == nil {
		params := target.CreateBrowserContextParams{DisposeOnDetach: yes()}
		if at := plugins.Egress(ctx); at != "" {
			params.ProxyServer, params.ProxyBypassList = "http://"+at, containment.Bypass
		}
		res, err := ask(ctx, b, target.CreateBrowserContext, params)
		if err != nil {
			return nil, s.refused(ctx, err)
		}
		s.context = res.BrowserContextID
	}
	b.mu.Lock()
	b.sessions[s] = struct{}{}
	if s.context != "" {
		b.contexts[s.context] = s
	}
	b.mu.Unlock()
	if err := s.watchDownloads(ctx); err != nil {
		s.end(context.WithoutCancel(ctx))
		return nil, s.refused(ctx, err)
	}
	if _, err := s.newPage(ctx, false); err != nil {
		s.end(context.WithoutCancel(ctx))
		return nil, s.refused(ctx, err)
	}
	if b.attached && s.context == "" && p.remote == nil {
		if err := s.adopt(ctx); err != nil {
			s.end(context.WithoutCancel(ctx))
			return nil, s.refused(ctx, err)
		}
	}
	p.mu.Lock()
	old := p.clients[s.client]
	if old == nil || old.b.gone() {
		p.sessions[s.id] = s
		p.clients[s.client] = s
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	s.end(context.WithoutCancel(ctx)) // Another call with the same name was faster; its session is the one.
	return old, nil
}

// refused gives an error of the browser at large the protocol's words.
func (s *session) refused(ctx context.Context, err error) error {
	var own *fault.Error
	switch {
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.b.gone():
		return errBrowserGone().Cause(err)
	}
	return s.p.told(err, fault.New(fault.InternalError, "the browser refused: %v", err).Cause(err))
}

// end closes what a session opened. A browser of its own ends with it.
func (s *session) end(ctx context.Context) {
	b := s.b
	b.mu.Lock()
	s.closed = true
	pages := s.pages
	delete(b.sessions, s)
	for _, pg := range pages {
		pg.interruptLocked(fault.New(fault.SessionNotFound, "the session was closed"))
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	switch {
	case b.gone():
	case b.persist:
		b.close(ctx)
	case s.context != "":
		_, _ = ask(ctx, b, target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: s.context})
	default:
		var wg sync.WaitGroup
		for _, pg := range pages {
			wg.Go(func() { s.release(ctx, pg) })
		}
		wg.Wait()
	}
	b.mu.Lock()
	delete(b.contexts, s.context)
	s.pages, s.active, s.recent = nil, nil, nil
	last := len(b.sessions) == 0
	b.mu.Unlock()
	s.files.Remove()
	if b.attached && last {
		b.close(ctx)
	}
}

// release closes a page that the session opened, and lets go of one that was there before.
func (s *session) release(ctx context.Context, pg *page) {
	if pg.found {
		_, _ = ask(ctx, s.b, target.DetachFromTarget, target.DetachFromTargetParams{SessionID: pg.ch.id})
		return
	}
	_ = s.b.core.Call(ctx, target.CommandCloseTarget, target.CloseTargetParams{TargetID: pg.target}, nil)
}
