package cdp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	protocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/droverhq/drover/plugins/inpage"
)

var (
	_ inpage.Evaluator  = (*page)(nil)
	_ inpage.RootOpener = (*page)(nil)
	_ inpage.FileSetter = (*page)(nil)
)

// worldPatience is how long a document gets to make the engine's world by itself before it is asked to.
const worldPatience = 150 * time.Millisecond

// MainFrame gives the frame of the top document.
func (p *page) MainFrame(context.Context) (inpage.FrameID, error) { return inpage.FrameID(p.main), nil }

// Eval evaluates an expression that gives a string, in the engine's world of a frame.
func (p *page) Eval(ctx context.Context, id inpage.FrameID, expression string) (string, error) {
	w, err := p.engineWorld(ctx, protocol.FrameID(id))
	if err != nil {
		return "", err
	}
	res, err := protocol.Call(ctx, w.ch, runtime.Evaluate, runtime.EvaluateParams{
		Expression: expression, UniqueContextID: w.unique, ReturnByValue: yes(), AwaitPromise: yes(),
	})
	if err != nil {
		return "", gone(err)
	}
	if res.ExceptionDetails != nil {
		return "", fmt.Errorf("the engine threw: %s", thrown(res.ExceptionDetails))
	}
	var text string
	if err := jsonv2.Unmarshal(res.Result.Value, &text); err != nil {
		return "", fmt.Errorf("the engine gave no string: %w", err)
	}
	return text, nil
}

// engineWorld gives the engine's world of a frame's document and waits for one that is just being made.
func (p *page) engineWorld(ctx context.Context, id protocol.FrameID) (*world, error) {
	timer := time.NewTimer(worldPatience)
	defer timer.Stop()
	for {
		p.b.mu.Lock()
		f, changed := p.frames[id], p.changed
		var w *world
		if f != nil {
			w = f.engine
		}
		p.b.mu.Unlock()
		switch {
		case f == nil:
			return nil, inpage.ErrDocumentGone
		case w != nil:
			return w, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			// Documents that were there before this provider came, and some first empty ones, have no world yet.
			if err := p.makeWorld(ctx, f); err != nil {
				return nil, err
			}
			timer.Reset(worldPatience)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *page) makeWorld(ctx context.Context, f *frame) error {
	p.b.mu.Lock()
	ch := f.ch
	p.b.mu.Unlock()
	if ch == nil {
		ch = p.ch
	}
	err := ch.Call(ctx, pagedomain.CreateIsolatedWorld.Method, pagedomain.CreateIsolatedWorldParams{FrameID: f.id, WorldName: worldName}, nil)
	var refused *cdproto.Error
	if errors.As(err, &refused) || errors.Is(err, errDetached) {
		return nil // The document changed meanwhile; the wait goes on.
	}
	return err
}

// ChildFrame gives the frame that an element shows.
func (p *page) ChildFrame(ctx context.Context, parent inpage.FrameID, element string) (inpage.FrameID, error) {
	w, err := p.engineWorld(ctx, protocol.FrameID(parent))
	if err != nil {
		return "", err
	}
	key := w.unique + " " + element
	p.b.mu.Lock()
	known, ok := p.elements[key]
	alive := ok && p.frames[known] != nil
	p.b.mu.Unlock()
	if alive {
		return inpage.FrameID(known), nil
	}
	object, err := p.object(ctx, w, element)
	if err != nil {
		return "", err
	}
	defer p.release(w, object)
	res, err := protocol.Call(ctx, w.ch, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: object})
	if err != nil {
		return "", gone(err)
	}
	if res.Node.FrameID == "" {
		return "", inpage.ErrDocumentGone
	}
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	if len(p.elements) > 1000 {
		clear(p.elements)
	}
	p.elements[key] = res.Node.FrameID
	return inpage.FrameID(res.Node.FrameID), nil
}

// object evaluates an expression to a node and gives the browser's handle of it.
func (p *page) object(ctx context.Context, w *world, expression string) (runtime.RemoteObjectID, error) {
	res, err := protocol.Call(ctx, w.ch, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, UniqueContextID: w.unique})
	switch {
	case err != nil:
		return "", gone(err)
	case res.ExceptionDetails != nil:
		return "", fmt.Errorf("the engine threw: %s", thrown(res.ExceptionDetails))
	case res.Result.ObjectID == "":
		return "", inpage.ErrDocumentGone
	}
	return res.Result.ObjectID, nil
}

func (p *page) release(w *world, object runtime.RemoteObjectID) {
	w.ch.post(runtime.ReleaseObject.Method, runtime.ReleaseObjectParams{ObjectID: object})
}

// OpenRoots hands closed shadow roots to the engine.
func (p *page) OpenRoots(ctx context.Context, id inpage.FrameID) (int, error) {
	w, err := p.engineWorld(ctx, protocol.FrameID(id))
	if err != nil {
		return 0, err
	}
	list, err := p.object(ctx, w, "__drover.candidates()")
	if err != nil {
		return 0, err
	}
	defer p.release(w, list)
	props, err := protocol.Call(ctx, w.ch, runtime.GetProperties, runtime.GetPropertiesParams{ObjectID: list, OwnProperties: yes()})
	if err != nil {
		return 0, gone(err)
	}
	var hosts []runtime.RemoteObjectID
	var described []*call
	for _, d := range props.Result {
		if d.Value == nil || d.Value.ObjectID == "" || strings.Trim(d.Name, "0123456789") != "" {
			continue
		}
		hosts = append(hosts, d.Value.ObjectID)
		described = append(described, w.ch.start(dom.DescribeNode.Method, dom.DescribeNodeParams{ObjectID: d.Value.ObjectID}))
	}
	adopted, args := 0, make([]*runtime.CallArgument, 0, 2*len(hosts))
	resolved := make([]*call, len(hosts))
	for i, k := range described {
		var res dom.DescribeNodeResult
		if err := k.wait(ctx, &res); err != nil || res.Node == nil {
			continue
		}
		for _, root := range res.Node.ShadowRoots {
			if root.ShadowRootType == protocol.ShadowRootTypeClosed {
				resolved[i] = w.ch.start(dom.ResolveNode.Method, dom.ResolveNodeParams{BackendNodeID: root.BackendNodeID, ExecutionContextID: w.id})
			}
		}
	}
	for i, host := range hosts {
		root := &runtime.CallArgument{Value: jsonv2.Value("null")}
		if resolved[i] != nil {
			var res dom.ResolveNodeResult
			if err := resolved[i].wait(ctx, &res); err == nil && res.Object != nil && res.Object.ObjectID != "" {
				root = &runtime.CallArgument{ObjectID: res.Object.ObjectID}
				adopted++
			}
		}
		args = append(args, &runtime.CallArgument{ObjectID: host}, root)
	}
	if len(args) == 0 {
		return 0, nil
	}
	res, err := protocol.Call(ctx, w.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: "function(...a) { for (let i = 0; i < a.length; i += 2) __drover.adopt(a[i], a[i + 1]) }",
		ObjectID:            list, Arguments: args,
	})
	for _, a := range args {
		if a.ObjectID != "" {
			p.release(w, a.ObjectID)
		}
	}
	switch {
	case err != nil:
		return 0, gone(err)
	case res.ExceptionDetails != nil:
		return 0, fmt.Errorf("the engine threw: %s", thrown(res.ExceptionDetails))
	}
	return adopted, nil
}

// SetFiles puts files into a file input.
func (p *page) SetFiles(ctx context.Context, id inpage.FrameID, element string, paths []string) error {
	w, err := p.engineWorld(ctx, protocol.FrameID(id))
	if err != nil {
		return err
	}
	object, err := p.object(ctx, w, element)
	if err != nil {
		return err
	}
	defer p.release(w, object)
	return gone(w.ch.Call(ctx, dom.SetFileInputFiles.Method, dom.SetFileInputFilesParams{Files: paths, ObjectID: object}, nil))
}

// gone marks the browser's refusals that mean that the document, or its process, is no more.
func gone(err error) error {
	var refused *cdproto.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDetached):
		return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
	case !errors.As(err, &refused):
		return err
	}
	for _, sign := range []string{
		"context was destroyed", "find context", "uniqueContextId not found", "navigated or closed", "Promise was collected",
		"context with specified id", "No node with given id", "Could not find object", "Session with given id not found",
	} {
		if strings.Contains(refused.Message, sign) {
			return fmt.Errorf("%w: %w", inpage.ErrDocumentGone, err)
		}
	}
	return err
}

// thrown is what a script threw, as text.
func thrown(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	if d.Exception != nil && len(d.Exception.Value) > 0 {
		return string(d.Exception.Value)
	}
	return d.Text
}
