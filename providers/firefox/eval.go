package firefox

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// eval is page.eval. An add-on can evaluate text in the page's own world alone, and there only as far as the page's policy lets it.
func (p *Provider) eval(ctx context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	if r.GetWorld() == browserv1.World_WORLD_ISOLATED {
		return nil, fault.New(fault.UnsupportedTarget, "an add-on evaluates no text in a world of its own").Reason("world_unavailable").
			Field("world").Hint("use world page, or a provider such as bidi")
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resp, err := pg.evaluate(ctx, r)
	if err != nil {
		return nil, inpage.Ran(pg.explain(ctx, err))
	}
	resp.PageId = pg.id
	return resp, nil
}

// evaluated is what the add-on tells of an expression.
type evaluated struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
	Odd   *string         `json:"odd"`
	Threw *string         `json:"threw"`
	Stack string          `json:"stack"`
	CSP   bool            `json:"csp"`
}

const maxText = 64 << 10 // bytes of a text that says what a value is

func (p *page) evaluate(ctx context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
	frame := inpage.FrameID(topFrame)
	if r.FrameRef != nil {
		id, err := p.driver.ContentFrame(ctx, r.GetFrameRef())
		if err != nil {
			return nil, err
		}
		frame = id
	}
	args := make([]any, len(r.GetArgs()))
	for i, a := range r.GetArgs() {
		args[i] = a.AsInterface()
	}
	text, err := inDocument[string](ctx, p, frame, "doc.eval", map[string]any{
		"expression": expression(r.GetExpression()), "args": args, "wait": r.AwaitPromise == nil || r.GetAwaitPromise(),
	})
	if err != nil {
		return nil, err
	}
	var got evaluated
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return nil, fault.New(fault.InternalError, "the page gave no value").Cause(err)
	}
	return got.response()
}

func (e evaluated) response() (*browserv1.EvalResponse, error) {
	switch {
	case e.CSP:
		return nil, fault.New(fault.PermissionDenied, "the page's own policy (CSP) lets no text be evaluated in it").Reason("csp_refused").
			Hint("use the other methods, which need no script in the page, or a provider such as bidi")
	case e.Threw != nil:
		message := strings.ToValidUTF8(*e.Threw, "\ufffd")
		first, _, _ := strings.Cut(message, "\n")
		return nil, fault.New(fault.InvalidRequest, "the script threw %s", clipText(first, 1000)).Reason("script_error").
			With("message", clipText(message, 4000)).With("stack", clipText(message+"\n"+strings.ToValidUTF8(e.Stack, "\ufffd"), 8000)).Field("expression")
	}
	resp := &browserv1.EvalResponse{Type: e.Type, Value: structpb.NewNullValue()}
	if e.Odd != nil {
		odd := clipText(strings.ToValidUTF8(*e.Odd, "\ufffd"), maxText)
		resp.Unserializable = &odd
		return resp, nil
	}
	var v any
	if err := json.Unmarshal(e.Value, &v); err != nil {
		return nil, fault.New(fault.InternalError, "the page gave no JSON").Cause(err)
	}
	value, err := structpb.NewValue(v)
	if err != nil || deeper(v, maxDepth) {
		odd := "[" + e.Type + " (nested too deep)]"
		resp.Unserializable = &odd
		return resp, nil //nolint:nilerr // a value that a message cannot hold is told in words
	}
	resp.Value = value
	return resp, nil
}

// maxDepth is how deep a value may be nested; protocol messages hold no more.
const maxDepth = 1000

func deeper(v any, left int) bool {
	if left == 0 {
		return true
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if deeper(e, left-1) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if deeper(e, left-1) {
				return true
			}
		}
	}
	return false
}

// expression puts a function that stands alone into brackets, because as a statement it would need a name.
func expression(text string) string {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "function") || strings.HasPrefix(t, "async function") {
		return "(" + t + "\n)"
	}
	return text
}

// clipText cuts a text to at most n bytes, between runes.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
