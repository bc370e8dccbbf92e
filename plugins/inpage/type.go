package inpage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// edited is a field that the engine made ready for text.
type edited struct {
	Ref     string  `json:"ref"`
	Kind    string  `json:"kind"` // set, text, keys, click or frame
	Secret  bool    `json:"secret"`
	Several bool    `json:"several"` // it holds several lines
	Rich    bool    `json:"rich"`
	Empty   bool    `json:"empty"`
	End     bool    `json:"end"`  // only the End key puts the caret at its end
	Full    bool    `json:"full"` // its maxlength is used up
	Value   *string `json:"value"`

	at FrameID
}

// Typed is what Type did.
type Typed struct {
	// Value is what the field holds now; nil for passwords and where there is no field.
	Value    *string
	Warnings []*browserv1.Warning
}

// Type types the request's text: into the target, or the focused element, at the end or instead of what is there. Fields
// that are picked (date, time, colour, range) are set. Errors: those of Locate; element_not_actionable with reason
// disabled, readonly, not_visible or not_editable; unsupported_target; invalid_request for a value that the field cannot hold.
func (p *Page) Type(ctx context.Context, r *browserv1.TypeRequest) (Typed, error) {
	f, err := p.edit(ctx, r.GetTarget(), r)
	if err != nil {
		return Typed{}, err
	}
	out := Typed{Value: f.Value}
	if f.Kind != "set" {
		if out, err = p.write(ctx, f, r); err != nil {
			return Typed{}, err
		}
	}
	if f.Secret {
		out.Value = nil
	}
	if out.Value != nil && lacks(*out.Value, r.GetText(), f) {
		out.Warnings = append(out.Warnings, differs)
	}
	if r.GetSubmit() {
		if err := p.strike(ctx, f.at, named["Enter"].press(0)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// differs warns of a field that did not take all of the text.
var differs = &browserv1.Warning{
	Code:    "value_differs",
	Message: "the field does not hold all of the text, for it or the page changed it; value is what it holds, and delay_ms types key by key",
}

// lacks says whether a field lacks something of the text that was typed. Letters may be large or small in it, and more may
// stand between them, as fields with a mask have it.
func lacks(value, text string, f edited) bool {
	if !f.Several && strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\r\n") {
		return true
	}
	held := []rune(strings.ToLower(value))
	for _, want := range strings.ToLower(text) {
		if unicode.IsSpace(want) {
			continue
		}
		i := slices.Index(held, want)
		if i < 0 {
			return true
		}
		held = held[i+1:]
	}
	return false
}

// edit makes the field ready, with a click where the focus alone is not enough.
func (p *Page) edit(ctx context.Context, t *browserv1.Target, r *browserv1.TypeRequest) (edited, error) {
	clicked := false
	if t.GetPosition() != nil {
		if _, err := p.Click(ctx, &browserv1.ClickRequest{Target: t}); err != nil {
			return edited{}, err
		}
		t, clicked = nil, true
	}
	for {
		f := edited{}
		at := FrameID("")
		args := func(a aim, wait int, leave string) any {
			return map[string]any{
				"target": a, "wait": wait, "leave": leave, "text": r.GetText(), "replace": r.GetReplace(),
				"clicked": clicked, "synthetic": p.synthetic,
			}
		}
		var err error
		if nothing(t) {
			at, err = p.focused(ctx, func(frame FrameID) error {
				f = edited{}
				return p.call(ctx, frame, "edit", args(aim{Focused: true}, 0, ""), &f)
			}, func() (bool, string) { return f.Kind == "frame", f.Ref })
		} else {
			err = p.seek(ctx, t, "edit", args, func(frame FrameID) any { at = frame; f = edited{}; return &f })
		}
		f.at = at
		if err != nil {
			return f, err
		}
		switch {
		case f.Kind == "frame":
			return f, fault.New(fault.UnsupportedTarget, "the element %s is a frame", f.Ref).Hint("type into a field inside it")
		case f.Kind == "click" && !clicked:
			clicked = true
			ref := f.Ref
			if _, err := p.Click(ctx, &browserv1.ClickRequest{Target: &browserv1.Target{ElementRef: &ref}}); err != nil {
				return f, err
			}
			t = &browserv1.Target{ElementRef: &ref}
		default:
			return f, nil
		}
	}
}

// nothing says that a target names nothing, which means the focused element.
func nothing(t *browserv1.Target) bool {
	return t == nil || t.ElementRef == nil && t.Selector == nil && t.TextQuery == nil && t.Position == nil
}

// focused runs fn in the frame that has the focus, from the main frame inwards. inner tells, after fn, whether the focus
// lies in a frame element and in which.
func (p *Page) focused(ctx context.Context, fn func(FrameID) error, inner func() (bool, string)) (FrameID, error) {
	frame, err := p.eval.MainFrame(ctx)
	if err != nil {
		return "", err
	}
	for {
		if err := fn(frame); err != nil {
			return frame, err
		}
		in, ref := inner()
		if !in {
			return frame, nil
		}
		child, err := p.child(ctx, frame, ref)
		if errors.Is(err, ErrDocumentGone) {
			return frame, nil // It shows no document; the element itself has the focus.
		}
		if err != nil {
			return frame, err
		}
		frame = child
	}
}

// write sends the text to a field that has the focus, and reads what it holds then.
func (p *Page) write(ctx context.Context, f edited, r *browserv1.TypeRequest) (Typed, error) {
	events := p.writing(f, r)
	var got struct {
		Came  bool           `json:"came"`
		Seen  map[string]int `json:"seen"`
		Value *string        `json:"value"`
	}
	if f.End && len(events) > 0 {
		events = append(named["End"].press(0), events...)
	}
	if len(events) > 0 {
		if err := p.perform(ctx, events); err != nil {
			return Typed{}, err
		}
	}
	err := p.call(ctx, f.at, "typed", map[string]any{"ref": f.Ref, "wait": waitFor(events)}, &got)
	if errors.Is(err, ErrDocumentGone) {
		return Typed{}, nil // The page took the text and went on.
	}
	if err != nil {
		return Typed{}, afterInput(err)
	}
	if len(events) > 0 && !got.Came && !f.Full {
		return Typed{}, afterInput(fault.New(fault.ElementNotActionable, "the field %s did not get the text", f.Ref).
			Reason("not_focused").With("element_ref", f.Ref).Hint("click it first, then take a new page.snapshot"))
	}
	if f.Kind == "keys" {
		return Typed{}, nil
	}
	return Typed{Value: got.Value}, nil
}

// waitFor is how long the first sign of input is waited for, in milliseconds.
func waitFor(events []Event) int {
	if len(events) == 0 {
		return 0
	}
	return 250
}

// writing is the input that writes the request's text into a field.
func (p *Page) writing(f edited, r *browserv1.TypeRequest) []Event {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(r.GetText())
	if !f.Several && f.Kind == "text" {
		text = strings.ReplaceAll(text, "\n", "")
	}
	if text == "" {
		if r.GetReplace() && !f.Empty && f.Kind == "text" {
			return named["Backspace"].press(0) // Everything is selected.
		}
		return nil
	}
	if f.Kind == "keys" || r.GetDelayMs() > 0 {
		return typing(text, time.Duration(r.GetDelayMs())*time.Millisecond, f.Kind == "keys")
	}
	if !f.Rich {
		return []Event{{Kind: InsertText, Text: text}}
	}
	// In an editor a line ends with a line break, not with Enter, which many take for "send".
	var events []Event
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			br := named["Enter"]
			events = append(events, br.press(ModShift)...)
		}
		if line != "" {
			events = append(events, Event{Kind: InsertText, Text: line})
		}
	}
	return events
}

// typing is text key by key, with a pause between two. A character that no key writes is inserted, unless keys alone are asked for.
func typing(text string, delay time.Duration, keys bool) []Event {
	var events []Event
	for i, g := range graphemes(text) {
		if i > 0 && delay > 0 {
			events = append(events, Event{Kind: Pause, Duration: delay})
		}
		s, ok := strokeOf(g, false)
		if ok && (s.code != "" || keys) {
			events = append(events, s.press(0)...)
		} else {
			events = append(events, Event{Kind: InsertText, Text: g})
		}
	}
	return events
}

// strike sends keys to the frame that has the focus and makes sure that its document got them.
func (p *Page) strike(ctx context.Context, frame FrameID, events []Event) error {
	if err := p.call(ctx, frame, "arm", map[string]any{"kind": "keys", "synthetic": p.synthetic}, nil); err != nil {
		if errors.Is(err, ErrDocumentGone) {
			return nil // The text alone made the page go on.
		}
		return afterInput(err)
	}
	_, err := p.struck(ctx, frame, events)
	return err
}

// struck sends keys that the guard of a frame waits for.
func (p *Page) struck(ctx context.Context, frame FrameID, events []Event) ([]*browserv1.Warning, error) {
	if err := p.perform(ctx, events); err != nil {
		return nil, err
	}
	g, err := p.confirm(ctx, frame, "")
	if err != nil {
		return nil, err
	}
	if g.OK == nil {
		return nil, afterInput(fault.New(fault.ElementNotActionable, "the page did not get the key").Reason("not_focused").
			Hint("click the element first, then press"))
	}
	return g.warnings(), nil
}
