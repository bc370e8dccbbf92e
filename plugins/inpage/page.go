package inpage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/proto/fault"
)

// Page drives the engine in the documents of one page. Reading (Snapshot, Wait, ElementRect) may run beside anything;
// acting (Click, Type, …) is one call at a time, as the page's lane has it.
type Page struct {
	session   *Session
	eval      Evaluator
	input     Input
	synthetic bool

	mu      sync.Mutex
	parents map[FrameID]parent
	history []*taken // the last snapshots, oldest first
}

// parent is the frame and the frame element that show a child frame.
type parent struct {
	frame FrameID
	ref   string
}

// answer is what the engine's call gives. Value holds, from the start, a pointer to where the value shall go.
type answer struct {
	Doc   int      `json:"doc"`
	Value any      `json:"value"`
	Error *failure `json:"error"`
}

// failure is an error of the engine.
type failure struct {
	Code    string         `json:"code"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// fault gives the engine's error as the protocol's.
func (f *failure) fault() *fault.Error {
	code, ok := fault.ParseCode(f.Code)
	if !ok {
		code = fault.InternalError
	}
	e := fault.New(code, "%s", f.Message)
	for k, v := range f.Details {
		e.With(k, v)
	}
	if f.Reason != "" {
		e.Reason(f.Reason)
	}
	return e
}

// call runs an operation of the engine in a frame and reads its value into out. It installs the engine where it is
// missing. Errors of the engine come as *fault.Error; ErrDocumentGone and the context's cause come through.
func (p *Page) call(ctx context.Context, frame FrameID, op string, args, out any) error {
	data, err := json.Marshal(args)
	if err != nil {
		return fault.New(fault.InternalError, "engine arguments: %v", err).Cause(err)
	}
	// U+2028 and U+2029 are escaped by encoding/json, so JSON is an expression as it stands.
	doc := p.session.propose()
	text, err := p.ask(ctx, frame, op, data, doc)
	if err != nil {
		p.session.release(doc)
		return err
	}
	a := answer{Value: out}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		p.session.release(doc)
		return fault.New(fault.InternalError, "the engine in the page gave no answer to %s", op).Cause(err)
	}
	if a.Doc != doc {
		p.session.release(doc)
	}
	p.session.locate(a.Doc, place{p, frame})
	if a.Error != nil {
		return a.Error.fault()
	}
	return nil
}

// ask gives the engine's answer as it wrote it.
func (p *Page) ask(ctx context.Context, frame FrameID, op string, args json.RawMessage, doc int) (string, error) {
	if caller, ok := p.eval.(Caller); ok {
		text, err := caller.Call(ctx, frame, p.session.version, op, args, doc)
		return text, causeOf(ctx, err)
	}
	expr := fmt.Sprintf("(globalThis.__drover?.version===%q?__drover.call(%q,%s,%d):'')", p.session.version, op, args, doc)
	text, err := p.evaluate(ctx, frame, expr)
	if err == nil && text == "" {
		if _, err = p.evaluate(ctx, frame, p.session.script); err == nil {
			text, err = p.evaluate(ctx, frame, expr)
		}
	}
	return text, err
}

// causeOf gives an error on an ended context as the context's cause.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrDocumentGone) {
		return context.Cause(ctx)
	}
	return err
}

// evaluate is Eval, whose error on an ended context is the context's cause.
func (p *Page) evaluate(ctx context.Context, frame FrameID, expr string) (string, error) {
	text, err := p.eval.Eval(ctx, frame, expr)
	return text, causeOf(ctx, err)
}

// defaultPatience is how long a call without a deadline waits.
const defaultPatience = 10 * time.Second

// patience is how long the page may wait for something, so that the answer still comes before the context's deadline.
func patience(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return defaultPatience
	}
	left := time.Until(end)
	spare := min(max(left/10, 20*time.Millisecond), 80*time.Millisecond)
	return max(left-spare, 0)
}

// allowance is patience for a search: what was found out has to come back through the browser before the deadline, also on a
// busy machine, or the answer says only that time ran out.
func allowance(ctx context.Context) time.Duration {
	left := patience(ctx)
	return max(left-min(left/10, 250*time.Millisecond), 0)
}

// millis gives a duration as the engine takes it.
func millis(d time.Duration) int { return int(d.Milliseconds()) }

// element is an expression for the element of a ref, in the engine's world of its frame.
func element(ref string) string { return fmt.Sprintf("%s%q)", elementPrefix, ref) }

const elementPrefix = "__drover.element("

// bare drops the @ that people put before a ref.
func bare(ref string) string { return strings.TrimPrefix(strings.TrimSpace(ref), "@") }

// child gives the frame that the element of a ref shows, and remembers its place.
func (p *Page) child(ctx context.Context, frame FrameID, ref string) (FrameID, error) {
	id, err := p.eval.ChildFrame(ctx, frame, element(ref))
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ErrDocumentGone) {
			return "", context.Cause(ctx)
		}
		return "", err
	}
	p.mu.Lock()
	p.parents[id] = parent{frame, ref}
	p.mu.Unlock()
	return id, nil
}

// parentOf gives the frame and frame element around a frame; false for the main frame.
func (p *Page) parentOf(frame FrameID) (parent, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up, ok := p.parents[frame]
	return up, ok
}
