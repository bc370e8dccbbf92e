package bidi

import (
	"context"
	"encoding/json"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/picture"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// marksFor finds what annotate draws: what can be acted on and where it is. Nothing is scrolled.
func (p *page) marksFor(ctx context.Context, r *browserv1.ScreenshotRequest) ([]picture.Mark, error) {
	if !r.GetAnnotate() {
		return nil, nil
	}
	no := false
	snap, err := p.driver.Snapshot(ctx, &browserv1.SnapshotRequest{InteractiveOnly: true, IncludeText: &no})
	if err != nil {
		return nil, err
	}
	refs := map[inpage.FrameID][]string{}
	for _, e := range snap.GetElements() {
		frame, err := p.driver.FrameOf(ctx, e.GetElementRef())
		if err != nil {
			continue
		}
		refs[frame] = append(refs[frame], e.GetElementRef())
	}
	var out []picture.Mark
	for frame, list := range refs {
		dx, dy, err := p.offset(ctx, string(frame))
		if err != nil {
			continue // The frame went away.
		}
		data, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		text, err := p.Eval(ctx, frame, "JSON.stringify("+string(data)+".map(r => { const e = __drover.element(r), b = e && e.getBoundingClientRect(); return b ? [b.x, b.y, b.width, b.height] : null }))")
		if err != nil {
			continue
		}
		var boxes [][]float64
		if err := json.Unmarshal([]byte(text), &boxes); err != nil {
			return nil, err
		}
		for i, b := range boxes {
			if len(b) == 4 && b[2] > 0 && b[3] > 0 {
				out = append(out, picture.Mark{Ref: list[i], X: b[0] + dx, Y: b[1] + dy, Width: b[2], Height: b[3]})
			}
		}
	}
	return out, nil
}

// offset is where a frame's viewport begins in the page's viewport.
func (p *page) offset(ctx context.Context, frame string) (x, y float64, err error) {
	for {
		up, element, err := p.owner(ctx, frame)
		if err != nil || up == "" {
			return x, y, err
		}
		text, err := p.Eval(ctx, inpage.FrameID(up), "(e => { const b = e.getBoundingClientRect(), s = getComputedStyle(e); "+
			"return JSON.stringify([b.x + e.clientLeft + parseFloat(s.paddingLeft), b.y + e.clientTop + parseFloat(s.paddingTop)]) })("+element+")")
		if err != nil {
			return 0, 0, err
		}
		var at [2]float64
		if err := json.Unmarshal([]byte(text), &at); err != nil {
			return 0, 0, err
		}
		x, y, frame = x+at[0], y+at[1], up
	}
}

// annotate draws the marks into a picture, whose place and scale follow from what was asked of the browser.
func (p *page) annotate(ctx context.Context, pic *shot, found []picture.Mark, params *screenshotParams, quality int) error {
	l, err := p.layout(ctx)
	if err != nil {
		return err
	}
	left, top, width := 0.0, 0.0, l.ViewWidth
	if params.Origin == "document" {
		left, top, width = -l.X, -l.Y, l.Width
	}
	if c := params.Clip; c != nil {
		left, top, width = left+c.X, top+c.Y, c.Width
	}
	pic.data, err = picture.Annotate(pic.data, pic.kind, found, left, top, float64(pic.width)/max(width, 1), quality)
	return err
}
