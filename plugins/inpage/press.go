package inpage

import (
	"context"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// Press presses a key or chord on the target, or wherever the focus is, as often as the request says. Errors: those of
// Locate; invalid_request for a key that does not exist; element_not_actionable with reason disabled or not_focusable.
func (p *Page) Press(ctx context.Context, r *browserv1.PressRequest) ([]*browserv1.Warning, error) {
	held, key, err := chord(r.GetKey())
	if err != nil {
		return nil, err
	}
	t := r.GetTarget()
	if t.GetPosition() != nil {
		if _, err := p.Click(ctx, &browserv1.ClickRequest{Target: t}); err != nil {
			return nil, err
		}
		t = nil
	}
	var frame FrameID
	var got struct {
		Ref   string `json:"ref"`
		Frame bool   `json:"frame"`
	}
	if nothing(t) {
		frame, err = p.focused(ctx, func(f FrameID) error {
			return p.call(ctx, f, "focus", map[string]any{"synthetic": p.synthetic}, &got)
		}, func() (bool, string) { return got.Frame, got.Ref })
	} else {
		err = p.seek(ctx, t, "focus", func(a aim, wait int, leave string) any {
			return map[string]any{"target": a, "wait": wait, "leave": leave, "synthetic": p.synthetic}
		}, func(f FrameID) any { frame = f; return &got })
	}
	if err != nil {
		return nil, err
	}
	var events []Event
	for range max(r.GetRepeat(), 1) {
		events = append(events, key.press(held)...)
	}
	return p.struck(ctx, frame, events)
}
