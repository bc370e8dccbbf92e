package inpage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
)

// tab is one page: the Evaluator and Input of the driver under test.
type tab struct {
	c       *chromium
	target  string
	session string

	mu       sync.Mutex
	sessions map[inpage.FrameID]string // frames that have a process of their own
	worlds   map[inpage.FrameID]int
	drag     json.RawMessage
	entered  bool
	loaded   chan struct{}
	evals    int
	dialogs  int
	dialog   func()
}

var (
	_ inpage.Evaluator  = (*tab)(nil)
	_ inpage.RootOpener = (*tab)(nil)
	_ inpage.FileSetter = (*tab)(nil)
	_ inpage.Input      = (*tab)(nil)
)

func newTab(t testing.TB) *tab {
	t.Helper()
	ctx := t.Context()
	tb := &tab{c: browser, sessions: map[inpage.FrameID]string{}, worlds: map[inpage.FrameID]int{}, loaded: make(chan struct{}, 10)}
	var made struct{ TargetID string }
	must(t, browser.send(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank", "newWindow": true, "width": 1000, "height": 700}, &made))
	tb.target = made.TargetID
	var attached struct{ SessionID string }
	must(t, browser.send(ctx, "", "Target.attachToTarget", map[string]any{"targetId": tb.target, "flatten": true}, &attached))
	tb.session = attached.SessionID
	tb.listen(tb.session)
	for _, m := range []string{"Page.enable", "Runtime.enable"} {
		must(t, browser.send(ctx, tb.session, m, nil, nil))
	}
	must(t, browser.send(ctx, tb.session, "Target.setAutoAttach", map[string]any{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true}, nil))
	must(t, browser.send(ctx, tb.session, "Input.setInterceptDrags", map[string]any{"enabled": true}, nil))
	must(t, browser.send(ctx, tb.session, "Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = browser.send(ctx, "", "Target.closeTarget", map[string]any{"targetId": tb.target}, nil)
	})
	return tb
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *tab) listen(session string) {
	b.c.mu.Lock()
	defer b.c.mu.Unlock()
	b.c.hear[session] = func(m message) { b.event(session, m) }
}

func (b *tab) event(session string, m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m.Method {
	case "Page.loadEventFired":
		if session == b.session {
			select {
			case b.loaded <- struct{}{}:
			default:
			}
		}
	case "Page.javascriptDialogOpening":
		b.dialogs++
		if b.dialog != nil {
			b.dialog()
		}
	case "Target.attachedToTarget":
		var e struct {
			SessionID  string
			TargetInfo struct{ TargetID, Type string }
		}
		if json.Unmarshal(m.Params, &e) != nil || e.TargetInfo.Type != "iframe" {
			return
		}
		b.sessions[inpage.FrameID(e.TargetInfo.TargetID)] = e.SessionID
		delete(b.worlds, inpage.FrameID(e.TargetInfo.TargetID))
		go func() { // The reader must not wait for its own answers.
			b.listen(e.SessionID)
			for _, method := range []string{"Runtime.enable", "Page.enable"} {
				_, _ = b.c.start(e.SessionID, method, nil)
			}
			_, _ = b.c.start(e.SessionID, "Target.setAutoAttach", map[string]any{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
		}()
	case "Target.detachedFromTarget":
		var e struct{ SessionID string }
		if json.Unmarshal(m.Params, &e) != nil {
			return
		}
		for f, s := range b.sessions {
			if s == e.SessionID {
				delete(b.sessions, f)
				delete(b.worlds, f)
			}
		}
	case "Runtime.executionContextDestroyed":
		var e struct{ ExecutionContextID int }
		if json.Unmarshal(m.Params, &e) != nil {
			return
		}
		for f, id := range b.worlds {
			if id == e.ExecutionContextID && b.sessionOf(f) == session {
				delete(b.worlds, f)
			}
		}
	case "Runtime.executionContextsCleared":
		for f := range b.worlds {
			if b.sessionOf(f) == session {
				delete(b.worlds, f)
			}
		}
	case "Input.dragIntercepted":
		var e struct{ Data json.RawMessage }
		if json.Unmarshal(m.Params, &e) == nil {
			b.drag = e.Data
		}
	}
}

// sessionOf is the session of a frame's process. The caller holds the lock.
func (b *tab) sessionOf(f inpage.FrameID) string {
	if s, ok := b.sessions[f]; ok {
		return s
	}
	return b.session
}

func (b *tab) MainFrame(context.Context) (inpage.FrameID, error) {
	return inpage.FrameID(b.target), nil
}

func (b *tab) world(ctx context.Context, frame inpage.FrameID) (string, int, error) {
	b.mu.Lock()
	session, id := b.sessionOf(frame), b.worlds[frame]
	b.mu.Unlock()
	if id != 0 {
		return session, id, nil
	}
	var made struct{ ExecutionContextID int }
	err := b.c.send(ctx, session, "Page.createIsolatedWorld", map[string]any{"frameId": frame, "worldName": "drover"}, &made)
	if err != nil && b.movedTo(ctx, frame, session) {
		return b.world(ctx, frame)
	}
	if err != nil {
		return session, 0, gone(err)
	}
	b.mu.Lock()
	b.worlds[frame] = made.ExecutionContextID
	b.mu.Unlock()
	return session, made.ExecutionContextID, nil
}

// movedTo says whether the frame's process has become another one meanwhile.
func (b *tab) movedTo(ctx context.Context, frame inpage.FrameID, session string) bool {
	end := time.Now().Add(500 * time.Millisecond)
	for time.Now().Before(end) && ctx.Err() == nil {
		b.mu.Lock()
		now := b.sessionOf(frame)
		b.mu.Unlock()
		if now != session {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

func gone(err error) error {
	for _, sign := range []string{"context", "Inspected target navigated", "No frame", "Promise was collected", "Session with given id not found", "Frame with the given"} {
		if err != nil && strings.Contains(err.Error(), sign) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
		}
	}
	return err
}

type evaluated struct {
	Result struct {
		Value    json.RawMessage
		ObjectID string
	}
	ExceptionDetails json.RawMessage
}

func (b *tab) evaluate(ctx context.Context, frame inpage.FrameID, expr string, value bool) (string, evaluated, error) {
	session, id, err := b.world(ctx, frame)
	var out evaluated
	if err != nil {
		return session, out, err
	}
	b.mu.Lock()
	b.evals++
	b.mu.Unlock()
	err = b.c.send(ctx, session, "Runtime.evaluate", map[string]any{
		"expression": expr, "contextId": id, "awaitPromise": true, "returnByValue": value,
	}, &out)
	if err != nil {
		b.mu.Lock()
		if b.worlds[frame] == id {
			delete(b.worlds, frame)
		}
		b.mu.Unlock()
	}
	return session, out, gone(err)
}

func (b *tab) Eval(ctx context.Context, frame inpage.FrameID, expr string) (string, error) {
	_, out, err := b.evaluate(ctx, frame, expr, true)
	if err != nil {
		return "", err
	}
	if out.ExceptionDetails != nil {
		return "", fmt.Errorf("the engine threw: %s", out.ExceptionDetails)
	}
	var text string
	return text, json.Unmarshal(out.Result.Value, &text)
}

func (b *tab) describe(ctx context.Context, session, object string, out any) error {
	return b.c.send(ctx, session, "DOM.describeNode", map[string]any{"objectId": object, "depth": 1, "pierce": true}, out)
}

func (b *tab) ChildFrame(ctx context.Context, parent inpage.FrameID, element string) (inpage.FrameID, error) {
	session, out, err := b.evaluate(ctx, parent, element, false)
	if err != nil {
		return "", err
	}
	if out.Result.ObjectID == "" {
		return "", inpage.ErrDocumentGone
	}
	var d struct{ Node struct{ FrameID string } }
	if err := b.describe(ctx, session, out.Result.ObjectID, &d); err != nil {
		return "", gone(err)
	}
	if d.Node.FrameID == "" {
		return "", inpage.ErrDocumentGone
	}
	return inpage.FrameID(d.Node.FrameID), nil
}

func (b *tab) OpenRoots(ctx context.Context, frame inpage.FrameID) (int, error) {
	session, list, err := b.evaluate(ctx, frame, "__drover.candidates()", false)
	if err != nil {
		return 0, err
	}
	_, id, err := b.world(ctx, frame)
	if err != nil {
		return 0, err
	}
	var props struct {
		Result []struct {
			Name  string
			Value struct{ ObjectID string }
		}
	}
	if err := b.c.send(ctx, session, "Runtime.getProperties", map[string]any{"objectId": list.Result.ObjectID, "ownProperties": true}, &props); err != nil {
		return 0, gone(err)
	}
	n := 0
	for _, p := range props.Result {
		if p.Value.ObjectID == "" || p.Name == "__proto__" {
			continue
		}
		var d struct {
			Node struct {
				ShadowRoots []struct {
					BackendNodeID  int
					ShadowRootType string
				}
			}
		}
		if err := b.describe(ctx, session, p.Value.ObjectID, &d); err != nil {
			return n, gone(err)
		}
		args := []map[string]any{{"objectId": p.Value.ObjectID}, {"value": nil}}
		for _, root := range d.Node.ShadowRoots {
			if root.ShadowRootType != "closed" {
				continue
			}
			var r struct{ Object struct{ ObjectID string } }
			if err := b.c.send(ctx, session, "DOM.resolveNode", map[string]any{"backendNodeId": root.BackendNodeID, "executionContextId": id}, &r); err != nil {
				return n, gone(err)
			}
			args[1] = map[string]any{"objectId": r.Object.ObjectID}
			n++
		}
		if err := b.c.send(ctx, session, "Runtime.callFunctionOn", map[string]any{
			"functionDeclaration": "(host,root)=>__drover.adopt(host,root)", "executionContextId": id, "arguments": args,
		}, nil); err != nil {
			return n, gone(err)
		}
	}
	return n, nil
}

func (b *tab) SetFiles(ctx context.Context, frame inpage.FrameID, element string, paths []string) error {
	session, out, err := b.evaluate(ctx, frame, element, false)
	if err != nil {
		return err
	}
	return b.c.send(ctx, session, "DOM.setFileInputFiles", map[string]any{"objectId": out.Result.ObjectID, "files": paths}, nil)
}

var buttonNames = map[inpage.Button]string{inpage.ButtonLeft: "left", inpage.ButtonMiddle: "middle", inpage.ButtonRight: "right"}

// Perform sends the batch as a pipeline: each event without waiting for the one before.
func (b *tab) Perform(ctx context.Context, events []inpage.Event) error {
	var answers []chan message
	held := inpage.ButtonLeft
	flush := func() error {
		for _, a := range answers {
			if err := b.c.await(ctx, "Input", a, nil); err != nil {
				return err
			}
		}
		answers = nil
		return nil
	}
	for _, e := range events {
		method, p := "Input.dispatchMouseEvent", map[string]any{"modifiers": e.Modifiers}
		mouse := func(kind string) {
			p["type"], p["x"], p["y"], p["buttons"], p["clickCount"] = kind, e.X, e.Y, e.Buttons, e.ClickCount
		}
		b.mu.Lock()
		drag := b.drag
		b.mu.Unlock()
		switch e.Kind {
		case inpage.Pause:
			if err := flush(); err != nil {
				return err
			}
			time.Sleep(e.Duration)
			continue
		case inpage.PointerMove:
			mouse("mouseMoved")
			p["button"] = "none"
			if e.Buttons != 0 {
				p["button"] = buttonNames[held]
			}
			if drag != nil {
				method, p = "Input.dispatchDragEvent", map[string]any{"type": "dragOver", "x": e.X, "y": e.Y, "data": drag}
				if !b.entered {
					p["type"], b.entered = "dragEnter", true
				}
			}
		case inpage.PointerDown:
			mouse("mousePressed")
			held = e.Button
			p["button"] = buttonNames[e.Button]
		case inpage.PointerUp:
			mouse("mouseReleased")
			p["button"] = buttonNames[e.Button]
			if drag != nil {
				b.mu.Lock()
				b.drag, b.entered = nil, false
				b.mu.Unlock()
				if err := b.c.send(ctx, b.session, "Input.dispatchDragEvent", map[string]any{"type": "drop", "x": e.X, "y": e.Y, "data": drag}, nil); err != nil {
					return err
				}
			}
		case inpage.KeyDown, inpage.KeyUp:
			method = "Input.dispatchKeyEvent"
			p["type"] = "keyUp"
			if e.Kind == inpage.KeyDown {
				p["type"] = "rawKeyDown"
				if e.Text != "" {
					p["type"], p["text"] = "keyDown", e.Text
				}
			}
			p["key"], p["code"], p["windowsVirtualKeyCode"], p["location"] = e.Key, e.Code, e.KeyCode, e.Location
		case inpage.InsertText:
			method, p = "Input.insertText", map[string]any{"text": e.Text}
		case inpage.Wheel:
			mouse("mouseWheel")
			p["deltaX"], p["deltaY"] = e.DX, e.DY
		}
		a, err := b.c.start(b.session, method, p)
		if err != nil {
			return err
		}
		answers = append(answers, a)
	}
	return flush()
}

// open loads an address and waits for its load event.
func (b *tab) open(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for len(b.loaded) > 0 {
		<-b.loaded
	}
	must(t, b.c.send(ctx, b.session, "Page.navigate", map[string]any{"url": url}, nil))
	select {
	case <-b.loaded:
	case <-ctx.Done():
		t.Fatalf("%s did not load", url)
	}
}

// js evaluates in the page's own world and gives the value as JSON.
func (b *tab) js(t testing.TB, expr string) string {
	t.Helper()
	var out evaluated
	must(t, b.c.send(t.Context(), b.session, "Runtime.evaluate", map[string]any{"expression": expr, "returnByValue": true, "awaitPromise": true}, &out))
	if out.ExceptionDetails != nil {
		t.Fatalf("%s: %s", expr, out.ExceptionDetails)
	}
	var v any
	if len(out.Result.Value) == 0 {
		return "undefined"
	}
	must(t, json.Unmarshal(out.Result.Value, &v))
	var text strings.Builder // The same JSON without escapes, to be compared with what a test writes.
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	must(t, enc.Encode(v))
	return strings.TrimSpace(text.String())
}

// pages are the documents that tests wrote, by path.
var pages sync.Map

// page serves what a test wrote, and the fixtures.
func page(w http.ResponseWriter, r *http.Request) {
	if html, ok := pages.Load(r.URL.Path); ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(html.(string))) //nolint:forcetypeassert // Only strings are stored.
		return
	}
	http.FileServer(http.Dir("testdata/act")).ServeHTTP(w, r)
}

// onDialog runs fn when a dialog opens.
func (b *tab) onDialog(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dialog = fn
}
