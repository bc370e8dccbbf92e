package webdriver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"net/url"
	"strings"
	"time"

	"github.com/tebeka/selenium"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// checkURL finds what is wrong with an address. Which addresses may be opened is the broker's guard to say.
func checkURL(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil || u.Scheme == "":
		return "", fault.New(fault.InvalidRequest, "the url is not absolute").Field("url").Hint("begin it with https:// or http://")
	case strings.EqualFold(u.Scheme, "javascript"):
		return "", fault.New(fault.PermissionDenied, "a javascript: URL is not opened").Reason("url_refused").Field("url").Hint("use page.eval")
	}
	return strings.TrimSpace(text), nil
}

// open is page.open. It waits for the load event, whatever wait_until asks.
func (p *Provider) open(ctx context.Context, r *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
	s, err := p.session(ctx, r.GetSessionId())
	if err != nil {
		return nil, err
	}
	address, err := checkURL(r.GetUrl())
	if err != nil {
		return nil, err
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var pg *page
	s.mu.Lock()
	none := s.active == nil
	s.mu.Unlock()
	if r.GetNewPage() || r.GetPageId() == "" && none {
		pg, err = s.newPage(ctx)
	} else {
		pg, err = s.page(r.GetPageId())
	}
	if err != nil {
		return nil, err
	}
	from, _ := pg.place(ctx) // A page behind a dialog tells nothing; the navigation then says why.
	at, d, err := pg.goTo(ctx, address)
	if err != nil {
		return nil, err
	}
	resp := &browserv1.OpenResponse{PageId: pg.id, HttpStatus: at.httpStatus(), Url: at.URL, Title: at.Title, NavigationState: browserv1.NavigationState_NAVIGATION_STATE_COMPLETE, Dialog: d}
	switch {
	case d != nil:
		resp.NavigationState = browserv1.NavigationState_NAVIGATION_STATE_LOADING
	case at.Began == from.Began:
		resp.NavigationState, resp.HttpStatus = browserv1.NavigationState_NAVIGATION_STATE_SAME_DOCUMENT, nil
	}
	return resp, nil
}

// goTo opens an address and waits for its load event, no longer than the call lasts.
func (p *page) goTo(ctx context.Context, address string) (at place, d *browserv1.Dialog, err error) {
	err = p.in(ctx, "", func(wd selenium.WebDriver) error {
		if end, ok := ctx.Deadline(); ok {
			if _, err := p.s.link.post("timeouts", map[string]any{"pageLoad": max(time.Until(end).Milliseconds(), 1)}); err != nil {
				return err
			}
		}
		p.s.currentFrame = "?" // A navigation leads the driver back to the top, or not.
		return wd.Get(address)
	})
	if err == nil {
		at, err = p.place(ctx)
	}
	if refused(err, "unexpected alert open") {
		return place{URL: address}, p.dialog(ctx), nil
	}
	if refused(err, "unknown error") {
		return at, nil, fault.New(fault.NotReady, "the address could not be opened: %v", err).Reason("navigation_failed").With("url", address).
			Hint("check the address and that its server runs, then try again").Cause(err)
	}
	return at, nil, p.explain(ctx, err)
}

// snapshot is page.snapshot.
func (p *Provider) snapshot(ctx context.Context, r *browserv1.SnapshotRequest) (*browserv1.SnapshotResponse, error) {
	s, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	if r.GetIncludeScreenshot() {
		return nil, fault.New(fault.UnsupportedTarget, "this provider stores no pictures").Field("include_screenshot").Hint("use page.screenshot")
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	resp, err := pg.driver.Snapshot(ctx, r)
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp.PageId = pg.id
	return resp, nil
}

// wait is page.wait.
func (p *Provider) wait(ctx context.Context, r *browserv1.WaitRequest) (*browserv1.WaitResponse, error) {
	_, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	w, err := pg.driver.Wait(ctx, r, func() bool { return true })
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp := &browserv1.WaitResponse{Satisfied: w.Satisfied, Url: w.URL}
	if w.Satisfied {
		resp.MatchedCondition = strings.Join(w.Met, ",")
	}
	return resp, nil
}

// screenshot is page.screenshot, of the viewport as PNG.
func (p *Provider) screenshot(ctx context.Context, r *browserv1.ScreenshotRequest) (*browserv1.ScreenshotResponse, error) {
	s, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	if r.GetFullPage() || r.Clip != nil || r.ElementRef != nil || r.GetFormat() == browserv1.ImageFormat_IMAGE_FORMAT_JPEG || r.Inline != nil && !r.GetInline() {
		return nil, fault.New(fault.UnsupportedTarget, "WebDriver takes pictures of the viewport alone, as PNG").Hint("leave full_page, clip, element_ref, format and inline out, or use cdp or bidi")
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var data []byte
	err = pg.in(ctx, "", func(wd selenium.WebDriver) error { data, err = wd.Screenshot(); return err })
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fault.New(fault.InternalError, "the driver gave no picture").Cause(err)
	}
	return &browserv1.ScreenshotResponse{PageId: pg.id, MediaType: "image/png", Image: data, Width: int32(size.Width), Height: int32(size.Height)}, nil
}

// evalScript evaluates an expression as the page's own code would, and writes its value as JSON or says why it cannot.
const evalScript = `const [text, args, wait] = arguments;
const tell = v => {
	const type = v === null ? 'null' : typeof v, odd = t => ({type, odd: t});
	if (['undefined', 'symbol', 'function'].includes(type)) return odd(String(v));
	if (type === 'bigint') return odd(v + 'n');
	if (type === 'number' && (!Number.isFinite(v) || Object.is(v, -0))) return odd(Object.is(v, -0) ? '-0' : String(v));
	try { const json = JSON.stringify(v); return json === undefined ? odd(String(v)) : {type, json} } catch (e) { return odd(String(v)) }
};
const fail = e => ({error: String(e), stack: String(e && e.stack || e)});
const run = () => { let v = (0, eval)(text); return typeof v === 'function' ? v(...args) : v };
try { const v = run(); return wait ? Promise.resolve(v).then(tell, fail) : tell(v) } catch (e) { return fail(e) }`

// eval is page.eval, in the page's own world.
func (p *Provider) eval(ctx context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
	s, pg, err := p.find(ctx, r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	if r.GetWorld() == browserv1.World_WORLD_ISOLATED {
		return nil, fault.New(fault.UnsupportedTarget, "WebDriver has no isolated world").Field("world").Hint("leave world out, or use cdp or bidi")
	}
	release, err := s.lane.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var frame inpage.FrameID
	if r.FrameRef != nil {
		if frame, err = pg.driver.ContentFrame(ctx, r.GetFrameRef()); err != nil {
			return nil, inpage.Ran(pg.explain(ctx, err))
		}
	}
	args := []any{}
	for _, a := range r.GetArgs() {
		args = append(args, a.AsInterface())
	}
	text := strings.TrimSpace(r.GetExpression())
	if strings.HasPrefix(text, "function") || strings.HasPrefix(text, "async function") {
		text = "(" + text + "\n)"
	}
	raw, err := pg.run(ctx, string(frame), evalScript, text, args, r.AwaitPromise == nil || r.GetAwaitPromise())
	if err != nil {
		return nil, pg.explain(ctx, gone(err))
	}
	var got struct {
		Type, JSON, Error, Stack string
		Odd                      *string
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return nil, fault.New(fault.InternalError, "the driver gave no value").Cause(err)
	}
	if got.Error != "" {
		return nil, fault.New(fault.InvalidRequest, "the script threw %s", got.Error).Reason("script_error").With("message", got.Error).With("stack", got.Stack).Field("expression")
	}
	resp := &browserv1.EvalResponse{PageId: pg.id, Type: got.Type, Unserializable: got.Odd, Value: structpb.NewNullValue()}
	if got.JSON != "" {
		if resp.Value, err = valueOf(got.JSON); err != nil {
			text := "[" + got.Type + " (cannot be told)]"
			resp.Value, resp.Unserializable = structpb.NewNullValue(), &text
		}
	}
	return resp, nil
}

// valueOf reads a value that the page wrote as JSON. Halves of characters become U+FFFD, as encoding/json has it.
func valueOf(text string) (*structpb.Value, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("reading the value: %w", err)
	}
	value, err := structpb.NewValue(v)
	if err != nil {
		return nil, fmt.Errorf("reading the value: %w", err)
	}
	data, err := proto.Marshal(value)
	if err == nil {
		err = proto.Unmarshal(data, &structpb.Value{}) // Deeper than a message can be.
	}
	return value, err
}
