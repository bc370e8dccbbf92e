package firefox

import (
	"context"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/picture"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// marksFor finds what annotate draws: what can be acted on and where it is, in CSS pixels of the page's viewport. Nothing is
// scrolled.
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
		if frame, err := p.driver.FrameOf(ctx, e.GetElementRef()); err == nil {
			refs[frame] = append(refs[frame], e.GetElementRef())
		}
	}
	places, err := p.places(ctx)
	if err != nil {
		return nil, err
	}
	var out []picture.Mark
	for _, frame := range sortedKeys(refs) {
		at, ok := places[frame]
		if !ok {
			continue
		}
		boxes, err := hand[[][]float64](ctx, p, frame, "boxes", refs[frame])
		if err != nil {
			continue // The frame went away.
		}
		for i, b := range boxes {
			if len(b) == 4 && b[2] > 0 && b[3] > 0 {
				out = append(out, picture.Mark{
					Ref: refs[frame][i], X: at.left + b[0]*at.scaleX, Y: at.top + b[1]*at.scaleY, Width: b[2] * at.scaleX, Height: b[3] * at.scaleY,
				})
			}
		}
	}
	return out, nil
}

// places tells where the frames of the page begin in its viewport.
func (p *page) places(ctx context.Context) (map[inpage.FrameID]spot, error) {
	out := map[inpage.FrameID]spot{topFrame: topSpot}
	queue := []spot{topSpot}
	for len(queue) > 0 && p.framed() {
		at := queue[0]
		queue = queue[1:]
		inner, err := hand[[]place](ctx, p, at.frame, "frames")
		if err != nil && at.frame == topFrame {
			return nil, err
		}
		for _, in := range inner { // none of a frame that went away
			next := at.within(&in)
			if _, known := out[next.frame]; !known {
				out[next.frame] = next
				queue = append(queue, next)
			}
		}
	}
	return out, nil
}

// annotate draws the marks into a picture. left and top are where it begins in the page's viewport, width is how wide it is
// there, both in CSS pixels.
func (s *shot) annotate(found []picture.Mark, left, top, width float64, quality int) (err error) {
	s.data, err = picture.Annotate(s.data, s.kind, found, left, top, float64(s.width)/max(width, 1), quality)
	return err
}
