package firefox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// verifyPage is what provider.verify opens; it is served on a loopback port for the moment.
const verifyPage = `<!doctype html><html lang="en"><title>Drover</title><button>Ready</button></html>`

// verify is provider.verify: it opens a window in the person's Firefox, reads a page, evaluates, takes a picture and closes the
// window. What is not set up yet is a warning, for a bridge that nobody wants is no fault.
func (p *Provider) verify(ctx context.Context, _ *browserv1.VerifyRequest) (*browserv1.VerifyResponse, error) {
	v := &verification{}
	b, err := p.choose(ctx, "")
	if err != nil {
		f := fault.From(err)
		if f.Code != fault.SetupRequired {
			return nil, err
		}
		v.checks = append(v.checks, &browserv1.Check{
			Id: "firefox_connected", Status: browserv1.CheckStatus_CHECK_STATUS_WARN, Message: f.Message, Fix: "drover provider setup " + p.srv.Info().ID,
		})
		return &browserv1.VerifyResponse{Checks: v.checks}, nil
	}
	v.note("firefox_connected", nil, func() string { return b.link.hello.Browser + " " + b.link.hello.Release + " is connected" }, "")
	if d := b.diagnose(ctx); d.GetLevel() == levelError {
		v.checks = append(v.checks, &browserv1.Check{Id: d.GetCode(), Status: browserv1.CheckStatus_CHECK_STATUS_WARN, Message: d.GetMessage(), Fix: d.GetManualSteps()[0]})
		return &browserv1.VerifyResponse{Checks: v.checks}, nil
	}
	v.drive(ctx, p, b)
	return &browserv1.VerifyResponse{Checks: v.checks}, nil
}

type verification struct{ checks []*browserv1.Check }

// note adds a check and says whether it passed.
func (v *verification) note(id string, err error, message func() string, fix string) bool {
	if err != nil {
		v.checks = append(v.checks, &browserv1.Check{Id: id, Status: browserv1.CheckStatus_CHECK_STATUS_FAIL, Message: fault.From(err).Message, Fix: fix})
		return false
	}
	v.checks = append(v.checks, &browserv1.Check{Id: id, Status: browserv1.CheckStatus_CHECK_STATUS_PASS, Message: message()})
	return true
}

// drive uses a page for real.
func (v *verification) drive(ctx context.Context, p *Provider, b *browser) {
	const again = "start the provider's log with debug and send it in; a newer browser may have changed"
	address, stop, err := servePage(ctx)
	if err != nil {
		v.note("page_opens", err, nil, "allow listening on 127.0.0.1")
		return
	}
	defer stop()
	s, err := p.openSession(ctx, b, &browserv1.EnsureSessionRequest{ClientSessionId: "verify-" + newToken()}, demandOf(&browserv1.EnsureSessionRequest{}))
	if err != nil {
		v.note("session_opens", err, nil, again)
		return
	}
	defer func() {
		p.drop(s, false)
		s.end(ctx)
	}()
	opened, err := p.open(ctx, &browserv1.OpenRequest{SessionId: s.id, Url: address})
	if !v.note("page_opens", err, func() string {
		return "a page on the loopback opened with HTTP status " + fmt.Sprint(opened.GetHttpStatus())
	}, "see whether a proxy setting catches 127.0.0.1") {
		return
	}
	snap, err := p.snapshot(ctx, &browserv1.SnapshotRequest{SessionId: s.id})
	if err == nil && len(snap.GetElements()) != 1 {
		err = fault.New(fault.InternalError, "the page was read wrong: %d elements instead of 1", len(snap.GetElements()))
	}
	v.note("page_is_read", err, func() string { return "the page's button is in the snapshot" }, again)
	value, err := p.eval(ctx, &browserv1.EvalRequest{SessionId: s.id, Expression: "6*7"})
	if err == nil && value.GetValue().GetNumberValue() != 42 {
		err = fault.New(fault.InternalError, "6*7 gave another value")
	}
	v.note("script_runs", err, func() string { return "a script ran in the page" }, again)
	pic, err := p.screenshot(ctx, &browserv1.ScreenshotRequest{SessionId: s.id})
	v.note("screenshot_is_taken", err, func() string {
		return fmt.Sprintf("a picture of %d by %d pixels was taken", pic.GetWidth(), pic.GetHeight())
	},
		"look whether the window can be seen")
}

// servePage serves verifyPage on a loopback port until stop is called.
func servePage(ctx context.Context) (address string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening on the loopback: %w", err)
	}
	srv := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/" {
			_, _ = w.Write([]byte(verifyPage))
		}
	})}
	done := make(chan struct{})
	go func() { // ends with srv.Close; stop waits for it
		defer close(done)
		_ = srv.Serve(l)
	}()
	return "http://" + l.Addr().String() + "/", func() { _ = srv.Close(); <-done }, nil
}
