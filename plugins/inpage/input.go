package inpage

import (
	"context"
	"time"
)

// Input dispatches input to a page the way a person's devices do.
type Input interface {
	// Perform dispatches a batch in order and returns when the page has handled it. Coordinates are CSS pixels of the
	// top viewport. A batch is whole: after an error the provider lets go of keys and buttons that the batch pressed.
	Perform(ctx context.Context, events []Event) error
}

// Synthetic is an Input whose events are not trusted by the browser; the driver then accepts such events as arrived.
type Synthetic interface {
	Synthetic() bool
}

// EventKind is a kind of input.
type EventKind int

// The kinds of input, and the fields of Event that count for each. Modifiers and Buttons hold for all of them.
const (
	PointerMove EventKind = iota // X, Y: the mouse moves there; a drag when a button is down
	PointerDown                  // X, Y, Button, ClickCount
	PointerUp                    // X, Y, Button, ClickCount
	KeyDown                      // Key, Code, KeyCode, Location, Text: with Text it is a key that writes, "\r" for Enter
	KeyUp                        // Key, Code, KeyCode, Location
	InsertText                   // Text: as an input method commits it, in one go, without keys
	Wheel                        // X, Y, DX, DY in CSS pixels
	Pause                        // Duration
)

// Button is a mouse button, numbered as MouseEvent.button.
type Button int

// The mouse buttons.
const (
	ButtonLeft   Button = 0
	ButtonMiddle Button = 1
	ButtonRight  Button = 2
)

// Modifiers is the set of modifier keys that are held, with the bits of CDP.
type Modifiers int

// The modifier keys.
const (
	ModAlt     Modifiers = 1
	ModControl Modifiers = 2
	ModMeta    Modifiers = 4
	ModShift   Modifiers = 8
)

// Event is one piece of input. Fields that its kind does not name are zero.
type Event struct {
	Kind EventKind
	// X and Y are CSS pixels from the left and top of the top viewport.
	X, Y float64
	// Button is the button that goes down or up.
	Button Button
	// Buttons are those held after the event, as MouseEvent.buttons: 1 left, 2 right, 4 middle.
	Buttons int
	// ClickCount is 1, 2 for the second press of a double click, 3 for a triple one.
	ClickCount int
	Modifiers  Modifiers
	// Key, Code and Location are those of KeyboardEvent; KeyCode is its legacy keyCode, the Windows virtual key.
	Key, Code         string
	KeyCode, Location int
	// Text is what a KeyDown writes or an InsertText inserts.
	Text string
	// DX and DY are CSS pixels to the right and down.
	DX, DY float64
	// Duration is how long a Pause lasts.
	Duration time.Duration
}
