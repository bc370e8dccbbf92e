package firefox

import (
	"context"
	"slices"

	"github.com/droverhq/drover/plugins/inpage"
)

var (
	_ inpage.Input     = (*page)(nil)
	_ inpage.Synthetic = (*page)(nil)
)

// Synthetic says that the browser does not trust this input: an add-on has no other.
func (p *page) Synthetic() bool { return true }

// spot is where input goes: a frame, and where its viewport begins in the page's, with the scale in which it is shown.
type spot struct {
	frame          inpage.FrameID
	left, top      float64
	scaleX, scaleY float64
}

// place is a frame element as the add-on tells of it.
type place struct {
	Frame int64   `json:"frame"`
	Left  float64 `json:"left"`
	Top   float64 `json:"top"`
	SX    float64 `json:"sx"`
	SY    float64 `json:"sy"`
}

var topSpot = spot{frame: topFrame, scaleX: 1, scaleY: 1}

// inside turns a point of the page's viewport into one of the frame's.
func (s spot) inside(x, y float64) (float64, float64) {
	return (x - s.left) / s.scaleX, (y - s.top) / s.scaleY
}

// within is the spot of a frame that is shown in this one.
func (s spot) within(in *place) spot {
	return spot{
		frame: frameID(in.Frame), left: s.left + in.Left*s.scaleX, top: s.top + in.Top*s.scaleY, scaleX: s.scaleX * in.SX, scaleY: s.scaleY * in.SY,
	}
}

// spotAt finds the innermost frame at a point of the page's viewport, or with keys the one that has the focus.
// press says that a button goes down there.
func (p *page) spotAt(ctx context.Context, x, y float64, keys, press bool) (spot, error) {
	at := topSpot
	for p.framed() {
		var in *place
		var err error
		if keys {
			in, err = hand[*place](ctx, p, at.frame, "focused")
		} else {
			ix, iy := at.inside(x, y)
			in, err = hand[*place](ctx, p, at.frame, "spot", ix, iy, press)
		}
		if err != nil {
			return at, err
		}
		if in == nil {
			break
		}
		at = at.within(in)
	}
	return at, nil
}

// strike is one event as the add-on's hands take it.
type strike struct {
	Kind       string  `json:"kind"`
	X          float64 `json:"x"`
	Y          float64 `json:"y"`
	Button     int     `json:"button"`
	Buttons    int     `json:"buttons"`
	ClickCount int     `json:"clickCount"`
	Modifiers  int     `json:"modifiers"`
	Key        string  `json:"key,omitempty"`
	Code       string  `json:"code,omitempty"`
	KeyCode    int     `json:"keyCode,omitempty"`
	Location   int     `json:"location,omitempty"`
	Text       string  `json:"text,omitempty"`
	DX         float64 `json:"dx,omitempty"`
	DY         float64 `json:"dy,omitempty"`
	MS         int64   `json:"ms,omitempty"`
}

var strikeKinds = map[inpage.EventKind]string{
	inpage.PointerMove: "move", inpage.PointerDown: "down", inpage.PointerUp: "up", inpage.KeyDown: "key_down", inpage.KeyUp: "key_up",
	inpage.InsertText: "text", inpage.Wheel: "wheel", inpage.Pause: "pause",
}

// Perform makes a batch of input in the frame that it is meant for: the one at its first point, or the one with the focus.
func (p *page) Perform(ctx context.Context, events []inpage.Event) error {
	isPointer := func(e inpage.Event) bool {
		return e.Kind == inpage.PointerMove || e.Kind == inpage.PointerDown || e.Kind == inpage.PointerUp || e.Kind == inpage.Wheel
	}
	first := slices.IndexFunc(events, isPointer)
	x, y := 0.0, 0.0
	if first >= 0 {
		x, y = events[first].X, events[first].Y
	}
	press := slices.ContainsFunc(events, func(e inpage.Event) bool { return e.Kind == inpage.PointerDown })
	at, err := p.spotAt(ctx, x, y, first < 0, press)
	if err != nil {
		return err
	}
	list := make([]strike, len(events))
	for i, e := range events {
		ix, iy := at.inside(e.X, e.Y)
		list[i] = strike{
			Kind: strikeKinds[e.Kind], X: ix, Y: iy, Button: int(e.Button), Buttons: e.Buttons, ClickCount: e.ClickCount, Modifiers: int(e.Modifiers),
			Key: e.Key, Code: e.Code, KeyCode: e.KeyCode, Location: e.Location, Text: e.Text, DX: e.DX, DY: e.DY, MS: e.Duration.Milliseconds(),
		}
	}
	p.remember(ctx)
	_, err = hand[string](ctx, p, at.frame, "perform", list)
	return err
}
