package webdriver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/tebeka/selenium"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/containment"
	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/lane"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// session is a driver with its browser and the windows that it has.
type session struct {
	p                     *Provider
	id, client            string
	product               product
	temp                  string
	driver, display       *process
	link                  *link
	engine                *inpage.Session
	lane                  lane.Lane
	ended                 sync.Once
	current, currentFrame string // where the driver stands; guarded by the link's turn
	mu                    sync.Mutex
	pages                 []*page
	active                *page
	count                 int
	spare                 string // a window that keeps the session while it has no page
}

// page is one window.
type page struct {
	s      *session
	id     string
	handle string
	opener string
	number int
	driver *inpage.Page
}

// ensure is session.ensure.
func (p *Provider) ensure(ctx context.Context, r *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
	p.opening.Lock()
	defer p.opening.Unlock()
	p.mu.Lock()
	s := p.clients[r.GetClientSessionId()]
	config := p.config
	p.mu.Unlock()
	if s != nil && !s.gone() {
		return s.response(false, r), nil
	}
	if s != nil {
		p.drop(s)
		s.end(ctx)
	}
	switch {
	case r.GetAttach() == browserv1.Attach_ATTACH_REQUIRE:
		return nil, fault.New(fault.UnsupportedTarget, "WebDriver attaches to no running browser").Field("attach").Hint("use bidi, cdp or an extension")
	case r.GetPersist():
		return nil, fault.New(fault.UnsupportedTarget, "this provider keeps no profile").Field("persist").Hint("use bidi or cdp")
	}
	if plugins.Egress(ctx) != "" {
		return nil, fault.New(fault.UnsupportedTarget, "this provider keeps no browser inside a guard").Hint("use cdp or bidi")
	}
	found, err := config.choose(r.GetBrowserPreference())
	if err != nil {
		return nil, err
	}
	s, err = p.start(ctx, found, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fault.New(fault.NotReady, "%s did not start: %v", found.label, err).Reason("browser_start_failed").Retry("same").Cause(err)
	}
	p.mu.Lock()
	p.sessions[s.id], p.clients[s.client] = s, s
	p.mu.Unlock()
	return s.response(true, r), nil
}

// start starts a driver, has it start its browser, and takes its first window.
func (p *Provider) start(ctx context.Context, found product, r *browserv1.EnsureSessionRequest) (_ *session, err error) {
	plugins.Progress(ctx, "starting_browser", "starting "+found.label)
	p.mu.Lock()
	dir := p.host.GetRunDir()
	p.mu.Unlock()
	s := &session{p: p, id: "webdriver-" + newToken(), client: r.GetClientSessionId(), product: found, engine: inpage.NewSession()}
	if s.temp, err = os.MkdirTemp(dir, folderPrefix+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return nil, fmt.Errorf("making a folder for the browser: %w", err)
	}
	defer func() {
		if err != nil {
			s.end(ctx)
		}
	}()
	env := []string{"XDG_CACHE_HOME=" + s.temp, "XDG_DATA_HOME=" + s.temp, "XDG_CONFIG_HOME=" + s.temp}
	if needsDisplay(found) {
		var name string
		if s.display, name, err = startDisplay(ctx, s.temp); err != nil {
			return nil, err
		}
		env = append(env, "DISPLAY="+name)
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	if s.driver, err = startProcess(found.driver, []string{"--port=" + port}, env, s.temp); err != nil {
		return nil, err
	}
	address := "http://127.0.0.1:" + port
	if err = s.driver.awaitReady(ctx, address); err != nil {
		return nil, err
	}
	size := r.GetViewport()
	if size == nil {
		size = &browserv1.Size{Width: 1280, Height: 720}
	}
	if s.link, err = newLink(ctx, s.id+".invalid", address, s.capabilities(size)); err != nil {
		return nil, err
	}
	err = s.link.with(ctx, func(wd selenium.WebDriver) error {
		s.current, err = wd.CurrentWindowHandle()
		return err
	})
	if err != nil {
		return nil, err
	}
	s.add(s.current, "")
	return s, nil
}

// capabilities are what the driver is asked for (WebDriver, 7 "Capabilities").
func (s *session) capabilities(size *browserv1.Size) map[string]any {
	caps := map[string]any{
		"unhandledPromptBehavior": "ignore",
		"timeouts":                map[string]any{"script": 600000, "pageLoad": 300000, "implicit": 0},
	}
	if s.product.family == familyWebKit {
		caps["browserName"] = "MiniBrowser"
		caps["webkitgtk:browserOptions"] = map[string]any{
			"binary": s.product.path, "args": []string{"--automation", fmt.Sprintf("--geometry=%dx%d", size.GetWidth(), size.GetHeight())},
		}
		return caps
	}
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(s.temp, "profile"), "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-popup-blocking",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		fmt.Sprintf("--window-size=%d,%d", size.GetWidth(), size.GetHeight()),
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	caps["browserName"] = "chrome"
	caps["goog:chromeOptions"] = map[string]any{"binary": s.product.path, "args": containment.WithoutMetadata(args)}
	return caps
}

// gone says whether the driver ended.
func (s *session) gone() bool {
	select {
	case <-s.driver.done:
		return true
	default:
		return false
	}
}

// end ends the browser with its driver. When it returns, nothing is left.
func (s *session) end(ctx context.Context) {
	s.ended.Do(func() {
		if s.link != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
			_ = s.link.with(ctx, func(wd selenium.WebDriver) error { return wd.Quit() }) // What does not go is killed.
			cancel()
			links.Delete(s.link.name)
		}
		s.driver.stop()
		s.display.stop()
		for range 80 {
			if os.RemoveAll(s.temp) == nil {
				return
			}
			<-time.After(25 * time.Millisecond)
		}
	})
}

// add takes a window in as a page and makes it the active one when there is none.
func (s *session) add(handle, opener string) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	pg := &page{s: s, id: fmt.Sprintf("%s-p%d", s.id, s.count), handle: handle, opener: opener, number: s.count}
	pg.driver = s.engine.NewPage(pg, pg)
	s.pages = append(s.pages, pg)
	if s.active == nil {
		s.active = pg
	}
	return pg
}

// page gives a page by its id, or the active one.
func (s *session) page(id string) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" && s.active != nil {
		return s.active, nil
	}
	for _, pg := range s.pages {
		if pg.id == id {
			return pg, nil
		}
	}
	return nil, fault.New(fault.PageNotFound, "there is no page %s in this session", id).Hint("tab.list tells those that are open")
}

// response is what session.ensure answers.
func (s *session) response(created bool, r *browserv1.EnsureSessionRequest) *browserv1.EnsureSessionResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &browserv1.EnsureSessionResponse{
		SessionId: s.id, BrowserFamily: s.product.family, BrowserLabel: s.product.label, ProviderId: s.p.srv.Info().ID, Created: created,
		Isolation: browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION, Features: features, Warnings: unmet(r, created),
	}
	if s.active != nil {
		resp.DefaultPageId = s.active.id
	}
	return resp
}

// unmet warns of what a session was asked to be and cannot.
func unmet(r *browserv1.EnsureSessionRequest, created bool) (out []*browserv1.Warning) {
	warn := func(message string) {
		out = append(out, &browserv1.Warning{Code: "reduced_fidelity", Message: message})
	}
	if p := r.GetDialogPolicy(); p == browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT || p == browserv1.DialogPolicy_DIALOG_POLICY_DISMISS {
		warn("dialog_policy: dialogs stay open until dialog.respond answers them")
	}
	if r.GetIsolation() == browserv1.Isolation_ISOLATION_SHARED {
		warn("isolation: every session has a browser of its own")
	}
	if r.GetViewport() != nil {
		if created {
			warn("viewport: it is the size of the browser's window, in which the page has a little less room")
		} else {
			warn("viewport: the size of a session that is there already stays")
		}
	}
	return out
}

// closeSession is session.close.
func (p *Provider) closeSession(ctx context.Context, r *browserv1.CloseSessionRequest) (*browserv1.CloseSessionResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	p.drop(s)
	s.end(ctx)
	return &browserv1.CloseSessionResponse{Closed: true, Disposition: browserv1.Disposition_DISPOSITION_CLOSED}, nil
}

// newWindow opens a window and gives its handle (WebDriver, 11.5 "New Window").
func (s *session) newWindow(ctx context.Context) (string, error) {
	var made struct{ Handle string }
	err := s.link.with(ctx, func(selenium.WebDriver) error {
		raw, err := s.link.post("window/new", map[string]any{"type": "tab"})
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, &made)
	})
	return made.Handle, err
}
