// Package w3c writes the engine's input as the actions of WebDriver, which classic and BiDi have in common
// (WebDriver, 17 "Actions").
package w3c

import (
	"math"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/proto/fault"
)

// Source is what one device does, a step at each tick.
type Source struct {
	Type       string       `json:"type"` // key, pointer, wheel or none
	ID         string       `json:"id"`
	Parameters *PointerKind `json:"parameters,omitempty"`
	Actions    []Step       `json:"actions"`
}

// PointerKind says which pointer a source is.
type PointerKind struct {
	PointerType string `json:"pointerType"`
}

// Step is one action of a device.
type Step struct {
	Type     string   `json:"type"`
	Value    string   `json:"value,omitempty"`
	X        *float64 `json:"x,omitempty"`
	Y        *float64 `json:"y,omitempty"`
	Button   *int     `json:"button,omitempty"`
	DeltaX   *int     `json:"deltaX,omitempty"`
	DeltaY   *int     `json:"deltaY,omitempty"`
	Duration *int64   `json:"duration,omitempty"`
}

// Script is a batch on its way to the browser: devices whose ticks run side by side. Its zero value is empty.
type Script struct {
	Key, Pointer, Wheel []Step
	Ticks               int
}

// Tick appends a step of a device, which is one of the script's own.
func (s *Script) Tick(device *[]Step, step Step) {
	for len(*device) < s.Ticks {
		*device = append(*device, Step{Type: "pause"})
	}
	*device = append(*device, step)
	s.Ticks++
}

// Sources gives the devices that do something.
func (s *Script) Sources() []Source {
	var out []Source
	if len(s.Key) > 0 {
		out = append(out, Source{Type: "key", ID: "keyboard", Actions: s.Key})
	}
	if len(s.Pointer) > 0 {
		out = append(out, Source{Type: "pointer", ID: "mouse", Parameters: &PointerKind{"mouse"}, Actions: s.Pointer})
	}
	if len(s.Wheel) > 0 {
		out = append(out, Source{Type: "wheel", ID: "wheel", Actions: s.Wheel})
	}
	return out
}

// Add writes an event, at a point of the viewport that the actions are for, as the step of its device. It fails with
// invalid_request, reason key_unavailable, on a key that WebDriver has no name for. It leaves InsertText to the caller.
func (s *Script) Add(e inpage.Event, x, y float64) error {
	switch e.Kind {
	case inpage.PointerMove:
		zero := int64(0)
		s.Tick(&s.Pointer, Step{Type: "pointerMove", X: &x, Y: &y, Duration: &zero})
	case inpage.PointerDown, inpage.PointerUp:
		kind := "pointerDown"
		if e.Kind == inpage.PointerUp {
			kind = "pointerUp"
		}
		button := int(e.Button)
		s.Tick(&s.Pointer, Step{Type: kind, Button: &button})
	case inpage.KeyDown, inpage.KeyUp:
		value, ok := Key(e)
		if !ok {
			return fault.New(fault.InvalidRequest, "WebDriver has no key %s", e.Key).Reason("key_unavailable").Field("key").
				Hint("use another key, or a provider such as cdp")
		}
		kind := "keyDown"
		if e.Kind == inpage.KeyUp {
			kind = "keyUp"
		}
		s.Tick(&s.Key, Step{Type: kind, Value: value})
	case inpage.Wheel:
		x, y, dx, dy := math.Floor(x), math.Floor(y), int(e.DX), int(e.DY)
		s.Tick(&s.Wheel, Step{Type: "scroll", X: &x, Y: &y, DeltaX: &dx, DeltaY: &dy})
	case inpage.Pause:
		ms := e.Duration.Milliseconds()
		s.Tick(&s.Key, Step{Type: "pause", Duration: &ms})
	case inpage.InsertText:
	}
	return nil
}
