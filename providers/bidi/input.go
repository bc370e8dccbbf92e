package bidi

import (
	"context"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/w3c"
)

var _ inpage.Input = (*page)(nil)

// longText is how many characters are written key by key at the most: at one to two milliseconds each that is about
// three seconds. What is longer is inserted in one go.
const longText = 2000

// batchTicks is how many ticks go into one command, so that a call that ends does not leave much behind.
const batchTicks = 400

// Perform dispatches trusted input.
func (p *page) Perform(ctx context.Context, events []inpage.Event) error {
	if err := p.focus(ctx); err != nil {
		return err
	}
	if startsClick(events) {
		// A second click at the same place within the double-click time would count as the second half of one.
		if _, err := do(ctx, p.b.conn, inputRelease, inContext{p.context}); err != nil {
			return err
		}
	}
	p.remember(ctx)
	err := p.performAll(ctx, events)
	if err != nil && presses(events) {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_, _ = do(brief, p.b.conn, inputRelease, inContext{p.context}) // The first error is the one to tell.
		cancel()
	}
	return err
}

func (p *page) performAll(ctx context.Context, events []inpage.Event) error {
	s, at, framed := &w3c.Script{}, p.topSpot(), p.framed()
	flush := func() error {
		err := p.dispatch(ctx, at.frame, s)
		s = &w3c.Script{}
		return err
	}
	for i, e := range events {
		next, err := at, error(nil)
		switch {
		case !framed || e.Kind == inpage.Pause || e.Kind == inpage.InsertText:
		case e.Kind == inpage.KeyDown || e.Kind == inpage.KeyUp:
			if i == 0 || isKey(e) != isKey(events[i-1]) {
				next = p.topSpot()
				next.frame, err = p.focusedFrame(ctx)
			}
		case e.Kind == inpage.PointerMove && e.Buttons == 0 || e.Kind == inpage.Wheel || i == 0:
			next, err = p.spotAt(ctx, e.X, e.Y)
		}
		if err == nil && (next.frame != at.frame || e.Kind == inpage.InsertText || s.Ticks >= batchTicks) {
			err = flush()
		}
		if err != nil {
			return err
		}
		at = next
		if e.Kind == inpage.InsertText {
			err = p.insert(ctx, e.Text)
		} else {
			x, y := at.inside(e.X, e.Y)
			err = s.Add(e, x, y)
		}
		if err != nil {
			return err
		}
	}
	return flush()
}

// dispatch sends a batch to a frame.
func (p *page) dispatch(ctx context.Context, frame string, s *w3c.Script) error {
	if s.Ticks == 0 {
		return nil
	}
	_, err := do(ctx, p.b.conn, inputPerform, performParams{Context: frame, Actions: s.Sources()})
	return err
}

func isKey(e inpage.Event) bool { return e.Kind == inpage.KeyDown || e.Kind == inpage.KeyUp }

// startsClick says whether a batch begins a click of its own.
func startsClick(events []inpage.Event) bool {
	for _, e := range events {
		if e.Kind == inpage.PointerDown {
			return e.ClickCount <= 1
		}
	}
	return false
}

// presses says whether a batch holds something down on its way.
func presses(events []inpage.Event) bool {
	for _, e := range events {
		if e.Kind == inpage.PointerDown || e.Kind == inpage.KeyDown || e.Kind == inpage.InsertText {
			return true
		}
	}
	return false
}
