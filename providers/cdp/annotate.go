package cdp

import (
	"context"
	"encoding/json"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/picture"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// marks finds what can be acted on and where it is. Nothing is scrolled.
func (p *page) marks(ctx context.Context) ([]picture.Mark, error) {
	no := false
	snap, err := p.driver.Snapshot(ctx, &browserv1.SnapshotRequest{InteractiveOnly: true, IncludeText: &no})
	if err != nil {
		return nil, err
	}
	refs := map[inpage.FrameID][]string{}
	var frames []inpage.FrameID // in the order of the page
	for _, e := range snap.GetElements() {
		frame, err := p.driver.FrameOf(ctx, e.GetElementRef())
		if err != nil {
			continue
		}
		if refs[frame] == nil {
			frames = append(frames, frame)
		}
		refs[frame] = append(refs[frame], e.GetElementRef())
	}
	var out []picture.Mark
	for _, frame := range frames {
		list := refs[frame]
		dx, dy, err := p.offset(ctx, protocol.FrameID(frame))
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
func (p *page) offset(ctx context.Context, frame protocol.FrameID) (x, y float64, err error) {
	for frame != p.main {
		up, o, err := p.owner(ctx, frame)
		if err != nil {
			return 0, 0, err
		}
		res, err := protocol.Call(ctx, o.world.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
			FunctionDeclaration: "function() { const b = this.getBoundingClientRect(), s = getComputedStyle(this); return [b.x + this.clientLeft + parseFloat(s.paddingLeft), b.y + this.clientTop + parseFloat(s.paddingTop)] }",
			ObjectID:            o.id, ReturnByValue: yes(),
		})
		p.release(o.world, o.id)
		if err != nil {
			return 0, 0, gone(err)
		}
		var at []float64
		if err := json.Unmarshal(res.Result.Value, &at); err != nil || len(at) != 2 {
			return 0, 0, inpage.ErrDocumentGone
		}
		x, y, frame = x+at[0], y+at[1], up
	}
	return x, y, nil
}
