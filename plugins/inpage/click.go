package inpage

import (
	"context"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// attempts is how often input is aimed again at a target that got away.
const attempts = 6

// Click clicks the request's target and returns when the page got the click. Navigation, dialogs and popups that follow
// are the provider's to tell. Errors: those of Locate; element_not_actionable with reason covered, disabled, moving, not_visible or zero_size.
func (p *Page) Click(ctx context.Context, r *browserv1.ClickRequest) ([]*browserv1.Warning, error) {
	held := modifiersOf(r.GetModifiers())
	h := how{kind: "press", force: r.GetForce(), armed: true}
	lead := 25 * time.Millisecond
	attempt := 0
	var last ready
	var g guard
	for silent := 0; attempt < attempts && silent < 3; attempt++ {
		var err error
		if last, err = p.prepare(ctx, r.GetTarget(), h); err != nil {
			return nil, err
		}
		x, y := last.led(lead)
		began := time.Now()
		if err := p.perform(ctx, clickEvents(x, y, button(r.GetButton()), int(max(r.GetClickCount(), 1)), held)); err != nil {
			return nil, err
		}
		lead = time.Since(began)
		if g, err = p.confirm(ctx, last.at, "click"); err != nil {
			return nil, err
		}
		switch {
		case g.OK != nil && *g.OK:
			warnings := append(clickWarnings(g), g.warnings()...)
			if g.Other != "" {
				warnings = append(warnings, elsewhere(g))
			}
			return warnings, nil
		case g.OK == nil && g.Active:
			return []*browserv1.Warning{unseen}, nil
		case g.OK == nil:
			// It was lost on the way: the page is only just being shown, or its frames were painted elsewhere a moment ago.
			silent++
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	if g.OK == nil {
		return nil, afterInput(fault.New(fault.ElementNotActionable, "the page did not get the click at %.0f, %.0f", last.X, last.Y).
			With("element_ref", last.Ref).Hint("take a new page.snapshot"))
	}
	if last.Moving {
		return nil, fault.New(fault.ElementNotActionable, "the element %s keeps moving and was missed %d times", last.Ref, attempt).
			Reason("moving").With("element_ref", last.Ref)
	}
	return nil, fault.New(fault.ElementNotActionable, "the click went to %s instead", g.Other).
		Reason("covered").With("element_ref", last.Ref).With("covered_by", g.Other)
}

// unseen warns of a page that keeps its events from us, so that pressing again could act twice.
var unseen = &browserv1.Warning{
	Code: "unconfirmed", Message: "the press reached the page, but the page hides which element got it; check what it did",
}

// elsewhere warns that a forced press went to what lies over the element.
func elsewhere(g guard) *browserv1.Warning {
	return &browserv1.Warning{Code: "covered", Message: "the press went to " + g.Other + ", which lies over the element"}
}

// clickWarnings tells when the press came but no click followed: the page took the element away between the two.
func clickWarnings(g guard) []*browserv1.Warning {
	if g.Seen["gone"]+g.Seen["click"]+g.Seen["auxclick"]+g.Seen["contextmenu"] > 0 {
		return nil
	}
	return []*browserv1.Warning{{
		Code:    "no_click_event",
		Message: "the page got the press and the release, but they made no click; the element changed in between",
	}}
}

// clickEvents is the input of a click, or of a double or triple one.
func clickEvents(x, y float64, b Button, count int, held Modifiers) []Event {
	events := []Event{}
	events = append(events, holdEvents(held)...)
	events = append(events, Event{Kind: PointerMove, X: x, Y: y, Modifiers: held})
	for n := 1; n <= count; n++ {
		events = append(events,
			Event{Kind: PointerDown, X: x, Y: y, Button: b, Buttons: bit(b), ClickCount: n, Modifiers: held},
			Event{Kind: PointerUp, X: x, Y: y, Button: b, ClickCount: n, Modifiers: held})
	}
	return append(events, releaseEvents(held)...)
}

// button gives the request's button as MouseEvent numbers it.
func button(b browserv1.MouseButton) Button {
	switch b {
	case browserv1.MouseButton_MOUSE_BUTTON_MIDDLE:
		return ButtonMiddle
	case browserv1.MouseButton_MOUSE_BUTTON_RIGHT:
		return ButtonRight
	case browserv1.MouseButton_MOUSE_BUTTON_LEFT, browserv1.MouseButton_MOUSE_BUTTON_UNSPECIFIED:
	}
	return ButtonLeft
}

// bit is a button's bit in MouseEvent.buttons.
func bit(b Button) int {
	switch b {
	case ButtonMiddle:
		return 4
	case ButtonRight:
		return 2
	case ButtonLeft:
	}
	return 1
}
