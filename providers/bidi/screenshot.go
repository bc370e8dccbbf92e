package bidi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // the sizes of pictures are read from their bytes
	_ "image/png"
	"math"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// shot is a screenshot as the browser encoded it.
type shot struct {
	data          []byte
	kind          string
	width, height int
}

const (
	maxInline = 16 << 20 // bytes of a picture that is given inline
	maxSide   = 16384    // the largest side of a picture, in CSS pixels
)

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
	resp := &browserv1.ScreenshotResponse{PageId: pg.id, MediaType: pic.kind, Width: int32(pic.width), Height: int32(pic.height)}
	if (r.Inline == nil || r.GetInline()) && len(pic.data) <= maxInline {
		resp.Image = pic.data
		return resp, nil
	}
	resp.ImageRef, err = s.storePicture(pic)
	return resp, err
}

func (s *session) storePicture(pic *shot) (*string, error) {
	ext := ".png"
	if pic.kind == "image/jpeg" {
		ext = ".jpg"
	}
	ref, err := s.files.Store(pic.data, pic.kind, ext)
	return &ref, err
}

// capture takes a picture. Scroll positions are as before when it returns.
func (p *page) capture(ctx context.Context, r *browserv1.ScreenshotRequest) (*shot, error) {
	params := screenshotParams{Context: p.context, Origin: "viewport", Format: &imageFormat{Type: "image/png"}}
	quality := 80
	if r.GetFormat() == browserv1.ImageFormat_IMAGE_FORMAT_JPEG {
		if r.Quality != nil {
			quality = int(r.GetQuality())
		}
		share := float64(quality) / 100
		params.Format = &imageFormat{Type: "image/jpeg", Quality: &share}
	}
	if r.ElementRef != nil {
		restore, err := p.aimAt(ctx, r.GetElementRef(), &params)
		defer restore()
		if err != nil {
			return nil, err
		}
	} else if r.GetFullPage() || r.Clip != nil {
		if err := p.region(ctx, r, &params); err != nil {
			return nil, err
		}
	}
	found, err := p.marksFor(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := do(ctx, p.b.conn, contextScreenshot, params)
	if err != nil {
		return nil, err
	}
	size, kind, err := image.DecodeConfig(bytes.NewReader(res.Data))
	if err != nil {
		return nil, fmt.Errorf("reading the picture: %w", err)
	}
	pic := &shot{data: res.Data, kind: "image/" + kind, width: size.Width, height: size.Height}
	if len(found) == 0 {
		return pic, nil
	}
	return pic, p.annotate(ctx, pic, found, &params, quality)
}

// layout is the page's sizes and scroll position, in CSS pixels.
type layout struct {
	X, Y, Width, Height, ViewWidth, ViewHeight float64
}

func (p *page) layout(ctx context.Context) (layout, error) {
	var l layout
	text, err := p.Eval(ctx, p.frameID(), `(() => {
		const d = document.documentElement, b = document.body, w = [d, b].filter(Boolean);
		return JSON.stringify({X: scrollX, Y: scrollY, ViewWidth: innerWidth, ViewHeight: innerHeight,
			Width: Math.max(...w.map(e => e.scrollWidth), d.clientWidth), Height: Math.max(...w.map(e => e.scrollHeight), d.clientHeight)});
	})()`)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal([]byte(text), &l)
}

// region sets the part of the page that is pictured.
func (p *page) region(ctx context.Context, r *browserv1.ScreenshotRequest, params *screenshotParams) error {
	l, err := p.layout(ctx)
	if err != nil {
		return err
	}
	box := &clip{Type: "box"}
	if c := r.GetClip(); c != nil {
		box.X, box.Y, box.Width, box.Height = c.GetX(), c.GetY(), c.GetWidth(), c.GetHeight()
		if !r.GetFullPage() {
			box.X, box.Y = box.X+l.X, box.Y+l.Y
		}
		if box.X >= l.Width || box.Y >= l.Height || box.X+box.Width <= 0 || box.Y+box.Height <= 0 {
			return fault.New(fault.InvalidRequest, "the clip lies outside the page").Field("clip")
		}
		params.Clip = box
	}
	params.Origin = "document"
	width, height := l.Width, l.Height
	if r.Clip != nil {
		width, height = box.Width, box.Height
	}
	if width > maxSide || height > maxSide {
		return fault.New(fault.InvalidRequest, "the picture would be %.0f by %.0f, larger than %d", width, height, maxSide).
			Reason("payload_too_large").With("limit", maxSide).Hint("take it in parts with clip")
	}
	return nil
}

// keepScroll gives a function that puts the scroll positions around an element back, in its document.
const (
	keepScroll = `(el) => {
	const out = [];
	for (let n = el; n; n = n.assignedSlot ?? n.parentNode ?? n.host) if (n.nodeType === 1) out.push([n, n.scrollLeft, n.scrollTop]);
	globalThis.__droverScroll = out;
	return '';
}`
	putScroll = `(() => {
	for (const [n, x, y] of globalThis.__droverScroll ?? []) if (n.scrollLeft !== x || n.scrollTop !== y) n.scrollTo({left: x, top: y, behavior: 'instant'});
	delete globalThis.__droverScroll;
	return '';
})()`
)

// aimAt scrolls an element into view and pictures its box. restore puts the scroll positions back, also those of the
// frames around it and when the call's time is over.
func (p *page) aimAt(ctx context.Context, ref string, params *screenshotParams) (restore func(), err error) {
	var held []inpage.FrameID
	restore = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		for _, frame := range held {
			_, _ = p.Eval(ctx, frame, putScroll) // A document that is gone has nothing to put back.
		}
	}
	frame, err := p.driver.FrameOf(ctx, ref)
	if err != nil {
		return restore, err
	}
	element := fmt.Sprintf("__drover.element(%q)", ref)
	for {
		if _, err := p.Eval(ctx, frame, "("+keepScroll+")("+element+")"); err != nil {
			return restore, err
		}
		held = append(held, frame)
		up, owner, err := p.owner(ctx, string(frame))
		if err != nil {
			return restore, err
		}
		if up == "" {
			break
		}
		frame, element = inpage.FrameID(up), owner
	}
	box, err := p.driver.ElementRect(ctx, ref)
	if err != nil {
		return restore, err
	}
	x, y := math.Floor(box.DocumentX+0.001), math.Floor(box.DocumentY+0.001)
	params.Origin = "document"
	params.Clip = &clip{
		Type: "box", X: x, Y: y,
		Width: math.Max(1, math.Ceil(box.DocumentX+box.Width-0.001)-x), Height: math.Max(1, math.Ceil(box.DocumentY+box.Height-0.001)-y),
	}
	return restore, nil
}

// owner gives the frame around a frame, and an expression there for the element that shows it: the one whose window is at
// the frame's place among its siblings. "" for the top frame.
func (p *page) owner(ctx context.Context, frame string) (up, element string, err error) {
	p.b.mu.Lock()
	if f := p.b.frames[frame]; f != nil {
		up = f.parent
	}
	p.b.mu.Unlock()
	if up == "" {
		return "", "", nil
	}
	// The parent's window lists its frames in the order of the tree, and a frame finds itself there.
	at, err := p.Eval(ctx, inpage.FrameID(frame), "(() => { for (let i = 0; i < parent.length; i++) if (parent[i] === window) return String(i); return '-1' })()")
	if err != nil {
		return "", "", err
	}
	return up, "(() => { const w = window[" + at + "]; const all = root => { for (const e of root.querySelectorAll('*')) { if (e.contentWindow && e.contentWindow === w) return e; " +
		"const s = e.shadowRoot && all(e.shadowRoot); if (s) return s; } return null; }; return all(document); })()", nil
}
