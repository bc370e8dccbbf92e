package bidi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// encodeValue runs in the page after the expression and writes its value as JSON text, or says how it is written where
// JSON cannot hold it. It takes nothing from the page's globals that a page usually replaces but JSON itself.
const encodeValue = `(value) => {
	const type = typeof value;
	const odd = text => '!' + text;
	if (type === 'symbol' || type === 'function') return odd(String(value));
	try {
		const json = JSON.stringify(value);
		return json !== undefined ? json : odd(String(value));
	} catch (e) {
		return odd(Object.prototype.toString.call(value) + ' (' + ((e && e.message) || e) + ')');
	}
}`

// eval is page.eval.
func (p *Provider) eval(ctx context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
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

func (p *page) evaluate(ctx context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
	frame := p.context
	if r.FrameRef != nil {
		id, err := p.driver.ContentFrame(ctx, r.GetFrameRef())
		if err != nil {
			return nil, err
		}
		frame = string(id)
	}
	target := scriptTarget{Context: frame}
	if r.GetWorld() == browserv1.World_WORLD_ISOLATED {
		target.Sandbox = sandbox
	}
	await := r.AwaitPromise == nil || r.GetAwaitPromise()
	if p.wrappable(ctx, r.GetExpression()) {
		return inDocument(ctx, p, frame, func(ctx context.Context) (*browserv1.EvalResponse, error) {
			return p.evaluateWrapped(ctx, target, r, await)
		})
	}
	return inDocument(ctx, p, frame, func(ctx context.Context) (*browserv1.EvalResponse, error) {
		res, err := do(ctx, p.b.conn, scriptEvaluate, evaluateParams{
			Expression: expression(r.GetExpression()), Target: target, AwaitPromise: await, Ownership: "root", Serialization: flat,
		})
		if err == nil && res.Exception == nil && res.Result.Type == "function" && res.Result.Handle != "" {
			res, err = p.callFunction(ctx, target, res.Result.Handle, r.GetArgs(), await)
		}
		if err != nil {
			return nil, err
		}
		if res.Exception != nil {
			return nil, p.scriptError(ctx, target, res.Exception)
		}
		return p.valueOf(ctx, target, res.Result)
	})
}

// expression puts a function that stands alone into brackets, because as a statement it would need a name.
func expression(text string) string {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "function") || strings.HasPrefix(t, "async function") {
		return "(" + t + "\n)"
	}
	return text
}

// callFunction calls the function that the expression gave, with the request's arguments.
func (p *page) callFunction(ctx context.Context, target scriptTarget, fn string, args []*structpb.Value, await bool) (evaluateResult, error) {
	defer p.disown(ctx, target, fn)
	given := []any{reference{Handle: fn}}
	for _, a := range args {
		given = append(given, localValue(a.AsInterface()))
	}
	return do(ctx, p.b.conn, scriptCall, callParams{
		Function: "(f, ...a) => f(...a)", Arguments: given, Target: target, AwaitPromise: await, Ownership: "root", Serialization: flat,
	})
}

// disown lets the browser forget an object.
func (p *page) disown(ctx context.Context, target scriptTarget, handle string) {
	if handle == "" {
		return
	}
	_, forget, err := p.b.conn.send(scriptDisown.name, disownParams{Handles: []string{handle}, Target: target})
	if err == nil {
		forget() // Nobody waits for the answer.
	}
}

// jsTypes are the types of script.RemoteValue that typeof does not call an object.
var jsTypes = map[string]string{
	"undefined": "undefined", "null": "null", "string": "string", "number": "number", "boolean": "boolean", "bigint": "bigint",
	"symbol": "symbol", "function": "function",
}

// valueOf reads a value. Plain ones came along already; others are written as JSON in the page.
func (p *page) valueOf(ctx context.Context, target scriptTarget, v remoteValue) (*browserv1.EvalResponse, error) {
	resp := &browserv1.EvalResponse{Type: "object", Value: structpb.NewNullValue()}
	if t := jsTypes[v.Type]; t != "" {
		resp.Type = t
	}
	odd := func(text string) (*browserv1.EvalResponse, error) {
		text = clipText(strings.ToValidUTF8(text, "\ufffd"), maxText)
		resp.Unserializable = &text
		return resp, nil
	}
	switch v.Type {
	case "null":
		return resp, nil
	case "undefined":
		return odd("undefined")
	case "bigint":
		return odd(v.plain() + "n")
	case "string", "boolean":
		return resp, setJSON(resp, v.Value)
	case "number":
		if len(v.Value) > 0 && v.Value[0] == '"' { // NaN, -0, Infinity
			return odd(v.plain())
		}
		return resp, setJSON(resp, v.Value)
	}
	given := any(reference{Handle: v.Handle})
	if v.Handle == "" {
		if v.SharedID == "" {
			return odd(v.plain())
		}
		given = reference{SharedID: v.SharedID}
	}
	defer p.disown(ctx, target, v.Handle)
	res, err := do(ctx, p.b.conn, scriptCall, callParams{
		Function: encodeValue, Arguments: []any{given}, Target: target, Ownership: "none", Serialization: flat,
	})
	if err != nil {
		return nil, err
	}
	if res.Exception != nil {
		return nil, p.scriptError(ctx, target, res.Exception)
	}
	text, _ := res.Result.text()
	if said, ok := strings.CutPrefix(text, "!"); ok {
		return odd(said)
	}
	if setJSON(resp, []byte(text)) != nil {
		return odd("[" + v.Type + " (nested too deep)]") // Deeper than a message can be.
	}
	return resp, nil
}

// maxDepth is how deep a value may be nested; protocol messages hold no more.
const maxDepth = 1000

var errTooDeep = errors.New("the value is nested too deep")

func setJSON(resp *browserv1.EvalResponse, data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	if deeper(v, maxDepth) {
		return errTooDeep
	}
	value, err := structpb.NewValue(cleanText(v))
	if err != nil {
		return err
	}
	resp.Value = value
	return nil
}

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

// cleanText makes the strings of a value valid UTF-8.
func cleanText(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ToValidUTF8(v, "\ufffd")
	case []any:
		for i := range v {
			v[i] = cleanText(v[i])
		}
	case map[string]any:
		for k, e := range v {
			delete(v, k)
			v[strings.ToValidUTF8(k, "\ufffd")] = cleanText(e)
		}
	}
	return v
}

// scriptError tells what a script threw.
func (p *page) scriptError(ctx context.Context, target scriptTarget, x *exception) error {
	p.disown(ctx, target, x.Value.Handle)
	message := strings.ToValidUTF8(x.Text, "\ufffd")
	if x.Value.Type != "error" && x.Value.Type != "" {
		message = strings.ToValidUTF8(x.Value.plain(), "\ufffd")
	}
	stack := message
	if frames := x.StackTrace.String(); frames != "" {
		stack += "\n" + strings.ToValidUTF8(frames, "\ufffd")
	}
	first, _, _ := strings.Cut(message, "\n")
	return fault.New(fault.InvalidRequest, "the script threw %s", clipText(first, 1000)).Reason("script_error").
		With("message", clipText(message, 4000)).With("stack", clipText(stack, 8000)).With("line", x.Line+1).Field("expression")
}
