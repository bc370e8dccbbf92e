package webdriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tebeka/selenium"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/plugins/w3c"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

var (
	_ inpage.Evaluator = (*page)(nil)
	_ inpage.Input     = (*page)(nil)
)

const elementKey = "element-6066-11e4-a52e-4f735466cecf"

// in runs commands in a frame of the page: a path of element references from the top, "" for the top itself.
func (p *page) in(ctx context.Context, frame string, fn func(selenium.WebDriver) error) error {
	s := p.s
	return s.link.with(ctx, func(wd selenium.WebDriver) error {
		if s.current != p.handle {
			if err := wd.SwitchWindow(p.handle); err != nil {
				return err
			}
			s.current, s.currentFrame = p.handle, ""
		}
		if s.currentFrame != frame {
			if err := s.enterFrame(frame); err != nil {
				return err
			}
		}
		err := fn(wd)
		if refused(err, "no such window", "no such frame", "stale element reference") && frame != "" {
			s.current = "" // The next command finds its way anew.
		}
		return err
	})
}

// enterFrame goes from the top to a frame.
func (s *session) enterFrame(frame string) error {
	s.currentFrame = "?"
	if _, err := s.link.post("frame", map[string]any{"id": nil}); err != nil {
		return err
	}
	for _, id := range strings.FieldsFunc(frame, func(r rune) bool { return r == '/' }) {
		if _, err := s.link.post("frame", map[string]any{"id": map[string]any{elementKey: id}}); err != nil {
			return err
		}
	}
	s.currentFrame = frame
	return nil
}

// run runs a script in a frame and gives what it returned (WebDriver, 13.2.1 "Execute Script").
func (p *page) run(ctx context.Context, frame, script string, args ...any) (raw json.RawMessage, err error) {
	if args == nil {
		args = []any{}
	}
	err = p.in(ctx, frame, func(selenium.WebDriver) error {
		raw, err = p.s.link.post("execute/sync", map[string]any{"script": script, "args": args})
		return err
	})
	return raw, err
}

// MainFrame gives the frame of the top document.
func (p *page) MainFrame(context.Context) (inpage.FrameID, error) { return "", nil }

// Eval evaluates an expression that gives a string, in the page's own world: WebDriver has no other.
func (p *page) Eval(ctx context.Context, frame inpage.FrameID, expression string) (string, error) {
	raw, err := p.run(ctx, string(frame), "return ("+strings.TrimRight(strings.TrimSpace(expression), ";")+"\n)")
	if err != nil {
		return "", gone(err)
	}
	if string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", nil // The engine's installation gives nothing to read.
	}
	return text, nil
}

// ChildFrame gives the frame that an element shows.
func (p *page) ChildFrame(ctx context.Context, parent inpage.FrameID, element string) (inpage.FrameID, error) {
	raw, err := p.run(ctx, string(parent), "const e = "+element+"; return e && e.contentWindow ? e : null")
	if err != nil {
		return "", gone(err)
	}
	var ref map[string]string
	if json.Unmarshal(raw, &ref) != nil || ref[elementKey] == "" {
		return "", inpage.ErrDocumentGone
	}
	return parent + "/" + inpage.FrameID(ref[elementKey]), nil
}

// gone marks the refusals that mean that the document is no more.
func gone(err error) error {
	if refused(err, "no such frame", "stale element reference", "no such element", "detached shadow root") {
		return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
	}
	var e *selenium.Error
	if errors.As(err, &e) {
		for _, sign := range []string{"document unloaded", "Cannot find context", "navigated or closed", "Execution context", "Inspected target"} {
			if strings.Contains(e.Message, sign) {
				return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
			}
		}
	}
	return err
}

// Perform dispatches trusted input.
func (p *page) Perform(ctx context.Context, events []inpage.Event) error {
	s := &w3c.Script{}
	for _, e := range events {
		if e.Kind == inpage.InsertText {
			for _, r := range e.Text {
				s.Tick(&s.Key, w3c.Step{Type: "keyDown", Value: string(r)})
				s.Tick(&s.Key, w3c.Step{Type: "keyUp", Value: string(r)})
			}
			continue
		}
		x, y := e.X, e.Y
		if e.Kind == inpage.PointerMove {
			x, y = float64(int(x)), float64(int(y)) // Some drivers take whole numbers alone.
		}
		if err := s.Add(e, x, y); err != nil {
			return err
		}
	}
	return p.in(ctx, "", func(selenium.WebDriver) error {
		_, err := p.s.link.post("actions", map[string]any{"actions": s.Sources()})
		return err
	})
}

// place is where a page stands: its address and title, when its document began, and the HTTP status that it came with, 0
// where the browser does not tell.
type place struct {
	URL, Title string
	Began      float64
	Status     int32
}

func (p *page) place(ctx context.Context) (at place, err error) {
	raw, err := p.run(ctx, "", `return {URL: location.href, Title: document.title, Began: performance.timeOrigin,
		Status: performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0}`)
	if err == nil {
		err = json.Unmarshal(raw, &at)
	}
	return at, err
}

// explain gives an error of the driver the protocol's words.
func (p *page) explain(ctx context.Context, err error) error {
	var own *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.s.gone(), refused(err, "invalid session id"):
		return errBrowserGone().Cause(err)
	case errors.Is(err, inpage.ErrDocumentGone):
		return fault.New(fault.NotReady, "the page went to another document meanwhile").Reason("navigated").Retry("same").Cause(err)
	case refused(err, "unexpected alert open"):
		e := fault.New(fault.NotReady, "a dialog is open on the page").Reason("dialog_open").Hint("answer it with dialog.respond, then try again")
		if d := p.dialog(ctx); d != nil {
			e.With("dialog", map[string]any{"type": d.GetType(), "message": d.GetMessage()})
		}
		return e.Cause(err)
	case refused(err, "no such window"):
		p.s.remove(p)
		return fault.New(fault.PageNotFound, "the page %s was closed", p.id).Hint("tab.list tells those that are open").Cause(err)
	}
	return fault.New(fault.InternalError, "the driver refused: %v", err).Cause(err)
}

// dialog gives the dialog that is open, or nil. WebDriver tells its text, not its kind.
func (p *page) dialog(ctx context.Context) *browserv1.Dialog {
	var d *browserv1.Dialog
	_ = p.s.link.with(ctx, func(wd selenium.WebDriver) error {
		text, err := wd.AlertText()
		if err == nil {
			d = &browserv1.Dialog{Type: "unknown", Message: text}
		}
		return err
	})
	return d
}

func (at place) httpStatus() *int32 {
	if at.Status == 0 {
		return nil
	}
	return &at.Status
}
