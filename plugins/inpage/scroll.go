package inpage

import (
	"context"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Scrolled is how far something is scrolled, in CSS pixels.
type Scrolled struct {
	X, Y     float64
	Warnings []*browserv1.Warning
}

// Scroll moves the pane that the target is or stands in, or the page, by exactly what is asked or to its edge, and answers
// when the page has heard of it. Errors: those of Locate; invalid_request when nothing is asked.
func (p *Page) Scroll(ctx context.Context, r *browserv1.ScrollRequest) (Scrolled, error) {
	to := ""
	switch r.GetTo() {
	case browserv1.ScrollTo_SCROLL_TO_TOP:
		to = "top"
	case browserv1.ScrollTo_SCROLL_TO_BOTTOM:
		to = "bottom"
	case browserv1.ScrollTo_SCROLL_TO_LEFT:
		to = "left"
	case browserv1.ScrollTo_SCROLL_TO_RIGHT:
		to = "right"
	case browserv1.ScrollTo_SCROLL_TO_INTO_VIEW:
		to = "into_view"
	case browserv1.ScrollTo_SCROLL_TO_UNSPECIFIED:
		if r.Dx == nil && r.Dy == nil {
			return Scrolled{}, fault.New(fault.InvalidRequest, "nothing to scroll by").Field("dy").Hint("give dx, dy or to")
		}
	}
	t := r.GetTarget()
	if to == "into_view" && nothing(t) {
		return Scrolled{}, fault.New(fault.InvalidRequest, "into_view needs a target").Field("to")
	}
	var got struct {
		X     float64 `json:"scroll_x"`
		Y     float64 `json:"scroll_y"`
		Moved bool    `json:"moved"`
	}
	args := map[string]any{"dx": r.GetDx(), "dy": r.GetDy(), "to": to}
	if nothing(t) {
		frame, err := p.spotOf(ctx, t)
		if err != nil {
			return Scrolled{}, err
		}
		if err := p.call(ctx, frame.frame, "scroll", args, &got); err != nil {
			return Scrolled{}, err
		}
	} else {
		err := p.seek(ctx, t, "scroll", func(a aim, wait int, leave string) any {
			args["target"], args["wait"], args["leave"] = a, wait, leave
			return args
		}, func(FrameID) any { return &got })
		if err != nil {
			return Scrolled{}, err
		}
	}
	out := Scrolled{X: got.X, Y: got.Y}
	if !got.Moved {
		out.Warnings = append(out.Warnings, &browserv1.Warning{
			Code: "not_scrolled", Message: "nothing moved: it is at its edge already, or cannot be scrolled",
		})
	}
	return out, nil
}
