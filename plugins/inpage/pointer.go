package inpage

import (
	"cmp"
	"context"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Hover moves the pointer over the target and leaves it there. Errors: as Click's.
func (p *Page) Hover(ctx context.Context, r *browserv1.HoverRequest) ([]*browserv1.Warning, error) {
	lead := 25 * time.Millisecond
	for range attempts {
		last, err := p.prepare(ctx, r.GetTarget(), how{kind: "move", armed: true})
		if err != nil {
			return nil, err
		}
		x, y := last.led(lead)
		began := time.Now()
		// The first move makes sure that the second is one, also when the pointer is there already.
		if err := p.perform(ctx, []Event{{Kind: PointerMove, X: max(x-1, 0), Y: y}, {Kind: PointerMove, X: x, Y: y}}); err != nil {
			return nil, err
		}
		lead = time.Since(began)
		g, err := p.confirm(ctx, last.at, "")
		if err != nil {
			return nil, err
		}
		if g.OK != nil && *g.OK {
			return nil, nil
		}
	}
	return nil, fault.New(fault.ElementNotActionable, "the pointer did not get onto the element").Reason("moving").
		Hint("take a new page.snapshot")
}

// dragSteps is how many moves a drag makes on its way, and dragPace the pause between two, so that a page that looks at
// moves, and a browser that starts a drag of its own, keep up.
const (
	dragSteps = 8
	dragPace  = 16 * time.Millisecond
)

// Drag presses the pointer on one target, moves to the other and lets go. dropped says that the page got the drop, or the
// release, on the second target. Errors: as Click's.
func (p *Page) Drag(ctx context.Context, r *browserv1.DragRequest) (dropped bool, warnings []*browserv1.Warning, err error) {
	from, err := p.grab(ctx, r.GetFrom())
	if err != nil {
		return false, nil, err
	}
	// What is dragged may lie over the target while it moves, so the target need not be hit yet.
	to, err := p.prepare(ctx, r.GetTo(), how{kind: "drop", armed: true, force: true})
	if err != nil {
		p.letGo(ctx, from.X, from.Y)
		return false, nil, err
	}
	var move []Event
	for i := 1; i <= dragSteps; i++ {
		share := float64(i) / dragSteps
		move = append(move,
			Event{Kind: PointerMove, X: from.X + 8 + (to.X-from.X-8)*share, Y: from.Y + 8 + (to.Y-from.Y-8)*share, Buttons: 1},
			Event{Kind: Pause, Duration: dragPace})
	}
	move = append(move,
		Event{Kind: PointerMove, X: to.X, Y: to.Y, Buttons: 1},
		Event{Kind: Pause, Duration: 3 * dragPace},
		Event{Kind: PointerUp, X: to.X, Y: to.Y, Button: ButtonLeft, ClickCount: 1})
	if err := p.perform(ctx, move); err != nil {
		p.letGo(ctx, to.X, to.Y)
		return false, nil, err
	}
	g, err := p.confirm(ctx, to.at, "drop")
	if err != nil {
		return false, nil, err
	}
	for _, sign := range []string{"drop", "mouseup", "pointerup", "gone"} {
		if _, ok := g.On[sign]; ok {
			return true, nil, nil
		}
	}
	// What is dragged with pointer capture gets the release itself; the page then decides by the place.
	if g.Seen["mouseup"]+g.Seen["pointerup"] > 0 {
		return true, []*browserv1.Warning{{
			Code: "drop_elsewhere", Message: "the release came to another element than the target, such as the dragged one; check that the page took the drop",
		}}, nil
	}
	return false, []*browserv1.Warning{{
		Code: "drop_refused", Message: "the target did not take the drop",
	}}, nil
}

// grab presses the button on a target and begins to move. The button is up again when it fails.
func (p *Page) grab(ctx context.Context, t *browserv1.Target) (ready, error) {
	var last guard
	for range attempts {
		from, err := p.prepare(ctx, t, how{kind: "press", armed: true})
		if err != nil {
			return from, err
		}
		err = p.perform(ctx, []Event{
			{Kind: PointerMove, X: from.X, Y: from.Y},
			{Kind: PointerDown, X: from.X, Y: from.Y, Button: ButtonLeft, Buttons: 1, ClickCount: 1},
			{Kind: Pause, Duration: dragPace},
			{Kind: PointerMove, X: from.X + 3, Y: from.Y + 3, Buttons: 1},
			{Kind: Pause, Duration: dragPace},
			{Kind: PointerMove, X: from.X + 8, Y: from.Y + 8, Buttons: 1},
			{Kind: Pause, Duration: dragPace},
		})
		if err == nil {
			last, err = p.confirm(ctx, from.at, "")
		}
		if err == nil && (last.OK != nil && *last.OK || last.OK == nil && last.Active) {
			return from, nil
		}
		p.letGo(ctx, from.X, from.Y)
		if err != nil {
			return from, err
		}
	}
	return ready{}, fault.New(fault.ElementNotActionable, "the press went to %s instead", cmp.Or(last.Other, "nothing")).
		Reason("covered").With("covered_by", last.Other)
}

// letGo releases the button after a drag that failed, also when its call has ended.
func (p *Page) letGo(ctx context.Context, x, y float64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
	defer cancel()
	// The first error is the one to tell.
	_ = p.input.Perform(ctx, []Event{{Kind: PointerUp, X: x, Y: y, Button: ButtonLeft, ClickCount: 1}})
}
