package inpage

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// FrameID names a frame of a page in the words of the provider. It stays the same when the frame loads another document.
type FrameID string

// ErrDocumentGone is returned (wrapped or not) by an Evaluator when the frame's document was replaced, or the frame removed,
// before the expression gave its value. The driver goes on in the new document where that is right.
var ErrDocumentGone = errors.New("the document is gone")

// Evaluator is what a provider gives the engine for one page. All methods may be called concurrently; each returns when
// its context ends, with the context's cause.
type Evaluator interface {
	// MainFrame gives the frame of the page's top document.
	MainFrame(ctx context.Context) (FrameID, error)
	// Eval evaluates, in the engine's world of the frame, an expression that gives a string or a promise of one, and
	// returns that string. It waits for a document that is just being made, and returns ErrDocumentGone when the
	// document, or the frame, goes away meanwhile. The expression never throws.
	Eval(ctx context.Context, frame FrameID, expression string) (string, error)
	// ChildFrame gives the frame that is shown in the element which the expression evaluates to in the engine's world
	// of the parent frame. ErrDocumentGone when there is no such element or it shows no frame.
	ChildFrame(ctx context.Context, parent FrameID, element string) (FrameID, error)
}

// RootOpener is an Evaluator that can reach closed shadow roots. OpenRoots evaluates `__drover.candidates()` in the
// engine's world of the frame, which gives an array of elements that may hold a closed root, and calls
// `__drover.adopt(element, root)` for each, with the root or, where there is none, with null. It returns how many roots it handed over.
type RootOpener interface {
	OpenRoots(ctx context.Context, frame FrameID) (int, error)
}

// FileSetter is an Evaluator that can put files into the file input which the expression evaluates to in the engine's
// world of the frame. The paths are absolute and were checked; they replace what the input held. The browser fires the events.
type FileSetter interface {
	SetFiles(ctx context.Context, frame FrameID, element string, paths []string) error
}

// Caller is an Evaluator that evaluates no text, as the policy of an extension forbids: it brings the engine along as a file,
// made of Bundle. Call does what __drover.call(op, args, doc) does in the engine of that version in the frame, and installs it
// where another or none is. Eval is not called then. It returns what Eval would: the answer's text, or ErrDocumentGone.
type Caller interface {
	Call(ctx context.Context, frame FrameID, version, op string, args json.RawMessage, doc int) (string, error)
}

// ElementRef gives the ref in an expression that ChildFrame or SetFiles was given, for a Caller, which cannot evaluate it.
func ElementRef(expression string) (string, bool) {
	quoted, ok := strings.CutPrefix(expression, elementPrefix)
	if !ok || !strings.HasSuffix(quoted, ")") {
		return "", false
	}
	ref, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
	return ref, err == nil
}
