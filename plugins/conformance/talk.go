package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// patience is how long a call of the suite may take when it does not say so itself. It is much longer than a good provider
// needs on a slow machine.
const patience = 10 * time.Second

// T is one check at work: what it may do, and what it found.
type T struct {
	ctx context.Context
	run *run
	// vars are the values that transcripts know by name: site, other, session, page and what was taken.
	vars     map[string]any
	failures []string
	skipped  string
	spoilt   bool // the session is not to be used by the next check
	sessions []string
}

// Errorf notes something that is wrong; the check goes on.
func (t *T) Errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// Fatalf notes something that is wrong and ends the check.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(stop{})
}

// Skipf ends a check that does not apply to the provider.
func (t *T) Skipf(format string, args ...any) {
	t.skipped = fmt.Sprintf(format, args...)
	panic(stop{})
}

// stop ends a check.
type stop struct{}

// Answer is what came of a call: Result as JSON has it, with the warnings in it, or Err.
type Answer struct {
	Result map[string]any
	Err    *fault.Error
	Took   time.Duration
	Bytes  int
}

// Fault gives the error as JSON has it.
func (a Answer) Fault() map[string]any {
	if a.Err == nil {
		return nil
	}
	return map[string]any{
		"code": fault.Word(a.Err.Code), "message": a.Err.Message, "retryable": a.Err.Retryable, "details": plainOf(a.Err.Details),
	}
}

// Code gives the error's code and reason in words; "ok" for an answer.
func (a Answer) Code() string {
	if a.Err == nil {
		return "ok"
	}
	return strings.TrimSuffix(fault.Word(a.Err.Code)+"/"+a.Err.ReasonWord(), "/")
}

// Call calls a method within the suite's patience. Params are as JSON has them; session_id is filled in where the method takes
// one and params do not name it. It ends the check only when the provider cannot be asked at all.
func (t *T) Call(method string, params map[string]any) Answer { return t.CallIn(t.ctx, method, params) }

// CallIn is Call in a context of its own.
func (t *T) CallIn(ctx context.Context, method string, params map[string]any) Answer {
	m, ok := catalog.Lookup(method)
	if !ok {
		t.Fatalf("the transcript names %s, which is no method", method)
	}
	if params == nil {
		params = map[string]any{}
	}
	if _, named := params["session_id"]; !named && m.NeedsSession() && t.vars["session"] != nil {
		params["session_id"] = t.vars["session"]
	}
	if _, named := params["timeout_ms"]; !named && hasTimeout(m) {
		params["timeout_ms"] = int(patience / time.Millisecond)
	}
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatalf("the params of %s: %v", method, err)
	}
	req := m.NewRequest()
	if err := wire.Unmarshal(data, req); err != nil {
		t.Fatalf("the params of %s: %v", method, err)
	}
	return t.run.ask(ctx, t, m, req)
}

// Must is Call that ends the check on an error.
func (t *T) Must(method string, params map[string]any) map[string]any {
	a := t.Call(method, params)
	if a.Err != nil {
		t.Fatalf("%s: %v", method, a.Err)
	}
	return a.Result
}

// Ensure makes a session of the check's own, which is closed when the check ends, and gives its id.
func (t *T) Ensure(params map[string]any) string {
	all := map[string]any{"client_session_id": t.run.client(), "isolation": "per_client_session"}
	for k, v := range params {
		all[k] = v
	}
	if t.run.opts.Provider != "" {
		all["provider_id"] = t.run.opts.Provider
	}
	r := t.Must("session.ensure", all)
	id, _ := r["session_id"].(string)
	if id == "" {
		t.Fatalf("session.ensure gave no session_id")
	}
	t.sessions = append(t.sessions, id)
	return id
}

// Lists says whether the provider lists a method.
func (t *T) Lists(method string) bool { return t.run.listed[method] }

// Has says whether the provider lists a feature.
func (t *T) Has(feature string) bool { return t.run.features[feature] }

func plainOf(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var out any
	_ = json.Unmarshal(data, &out) // it was just written
	return out
}

func hasTimeout(m *catalog.Method) bool {
	return m.Request.Descriptor().Fields().ByName("timeout_ms") != nil
}

// ended says that a call ended because the suite was stopped.
func ended(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
