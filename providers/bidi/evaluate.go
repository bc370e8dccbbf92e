package bidi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	"github.com/droverhq/drover/proto/fault"
)

var (
	_ inpage.Evaluator  = (*page)(nil)
	_ inpage.RootOpener = (*page)(nil)
	_ inpage.FileSetter = (*page)(nil)
)

// documentPatience is how long a document gets to announce itself before it is taken to be there.
const documentPatience = 500 * time.Millisecond

func depth(n int) *int { return &n }

// flat has the browser write no more of a value than its kind.
var flat = &serialization{MaxDomDepth: depth(0), MaxObjectDepth: depth(0)}

// MainFrame gives the frame of the top document.
func (p *page) MainFrame(context.Context) (inpage.FrameID, error) {
	return inpage.FrameID(p.context), nil
}

// Eval evaluates an expression that gives a string, in the engine's sandbox of a frame.
func (p *page) Eval(ctx context.Context, id inpage.FrameID, expression string) (string, error) {
	res, err := p.run(ctx, string(id), evaluateParams{
		Expression: expression, Target: scriptTarget{string(id), sandbox}, AwaitPromise: true, Ownership: "none", Serialization: flat,
	})
	if err != nil {
		return "", err
	}
	text, ok := res.Result.text()
	if !ok {
		return "", fmt.Errorf("the engine gave a %s, not a string", res.Result.Type)
	}
	return text, nil
}

// run evaluates in a frame's document. It ends with ErrDocumentGone when that document is replaced meanwhile, which a
// browser does not always tell the one who waits.
func (p *page) run(ctx context.Context, id string, params evaluateParams) (evaluateResult, error) {
	return within(ctx, p, id, func(ctx context.Context) (evaluateResult, error) {
		return do(ctx, p.b.conn, scriptEvaluate, params)
	})
}

// invoke is run for a function.
func (p *page) invoke(ctx context.Context, id string, params callParams) (evaluateResult, error) {
	return within(ctx, p, id, func(ctx context.Context) (evaluateResult, error) {
		return do(ctx, p.b.conn, scriptCall, params)
	})
}

// within runs fn for as long as the frame's document lives. What the engine's script throws is an error.
func within(ctx context.Context, p *page, id string, fn func(context.Context) (evaluateResult, error)) (evaluateResult, error) {
	res, err := inDocument(ctx, p, id, fn)
	if err == nil && res.Exception != nil {
		err = fmt.Errorf("the engine threw: %s", res.Exception.Text)
	}
	return res, err
}

// inDocument runs fn for as long as the frame's document lives, and waits for one that is just being made.
func inDocument[R any](ctx context.Context, p *page, id string, fn func(context.Context) (R, error)) (R, error) {
	doc, err := p.document(ctx, id)
	if err != nil {
		var none R
		return none, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() { // ends with this call, which waits for it
		defer close(watched)
		select {
		case <-doc.gone:
			cancel(inpage.ErrDocumentGone)
		case <-stop:
		}
	}()
	res, err := fn(inner)
	close(stop)
	<-watched
	switch {
	case err == nil:
	case ctx.Err() == nil && errors.Is(context.Cause(inner), inpage.ErrDocumentGone):
		err = inpage.ErrDocumentGone
	case refused(err, "unsupported operation"):
		err = p.privileged(ctx, id, doc)
	default:
		err = gone(err)
	}
	return res, err
}

// crashPatience is how long the news of a crash may take after the browser put a page of its own in place of the crashed one.
const crashPatience = 2 * time.Second

// privileged is the error of a document in which the browser runs no scripts: one of its own pages, which may also be
// what it shows after a crash.
func (p *page) privileged(ctx context.Context, id string, doc *document) error {
	wait, cancel := context.WithTimeout(ctx, crashPatience)
	defer cancel()
	err := p.until(wait, func() bool {
		f := p.b.frames[id]
		return f == nil || f.doc != doc || p.crashed
	})
	switch {
	case err == nil:
		return inpage.ErrDocumentGone
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.UnsupportedTarget, "the browser lets nobody into this page, which is one of its own").Reason("privileged_page").
		Hint("open another address")
}

// document gives the document of a frame and waits for one that is just being made.
func (p *page) document(ctx context.Context, id string) (*document, error) {
	timer := time.NewTimer(documentPatience)
	defer timer.Stop()
	for {
		p.b.mu.Lock()
		f, changed := p.b.frames[id], p.changed
		var doc *document
		if f != nil && f.page == p && !f.between {
			doc = f.doc
		}
		replaced := doc != nil && replacedLocked(ctx, id, doc)
		p.b.mu.Unlock()
		switch {
		case f == nil || f.page != p || replaced:
			return nil, inpage.ErrDocumentGone
		case doc != nil:
			return doc, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			p.b.mu.Lock()
			f.between = false
			if f.doc == nil {
				f.renew(true)
			}
			p.b.mu.Unlock()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ChildFrame gives the frame that an element shows.
func (p *page) ChildFrame(ctx context.Context, parent inpage.FrameID, element string) (inpage.FrameID, error) {
	p.b.mu.Lock()
	key := ""
	if f := p.b.frames[string(parent)]; f != nil {
		key = fmt.Sprintf("%s %d %s", f.id, f.loads, element)
	}
	known, ok := p.elements[key]
	alive := ok && p.b.frames[known] != nil
	p.b.mu.Unlock()
	if alive {
		return inpage.FrameID(known), nil
	}
	res, err := p.run(ctx, string(parent), evaluateParams{
		Expression: "(" + element + ")?.contentWindow ?? null", Target: scriptTarget{string(parent), sandbox}, Ownership: "none", Serialization: flat,
	})
	if err != nil {
		return "", err
	}
	id, ok := res.Result.window()
	if !ok {
		return "", inpage.ErrDocumentGone
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if len(p.elements) > 1000 {
		clear(p.elements)
	}
	p.elements[key] = id
	if p.b.frames[id] == nil { // The news of it is on its way.
		p.b.frames[id] = &frame{id: id, parent: string(parent), page: p}
	}
	return inpage.FrameID(id), nil
}

// node gives the browser's reference of the element that an expression gives.
func (p *page) node(ctx context.Context, frame, expression string) (reference, error) {
	res, err := p.run(ctx, frame, evaluateParams{
		Expression: expression, Target: scriptTarget{frame, sandbox}, Ownership: "none", Serialization: flat,
	})
	if err != nil {
		return reference{}, err
	}
	if res.Result.SharedID == "" {
		return reference{}, inpage.ErrDocumentGone
	}
	return reference{SharedID: res.Result.SharedID}, nil
}

// adoptRoots hands roots to the engine: an element and its root, or null, in turn.
const adoptRoots = "(...a) => { for (let i = 0; i < a.length; i += 2) __drover.adopt(a[i], a[i + 1]) }"

// OpenRoots hands closed shadow roots to the engine: their nodes are in what the browser writes of their hosts.
func (p *page) OpenRoots(ctx context.Context, id inpage.FrameID) (int, error) {
	target := scriptTarget{string(id), sandbox}
	res, err := p.run(ctx, string(id), evaluateParams{
		Expression: "__drover.candidates()", Target: target, Ownership: "none",
		Serialization: &serialization{MaxDomDepth: depth(0), ShadowTree: "all"},
	})
	if err != nil {
		return 0, err
	}
	var args []any
	adopted := 0
	for _, host := range res.Result.list() {
		if host.SharedID == "" {
			continue
		}
		args = append(args, reference{SharedID: host.SharedID})
		if root, closed := host.closedRoot(); closed {
			args = append(args, root)
			adopted++
		} else {
			args = append(args, localValue(nil))
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	_, err = p.invoke(ctx, string(id), callParams{Function: adoptRoots, Arguments: args, Target: target, Ownership: "none"})
	return adopted, err
}

// SetFiles puts files into a file input.
func (p *page) SetFiles(ctx context.Context, id inpage.FrameID, element string, paths []string) error {
	node, err := p.node(ctx, string(id), element)
	if err != nil {
		return err
	}
	_, err = do(ctx, p.b.conn, inputSetFiles, setFilesParams{Context: string(id), Element: node, Files: paths})
	return gone(err)
}

// gone marks the browser's refusals that mean that the document is no more.
func gone(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	if r.Code == "no such frame" || r.Code == "no such node" {
		return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
	}
	for _, sign := range []string{
		"AbortError", "destroyed", "Inspected target navigated or closed", "Cannot find context", "DiscardedBrowsingContext", "discarded",
		"Execution context was destroyed", "Promise was collected", "actor", "Actor",
	} {
		if r.Code == "unknown error" && strings.Contains(r.Message, sign) {
			return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
		}
	}
	return err
}
