package bidi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// unwrap runs in the page on the object that holds an expression's value. It calls a function, waits for a promise, and
// writes the value as JSON text, in which everything that a string can hold is written in ASCII or well-formed.
const unwrap = `(o, wait, ...args) => {
	const encode = value => {
		const type = value === null ? 'null' : typeof value;
		const odd = text => JSON.stringify({ type, odd: text });
		switch (type) {
		case 'undefined': return odd('undefined');
		case 'bigint': return odd(value + 'n');
		case 'symbol': case 'function': return odd(String(value));
		case 'number':
			if (!Number.isFinite(value) || Object.is(value, -0)) return odd(Object.is(value, -0) ? '-0' : String(value));
		}
		try {
			const json = JSON.stringify(value);
			return json === undefined ? odd(String(value)) : JSON.stringify({ type, json });
		} catch (e) {
			return odd(Object.prototype.toString.call(value) + ' (' + ((e && e.message) || e) + ')');
		}
	};
	let v = o.v;
	if (typeof v === 'function') v = v(...args);
	return wait && typeof v?.then === 'function' ? Promise.resolve(v).then(v => typeof v === 'function' ? encode(v(...args)) : encode(v)) : encode(v);
}`

// wrap puts an expression into an object.
func wrap(expression string) string { return "({v: (" + expression + "\n)})" }

// wrappable says whether the text is one expression in a Chromium, whose driver loses an answer for ever when it is a
// string with half a surrogate pair. Such a text is put into an object, so that its value never comes along by itself.
func (p *page) wrappable(ctx context.Context, text string) bool {
	if p.b.firefox() || strings.HasPrefix(strings.TrimSpace(text), "{") {
		return false
	}
	raw, err := p.cdp(ctx, "Runtime.compileScript", map[string]any{"expression": wrap(text), "sourceURL": "", "persistScript": false})
	if err != nil {
		return false
	}
	var res struct {
		Wrong json.RawMessage `json:"exceptionDetails"`
	}
	return json.Unmarshal(raw, &res) == nil && res.Wrong == nil
}

// evaluateWrapped is page.eval for such a text.
func (p *page) evaluateWrapped(ctx context.Context, target scriptTarget, r *browserv1.EvalRequest, await bool) (*browserv1.EvalResponse, error) {
	res, err := do(ctx, p.b.conn, scriptEvaluate, evaluateParams{
		Expression: wrap(r.GetExpression()), Target: target, Ownership: "root", Serialization: flat,
	})
	if err != nil {
		return nil, err
	}
	if res.Exception != nil {
		return nil, p.scriptError(ctx, target, res.Exception)
	}
	defer p.disown(ctx, target, res.Result.Handle)
	args := []any{reference{Handle: res.Result.Handle}, localValue(await)}
	for _, a := range r.GetArgs() {
		args = append(args, localValue(a.AsInterface()))
	}
	res, err = do(ctx, p.b.conn, scriptCall, callParams{
		Function: unwrap, Arguments: args, Target: target, AwaitPromise: true, Ownership: "none", Serialization: flat,
	})
	if err != nil {
		return nil, err
	}
	if res.Exception != nil {
		return nil, p.scriptError(ctx, target, res.Exception)
	}
	text, _ := res.Result.text()
	var got struct {
		Type string  `json:"type"`
		JSON *string `json:"json"`
		Odd  *string `json:"odd"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return nil, fmt.Errorf("reading the value: %w", err)
	}
	resp := &browserv1.EvalResponse{Type: got.Type, Value: structpb.NewNullValue(), Unserializable: got.Odd}
	if got.JSON != nil && setJSON(resp, []byte(*got.JSON)) != nil {
		deep := "[" + got.Type + " (nested too deep)]"
		resp.Unserializable = &deep
	}
	return resp, nil
}
