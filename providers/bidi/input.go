package bidi

import (
	"context"
	"math"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/proto/fault"
)

var _ inpage.Input = (*page)(nil)

// inputSource is input.SourceActions: what one device does, a step at each tick.
type inputSource struct {
	Type       string       `json:"type"` // key, pointer, wheel or none
	ID         string       `json:"id"`
	Parameters *pointerKind `json:"parameters,omitempty"`
	Actions    []inputStep  `json:"actions"`
}

type pointerKind struct {
	PointerType string `json:"pointerType"`
}

// inputStep is one action of a device.
type inputStep struct {
	Type     string   `json:"type"`
	Value    string   `json:"value,omitempty"`
	X        *float64 `json:"x,omitempty"`
	Y        *float64 `json:"y,omitempty"`
	Button   *int     `json:"button,omitempty"`
	DeltaX   *int     `json:"deltaX,omitempty"`
	DeltaY   *int     `json:"deltaY,omitempty"`
	Duration *int64   `json:"duration,omitempty"`
}

// script is a batch on its way to the browser: devices whose ticks run side by side.
type script struct {
	key, pointer, wheel []inputStep
	ticks               int
}

func (s *script) tick(device *[]inputStep, step inputStep) {
	for len(*device) < s.ticks {
		*device = append(*device, inputStep{Type: "pause"})
	}
	*device = append(*device, step)
	s.ticks++
}

func (s *script) sources() []inputSource {
	var out []inputSource
	if len(s.key) > 0 {
		out = append(out, inputSource{Type: "key", ID: "keyboard", Actions: s.key})
	}
	if len(s.pointer) > 0 {
		out = append(out, inputSource{Type: "pointer", ID: "mouse", Parameters: &pointerKind{"mouse"}, Actions: s.pointer})
	}
	if len(s.wheel) > 0 {
		out = append(out, inputSource{Type: "wheel", ID: "wheel", Actions: s.wheel})
	}
	return out
}

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
	s, at, framed := &script{}, p.topSpot(), p.framed()
	flush := func() error {
		err := p.dispatch(ctx, at.frame, s)
		s = &script{}
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
		if err == nil && (next.frame != at.frame || e.Kind == inpage.InsertText || s.ticks >= batchTicks) {
			err = flush()
		}
		if err != nil {
			return err
		}
		at = next
		if e.Kind == inpage.InsertText {
			err = p.insert(ctx, e.Text)
		} else {
			err = s.add(e, at)
		}
		if err != nil {
			return err
		}
	}
	return flush()
}

// dispatch sends a batch to a frame.
func (p *page) dispatch(ctx context.Context, frame string, s *script) error {
	if s.ticks == 0 {
		return nil
	}
	_, err := do(ctx, p.b.conn, inputPerform, performParams{Context: frame, Actions: s.sources()})
	return err
}

func isKey(e inpage.Event) bool { return e.Kind == inpage.KeyDown || e.Kind == inpage.KeyUp }

// add writes an event as the step of its device.
func (s *script) add(e inpage.Event, at spot) error {
	x, y := at.inside(e.X, e.Y)
	switch e.Kind {
	case inpage.PointerMove:
		zero := int64(0)
		s.tick(&s.pointer, inputStep{Type: "pointerMove", X: &x, Y: &y, Duration: &zero})
	case inpage.PointerDown, inpage.PointerUp:
		kind := "pointerDown"
		if e.Kind == inpage.PointerUp {
			kind = "pointerUp"
		}
		button := int(e.Button)
		s.tick(&s.pointer, inputStep{Type: kind, Button: &button})
	case inpage.KeyDown, inpage.KeyUp:
		value, ok := keyValue(e)
		if !ok {
			return fault.New(fault.InvalidRequest, "WebDriver has no key %s", e.Key).Reason("key_unavailable").Field("key").
				Hint("use another key, or a provider such as cdp")
		}
		kind := "keyDown"
		if e.Kind == inpage.KeyUp {
			kind = "keyUp"
		}
		s.tick(&s.key, inputStep{Type: kind, Value: value})
	case inpage.Wheel:
		x, y, dx, dy := math.Floor(x), math.Floor(y), int(e.DX), int(e.DY)
		s.tick(&s.wheel, inputStep{Type: "scroll", X: &x, Y: &y, DeltaX: &dx, DeltaY: &dy})
	case inpage.Pause:
		ms := e.Duration.Milliseconds()
		s.tick(&s.key, inputStep{Type: "pause", Duration: &ms})
	case inpage.InsertText:
	}
	return nil
}

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
