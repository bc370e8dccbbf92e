package bidi

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/droverhq/drover/plugins/inpage"
)

// insert writes a text into whatever has the focus. Chromium takes it in one go, as from an input method. Firefox has no
// such command: each character goes as a key of that name, which writes any script; a long text, and one with characters
// that stand for keys, is inserted by the document itself.
func (p *page) insert(ctx context.Context, text string) error {
	switch {
	case text == "":
		return nil
	case !p.b.firefox():
		_, err := p.cdp(ctx, "Input.insertText", map[string]any{"text": text})
		return err
	case utf8.RuneCountInString(text) > longText || namesKeys(text):
		p.keyless = true
		return p.command(ctx, text)
	}
	frame := p.context
	if p.framed() {
		var err error
		if frame, err = p.focusedFrame(ctx); err != nil {
			return err
		}
	}
	s := &script{}
	for _, r := range text {
		s.tick(&s.key, inputStep{Type: "keyDown", Value: string(r)})
		s.tick(&s.key, inputStep{Type: "keyUp", Value: string(r)})
		if s.ticks < batchTicks {
			continue
		}
		if err := p.dispatch(ctx, frame, s); err != nil {
			return err
		}
		s = &script{}
	}
	return p.dispatch(ctx, frame, s)
}

// namesKeys says whether a text holds characters by which WebDriver names keys.
func namesKeys(text string) bool {
	for _, r := range text {
		if r >= 0xE000 && r <= 0xE05D {
			return true
		}
	}
	return false
}

// command has the document that holds the focus insert a text. The events that follow are the browser's own.
func (p *page) command(ctx context.Context, text string) error {
	frame, err := p.focusedFrame(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("writing the text: %w", err)
	}
	done, err := p.Eval(ctx, inpage.FrameID(frame), "String(document.execCommand('insertText', false, "+string(data)+"))")
	if err == nil && done != "true" {
		err = fmt.Errorf("the document does not take the text")
	}
	return err
}

// keys are the characters by which WebDriver names keys (WebDriver, 17.4.2 "Keyboard actions").
var keys = map[string]rune{
	"Cancel": 0xE001, "Help": 0xE002, "Backspace": 0xE003, "Tab": 0xE004, "Clear": 0xE005, "Enter": 0xE006, "Shift": 0xE008,
	"Control": 0xE009, "Alt": 0xE00A, "Pause": 0xE00B, "Escape": 0xE00C, "PageUp": 0xE00E, "PageDown": 0xE00F, "End": 0xE010,
	"Home": 0xE011, "ArrowLeft": 0xE012, "ArrowUp": 0xE013, "ArrowRight": 0xE014, "ArrowDown": 0xE015, "Insert": 0xE016,
	"Delete": 0xE017, "F1": 0xE031, "F2": 0xE032, "F3": 0xE033, "F4": 0xE034, "F5": 0xE035, "F6": 0xE036, "F7": 0xE037,
	"F8": 0xE038, "F9": 0xE039, "F10": 0xE03A, "F11": 0xE03B, "F12": 0xE03C, "Meta": 0xE03D,
}

// keyValue gives the character that stands for an event's key; false where there is none.
func keyValue(e inpage.Event) (string, bool) {
	if r, ok := keys[e.Key]; ok {
		return string(r), true
	}
	return e.Key, utf8.RuneCountInString(e.Key) == 1 && !namesKeys(e.Key)
}
