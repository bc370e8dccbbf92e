package cdp

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/input"

	"github.com/droverhq/drover/plugins/inpage"
)

var _ inpage.Input = (*page)(nil)

// Perform dispatches trusted input. All of it goes to the page's own session: the browser finds the frame that a point
// lies in, or that has the focus, also in another process. Events go out without waiting for one another and stay in order.
func (p *page) Perform(ctx context.Context, events []inpage.Event) error {
	var sent []*call
	var held pressed
	flush := func() error {
		for _, k := range sent {
			if err := k.wait(ctx, nil); err != nil {
				return err
			}
		}
		sent = sent[:0]
		return nil
	}
	for _, e := range events {
		if e.Kind == inpage.Pause {
			err := flush()
			if err == nil {
				err = pause(ctx, e.Duration)
			}
			if err != nil {
				held.letGo(p.ch)
				return err
			}
			continue
		}
		method, params := translate(e)
		sent = append(sent, p.ch.start(method, params))
		held.note(e)
	}
	if err := flush(); err != nil {
		held.letGo(p.ch)
		return err
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var buttonNames = map[inpage.Button]input.MouseButton{
	inpage.ButtonLeft: input.MouseButtonLeft, inpage.ButtonMiddle: input.MouseButtonMiddle, inpage.ButtonRight: input.MouseButtonRight,
}

// heldButton is the button that a move drags with.
func heldButton(buttons int) input.MouseButton {
	switch {
	case buttons&1 != 0:
		return input.MouseButtonLeft
	case buttons&2 != 0:
		return input.MouseButtonRight
	case buttons&4 != 0:
		return input.MouseButtonMiddle
	}
	return input.MouseButtonNone
}

// translate gives the command for an event.
func translate(e inpage.Event) (method string, params any) {
	mouse := input.DispatchMouseEventParams{X: e.X, Y: e.Y, Modifiers: int64(e.Modifiers), Buttons: int64(e.Buttons)}
	key := input.DispatchKeyEventParams{
		Modifiers: int64(e.Modifiers), Key: e.Key, Code: e.Code, Location: int64(e.Location),
		WindowsVirtualKeyCode: int64(e.KeyCode), NativeVirtualKeyCode: int64(e.KeyCode),
	}
	switch e.Kind {
	case inpage.PointerMove:
		mouse.Type, mouse.Button = input.DispatchMouseEventTypeMouseMoved, heldButton(e.Buttons)
	case inpage.PointerDown:
		mouse.Type, mouse.Button, mouse.ClickCount = input.DispatchMouseEventTypeMousePressed, buttonNames[e.Button], int64(e.ClickCount)
	case inpage.PointerUp:
		mouse.Type, mouse.Button, mouse.ClickCount = input.DispatchMouseEventTypeMouseReleased, buttonNames[e.Button], int64(e.ClickCount)
	case inpage.Wheel:
		mouse.Type = input.DispatchMouseEventTypeMouseWheel
		return input.DispatchMouseEvent.Method, wheel{mouse, e.DX, e.DY}
	case inpage.KeyDown:
		key.Type, key.Text, key.UnmodifiedText = input.DispatchKeyEventTypeRawKeyDown, e.Text, e.Text
		if e.Text != "" {
			key.Type = input.DispatchKeyEventTypeKeyDown
		}
		return input.DispatchKeyEvent.Method, key
	case inpage.KeyUp:
		key.Type = input.DispatchKeyEventTypeKeyUp
		return input.DispatchKeyEvent.Method, key
	case inpage.InsertText:
		return input.InsertText.Method, input.InsertTextParams{Text: e.Text}
	case inpage.Pause: // Perform's own
	}
	return input.DispatchMouseEvent.Method, mouse
}

// wheel writes deltas of zero too, which the browser insists on.
type wheel struct {
	input.DispatchMouseEventParams `json:",inline"`
	DX                             float64 `json:"deltaX"`
	DY                             float64 `json:"deltaY"`
}

// pressed is what a batch holds down.
type pressed struct {
	buttons map[inpage.Button]inpage.Event
	keys    map[string]inpage.Event
}

func (h *pressed) note(e inpage.Event) {
	if h.buttons == nil {
		h.buttons, h.keys = map[inpage.Button]inpage.Event{}, map[string]inpage.Event{}
	}
	switch e.Kind {
	case inpage.PointerDown:
		h.buttons[e.Button] = e
	case inpage.PointerUp:
		delete(h.buttons, e.Button)
	case inpage.KeyDown:
		h.keys[e.Key+e.Code] = e
	case inpage.KeyUp:
		delete(h.keys, e.Key+e.Code)
	default: // The rest holds nothing down.
	}
}

// letGo releases what is held, without waiting: the page may be unable to answer.
func (h *pressed) letGo(ch *channel) {
	for _, e := range h.buttons {
		e.Kind, e.Buttons = inpage.PointerUp, 0
		ch.post(translate(e))
	}
	for _, e := range h.keys {
		e.Kind, e.Modifiers = inpage.KeyUp, 0
		ch.post(translate(e))
	}
}
