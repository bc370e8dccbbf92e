package inpage

import (
	"context"
	"errors"
	"math"
)

// Box is where an element is, in CSS pixels, after it was scrolled into view.
type Box struct {
	// X and Y are of the page's viewport, DocumentX and DocumentY of the page's document.
	X, Y, Width, Height  float64
	DocumentX, DocumentY float64
}

// ElementRect scrolls an element into view and tells where it is, through the frames around it. Errors: element_not_found
// (stale_ref); element_not_actionable (not_visible, zero_size).
func (p *Page) ElementRect(ctx context.Context, ref string) (Box, error) {
	ref = bare(ref)
	at, ok := p.placeOf(ref)
	if !ok {
		return Box{}, p.stale(ctx, ref)
	}
	var r struct {
		X       float64 `json:"x"`
		Y       float64 `json:"y"`
		Width   float64 `json:"width"`
		Height  float64 `json:"height"`
		ScrollX float64 `json:"scroll_x"`
		ScrollY float64 `json:"scroll_y"`
	}
	if err := p.call(ctx, at.frame, "rect", map[string]any{"ref": ref, "scroll": true}, &r); err != nil {
		if errors.Is(err, ErrDocumentGone) {
			return Box{}, p.stale(ctx, ref)
		}
		return Box{}, err
	}
	// Of a frame's element the two corners are carried outwards, so that a scaled frame is measured right.
	lo, hi := ready{X: r.X, Y: r.Y, at: at.frame}, ready{X: r.X + r.Width, Y: r.Y + r.Height, at: at.frame}
	if _, inner := p.parentOf(at.frame); inner {
		middle := ready{X: r.X + r.Width/2, Y: r.Y + r.Height/2, at: at.frame}
		for _, corner := range []struct {
			r *ready
			h how
		}{{&middle, how{force: true}}, {&lo, how{force: true, quick: true}}, {&hi, how{force: true, quick: true}}} {
			if err := p.through(ctx, corner.r, corner.h); err != nil {
				return Box{}, err
			}
		}
		main, err := p.eval.MainFrame(ctx)
		if err != nil {
			return Box{}, err
		}
		var offset struct{ X, Y float64 }
		if err := p.call(ctx, main, "offset", nil, &offset); err != nil {
			return Box{}, err
		}
		r.ScrollX, r.ScrollY = offset.X, offset.Y
	}
	b := Box{X: lo.X, Y: lo.Y, Width: math.Max(0, hi.X-lo.X), Height: math.Max(0, hi.Y-lo.Y)}
	b.DocumentX, b.DocumentY = b.X+r.ScrollX, b.Y+r.ScrollY
	return b, nil
}
