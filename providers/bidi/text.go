package bidi

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/w3c"
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
	case utf8.RuneCountInString(text) > longText || w3c.NamesKeys(text):
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
	s := &w3c.Script{}
	for _, r := range text {
		s.Tick(&s.Key, w3c.Step{Type: "keyDown", Value: string(r)})
		s.Tick(&s.Key, w3c.Step{Type: "keyUp", Value: string(r)})
		if s.Ticks < batchTicks {
			continue
		}
		if err := p.dispatch(ctx, frame, s); err != nil {
			return err
		}
		s = &w3c.Script{}
	}
	return p.dispatch(ctx, frame, s)
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
