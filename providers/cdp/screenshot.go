package cdp

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg" // the sizes of pictures are read from their bytes
	_ "image/png"
	"math"
	"strings"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/picture"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// shot is a screenshot as the browser encoded it.
type shot struct {
	data          []byte
	kind          string
	width, height int
	warnings      []*browserv1.Warning
}

// maxInline is how large a picture may be to be given inline.
const maxInline = 16 << 20

// maxSide is the largest side of a picture that Chromium paints whole, in pixels.
const maxSide = 16384

// screenshot is page.screenshot.
func (p *Provider) screenshot(ctx context.Context, r *browserv1.ScreenshotRequest) (*browserv1.ScreenshotResponse, error) {
	s, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	pic, err := pg.capture(ctx, r)
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp := &browserv1.ScreenshotResponse{PageId: pg.id, MediaType: pic.kind, Width: int32(pic.width), Height: int32(pic.height), Warnings: pic.warnings}
	if (r.Inline == nil || r.GetInline()) && len(pic.data) <= maxInline {
		resp.Image = pic.data
		return resp, nil
	}
	resp.ImageRef, err = s.storePicture(pic)
	return resp, err
}

// capture takes a picture. Scroll positions are as before when it returns.
func (p *page) capture(ctx context.Context, r *browserv1.ScreenshotRequest) (pic *shot, err error) {
	params := pagedomain.CaptureScreenshotParams{Format: pagedomain.CaptureScreenshotFormatPng, OptimizeForSpeed: yes()}
	if r.GetFormat() == browserv1.ImageFormat_IMAGE_FORMAT_JPEG {
		quality := int64(80)
		if r.Quality != nil {
			quality = int64(r.GetQuality())
		}
		params.Format, params.Quality = pagedomain.CaptureScreenshotFormatJpeg, &quality
	}
	if r.ElementRef != nil {
		restore, err := p.aimAt(ctx, r.GetElementRef(), &params)
		if restore != nil {
			defer restore()
		}
		if err != nil {
			return nil, err
		}
	} else if r.GetFullPage() || r.Clip != nil {
		if err := p.region(ctx, r, &params); err != nil {
			return nil, err
		}
	}
	var found []picture.Mark
	if r.GetAnnotate() {
		if found, err = p.marks(ctx); err != nil {
			return nil, err
		}
	}
	stop := p.stir(ctx, params)
	res, err := protocol.Call(ctx, p.ch, pagedomain.CaptureScreenshot, params)
	stop()
	if err != nil {
		return nil, err
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(res.Data))
	if err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	pic = &shot{data: res.Data, kind: "image/" + kind, width: size.Width, height: size.Height}
	if c := params.Clip; c != nil && (c.Width >= maxSide || c.Height >= maxSide) {
		pic.warnings = append(pic.warnings, &browserv1.Warning{
			Code: "reduced_fidelity", Message: fmt.Sprintf("the picture ends after %d pixels, which is all that the browser paints at once; take the rest with clip", maxSide),
		})
	}
	if len(found) == 0 {
		return pic, nil
	}
	return pic, p.draw(ctx, pic, found, &params)
}

// stirEvery is how long a picture of a tab in the background may take before another frame is asked for.
const stirEvery = 60 * time.Millisecond

// stir keeps a tab in the background of a person's window painting until stop is called. A picture waits for its frame to be
// shown, and what is in the background is shown nowhere; the frame then counts as done when another takes its place.
func (p *page) stir(ctx context.Context, params pagedomain.CaptureScreenshotParams) (stop func()) {
	if p.s.p.remote == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with stop, which waits for it
		defer close(done)
		// The same part is asked for: another one would change the size of the screen under the picture's hands.
		every, rough, lowest := stirEvery, params, int64(1)
		rough.Format, rough.Quality = pagedomain.CaptureScreenshotFormatJpeg, &lowest
		if params.CaptureBeyondViewport != nil {
			every *= 5
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.ch.post(pagedomain.CaptureScreenshot.Method, rough)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// draw draws the marks into a picture, whose place and scale follow from what was asked of the browser.
func (p *page) draw(ctx context.Context, pic *shot, found []picture.Mark, params *pagedomain.CaptureScreenshotParams) error {
	m, err := protocol.Call(ctx, p.ch, pagedomain.GetLayoutMetrics, protocol.Empty{})
	if err != nil {
		return err
	}
	left, top, width := 0.0, 0.0, m.CSSVisualViewport.ClientWidth
	if c := params.Clip; c != nil {
		left, top, width = c.X-m.CSSVisualViewport.PageX, c.Y-m.CSSVisualViewport.PageY, c.Width
	}
	quality := 80
	if params.Quality != nil {
		quality = int(*params.Quality)
	}
	pic.data, err = picture.Annotate(pic.data, pic.kind, found, left, top, float64(pic.width)/max(width, 1), quality)
	return err
}

// region sets the part of the page that is pictured.
func (p *page) region(ctx context.Context, r *browserv1.ScreenshotRequest, params *pagedomain.CaptureScreenshotParams) error {
	m, err := protocol.Call(ctx, p.ch, pagedomain.GetLayoutMetrics, protocol.Empty{})
	if err != nil {
		return err
	}
	clip := &pagedomain.Viewport{Scale: 1}
	switch {
	case r.GetFullPage() && r.Clip == nil:
		clip.Width, clip.Height = math.Ceil(m.CSSContentSize.Width), math.Ceil(m.CSSContentSize.Height)
	case r.GetFullPage():
		clip.X, clip.Y, clip.Width, clip.Height = r.GetClip().GetX(), r.GetClip().GetY(), r.GetClip().GetWidth(), r.GetClip().GetHeight()
	default:
		clip.X, clip.Y = r.GetClip().GetX()+m.CSSVisualViewport.PageX, r.GetClip().GetY()+m.CSSVisualViewport.PageY
		clip.Width, clip.Height = r.GetClip().GetWidth(), r.GetClip().GetHeight()
	}
	if r.Clip != nil && (clip.X >= m.CSSContentSize.Width || clip.Y >= m.CSSContentSize.Height || clip.X+clip.Width <= 0 || clip.Y+clip.Height <= 0) {
		return fault.New(fault.InvalidRequest, "the clip lies outside the page").Field("clip")
	}
	clip.Width, clip.Height = min(clip.Width, maxSide), min(clip.Height, maxSide)
	params.Clip = clip
	return p.reach(ctx, m, params)
}

// reach says how a clip is pictured: from what is on the screen where it lies in the viewport, which also shows what
// stands still while the page scrolls; else by a larger screen, once the page has drawn what it had to draw.
func (p *page) reach(ctx context.Context, m pagedomain.GetLayoutMetricsResult, params *pagedomain.CaptureScreenshotParams) error {
	c, v := params.Clip, m.CSSVisualViewport
	if c.X >= v.PageX && c.Y >= v.PageY && c.X+c.Width <= v.PageX+v.ClientWidth && c.Y+c.Height <= v.PageY+v.ClientHeight {
		return nil
	}
	params.CaptureBeyondViewport = yes()
	_, err := p.Eval(ctx, inpage.FrameID(p.main), "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(''))))")
	return err
}

// aimAt scrolls an element into view and pictures its box. restore puts the scroll positions back.
func (p *page) aimAt(ctx context.Context, ref string, params *pagedomain.CaptureScreenshotParams) (restore func(), err error) {
	restore, err = p.holdScroll(ctx, ref)
	if err != nil {
		return restore, err
	}
	box, err := p.driver.ElementRect(ctx, ref)
	if err != nil {
		return restore, err
	}
	x, y := math.Floor(box.DocumentX+0.001), math.Floor(box.DocumentY+0.001)
	params.Clip = &pagedomain.Viewport{
		X: x, Y: y, Scale: 1,
		Width: math.Max(1, math.Ceil(box.DocumentX+box.Width-0.001)-x), Height: math.Max(1, math.Ceil(box.DocumentY+box.Height-0.001)-y),
	}
	m, err := protocol.Call(ctx, p.ch, pagedomain.GetLayoutMetrics, protocol.Empty{})
	if err != nil {
		return restore, err
	}
	return restore, p.reach(ctx, m, params)
}

// keepScroll gives an element's scroll positions and those of everything around it, and scrolls the element into its
// panes when it is asked to; putScroll puts the positions back.
const (
	keepScroll = `function(show) {
	const out = [];
	for (let n = this; n; n = n.assignedSlot ?? n.parentNode ?? n.host) if (n.nodeType === 1) out.push([n, n.scrollLeft, n.scrollTop]);
	if (show) this.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
	return out;
}`
	putScroll = `function() {
	for (const [n, x, y] of this) if (n.scrollLeft !== x || n.scrollTop !== y) n.scrollTo({ left: x, top: y, behavior: 'instant' });
}`
)

// holdScroll remembers the scroll positions around an element, through the frames around it, and scrolls it into its
// panes. restore, where it is not nil, puts them back also when the call's time is over.
func (p *page) holdScroll(ctx context.Context, ref string) (restore func(), err error) {
	at, err := p.driver.FrameOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	var held []object
	restore = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		for _, o := range held {
			_ = o.world.ch.Call(ctx, runtime.CallFunctionOn.Method, runtime.CallFunctionOnParams{FunctionDeclaration: putScroll, ObjectID: o.id}, nil)
			p.release(o.world, o.id)
		}
	}
	w, err := p.engineWorld(ctx, protocol.FrameID(at))
	if err != nil {
		return nil, err
	}
	id, err := p.object(ctx, w, "__drover.element("+quote(strings.TrimPrefix(ref, "@"))+")")
	if err != nil {
		return nil, nil // ElementRect tells why there is none.
	}
	for frame, o := protocol.FrameID(at), (object{w, id}); ; {
		show := &runtime.CallArgument{Value: jsonv2.Value("false")}
		if len(held) == 0 {
			show.Value = jsonv2.Value("true")
		}
		res, err := protocol.Call(ctx, o.world.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
			FunctionDeclaration: keepScroll, ObjectID: o.id, Arguments: []*runtime.CallArgument{show},
		})
		p.release(o.world, o.id)
		if err != nil {
			return restore, gone(err)
		}
		held = append(held, object{o.world, res.Result.ObjectID})
		if frame == p.main {
			return restore, nil
		}
		if frame, o, err = p.owner(ctx, frame); err != nil {
			return restore, err
		}
	}
}

// object is a handle of something in a world.
type object struct {
	world *world
	id    runtime.RemoteObjectID
}

// owner gives the frame around a frame, and the element there that shows it.
func (p *page) owner(ctx context.Context, frame protocol.FrameID) (protocol.FrameID, object, error) {
	p.b.mu.Lock()
	var up protocol.FrameID
	if f := p.frames[frame]; f != nil {
		up = f.parent
	}
	p.b.mu.Unlock()
	if up == "" {
		return "", object{}, inpage.ErrDocumentGone
	}
	w, err := p.engineWorld(ctx, up)
	if err != nil {
		return "", object{}, err
	}
	o, err := protocol.Call(ctx, w.ch, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: frame})
	if err != nil {
		return "", object{}, gone(err)
	}
	res, err := protocol.Call(ctx, w.ch, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: o.BackendNodeID, ExecutionContextID: w.id})
	if err != nil {
		return "", object{}, gone(err)
	}
	return up, object{w, res.Object.ObjectID}, nil
}
