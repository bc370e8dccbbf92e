package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// encodeValue runs in the page after the expression and writes its value as JSON text, or says how it is written where
// JSON cannot hold it. It takes nothing from the page's globals that a page usually replaces but JSON itself.
const encodeValue = `function(value) {
	const type = value === null ? 'null' : typeof value;
	const odd = text => ({ type, odd: text });
	switch (type) {
	case 'undefined': return odd('undefined');
	case 'bigint': return odd(value + 'n');
	case 'symbol': case 'function': return odd(String(value));
	case 'number':
		if (Number.isFinite(value) && !Object.is(value, -0)) break;
		return odd(Object.is(value, -0) ? '-0' : String(value));
	}
	try {
		const json = JSON.stringify(value);
		if (json !== undefined) return { type, json };
		return odd(String(value));
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
	frame := p.main
	if r.FrameRef != nil {
		id, err := p.driver.ContentFrame(ctx, r.GetFrameRef())
		if err != nil {
			return nil, err
		}
		frame = protocol.FrameID(id)
	}
	w, err := p.worldOf(ctx, frame, r.GetWorld())
	if err != nil {
		return nil, err
	}
	await := r.AwaitPromise == nil || r.GetAwaitPromise()
	res, err := protocol.Call(ctx, w.ch, runtime.Evaluate, runtime.EvaluateParams{
		Expression: expression(r.GetExpression()), UniqueContextID: w.unique, AwaitPromise: &await, UserGesture: yes(),
		Timeout: endOf(ctx),
	})
	if err != nil {
		return nil, gone(err)
	}
	if res.ExceptionDetails != nil {
		return nil, scriptError(res.ExceptionDetails)
	}
	value := res.Result
	if value.Type == runtime.RemoteObjectTypeFunction && value.ObjectID != "" {
		if value, err = p.callFunction(ctx, w, value.ObjectID, r.GetArgs(), await); err != nil {
			return nil, err
		}
	}
	return p.valueOf(ctx, w, value)
}

// expression puts a function that stands alone into brackets, because as a statement it would need a name.
func expression(text string) string {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "function") || strings.HasPrefix(t, "async function") {
		return "(" + t + "\n)"
	}
	return text
}

// worldOf gives the world that a script runs in.
func (p *page) worldOf(ctx context.Context, frame protocol.FrameID, in browserv1.World) (*world, error) {
	if in == browserv1.World_WORLD_ISOLATED {
		return p.engineWorld(ctx, frame)
	}
	var w *world
	var removed bool
	err := p.until(ctx, func() bool {
		f := p.frames[frame]
		removed = f == nil
		if f != nil {
			w = f.page
		}
		return removed || w != nil
	})
	if err == nil && removed {
		err = inpage.ErrDocumentGone
	}
	return w, err
}

// endOf is when the browser ends a script that loops, in milliseconds from now: a moment after the call's own deadline, so
// that the call says that it ran out of time and the page lives on. 0, which is never, for a call without a deadline.
func endOf(ctx context.Context) runtime.TimeDelta {
	until, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return runtime.TimeDelta(max(time.Until(until), 0).Milliseconds() + 100)
}

// callFunction calls the function that the expression gave, with the request's arguments.
func (p *page) callFunction(ctx context.Context, w *world, fn runtime.RemoteObjectID, args []*structpb.Value, await bool) (*runtime.RemoteObject, error) {
	defer p.release(w, fn)
	given := make([]*runtime.CallArgument, 0, len(args))
	for _, a := range args {
		data, err := protojson.Marshal(a)
		if err != nil {
			return nil, fault.New(fault.InvalidRequest, "an argument is no JSON: %v", err).Field("args")
		}
		given = append(given, &runtime.CallArgument{Value: jsonv2.Value(data)})
	}
	res, err := protocol.Call(ctx, w.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: "function(...a) { return this(...a) }", ObjectID: fn, Arguments: given, AwaitPromise: &await, UserGesture: yes(),
	})
	if err != nil {
		// The browser takes no deadline for a function. One that loops is what keeps the page busy: it answered just before.
		if ctx.Err() != nil && !p.answers(ctx, afterwait) {
			p.interrupt()
		}
		return nil, gone(err)
	}
	if res.ExceptionDetails != nil {
		return nil, scriptError(res.ExceptionDetails)
	}
	return res.Result, nil
}

// valueOf reads a value. Plain ones came along already; others are written as JSON in the page.
func (p *page) valueOf(ctx context.Context, w *world, o *runtime.RemoteObject) (*browserv1.EvalResponse, error) {
	kind := string(o.Type)
	if o.Subtype == runtime.RemoteObjectSubtypeNull {
		kind = "null"
	}
	resp := &browserv1.EvalResponse{Type: kind, Value: structpb.NewNullValue()}
	switch {
	case kind == "null":
		return resp, nil
	case o.UnserializableValue != "":
		text := string(o.UnserializableValue)
		resp.Unserializable = &text
		return resp, nil
	case o.Type == runtime.RemoteObjectTypeUndefined:
		text := "undefined"
		resp.Unserializable = &text
		return resp, nil
	case o.ObjectID == "":
		if len(o.Value) == 0 {
			text := o.Description
			resp.Unserializable = &text
			return resp, nil
		}
		return resp, setJSON(resp, o.Value)
	}
	defer p.release(w, o.ObjectID)
	res, err := protocol.Call(ctx, w.ch, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: encodeValue, ObjectID: o.ObjectID, Arguments: []*runtime.CallArgument{{ObjectID: o.ObjectID}}, ReturnByValue: yes(),
	})
	if err != nil {
		return nil, gone(err)
	}
	if res.ExceptionDetails != nil {
		return nil, scriptError(res.ExceptionDetails)
	}
	var got struct {
		Type string  `json:"type"`
		JSON *string `json:"json"`
		Odd  *string `json:"odd"`
	}
	if err := json.Unmarshal(res.Result.Value, &got); err != nil {
		return nil, err
	}
	resp.Type = got.Type
	if got.JSON == nil {
		resp.Unserializable = got.Odd
		return resp, nil
	}
	err = setJSON(resp, []byte(*got.JSON))
	if err != nil {
		text := o.Description
		resp.Unserializable = &text // It is nested deeper than a message can be.
	}
	return resp, nil
}

// maxDepth is how deep a value may be nested; protocol messages hold no more.
const maxDepth = 1000

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

var errTooDeep = errors.New("the value is nested too deep")

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
func scriptError(d *runtime.ExceptionDetails) error {
	text := strings.ToValidUTF8(thrown(d), "\ufffd")
	message, _, _ := strings.Cut(text, "\n")
	e := fault.New(fault.InvalidRequest, "the script threw %s", clip(message, 1000)).Reason("script_error").With("message", clip(message, 4000))
	e.With("stack", clip(text, 8000)).With("line", d.LineNumber+1).With("column", d.ColumnNumber+1)
	return e.Field("expression")
}

// quote writes a text as a JavaScript string.
func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(data)
}
