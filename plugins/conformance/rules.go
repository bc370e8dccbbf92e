package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

type messageOf = proto.Message

// rules are what holds of every answer, whichever check asked. They are told as checks of their own at the end.
type rules struct {
	order  []string
	guards map[string]string
	broken map[string][]string
}

// What every answer must keep to, in the order it is told.
var everywhere = [][2]string{
	{"wire/lives", "The provider's process goes on, whatever it is asked."},
	{"wire/deadlines", "Every call is answered by its own deadline, or a moment after."},
	{"wire/errors", "Every error has one of the fourteen codes but internal_error, a message, and retry where it is retryable."},
	{"wire/size", "No answer about a small page is larger than 8 MiB."},
	{"wire/sessions", "No session_id is given twice for two clients."},
	{"wire/pages", "Every answer about a page names a page_id."},
	{"wire/words", "No answer uses a word that the protocol does not have."},
}

func newRules() *rules {
	r := &rules{guards: map[string]string{}, broken: map[string][]string{}}
	for _, e := range everywhere {
		r.order = append(r.order, e[0])
		r.guards[e[0]] = e[1]
	}
	return r
}

func (r *rules) break_(id, format string, args ...any) { //nolint:revive // break is a keyword
	r.broken[id] = append(r.broken[id], fmt.Sprintf(format, args...))
}

// tellRules adds a result for each rule.
func (r *run) tellRules() {
	if r.opts.Methods != "" {
		return
	}
	for _, id := range r.rules.order {
		res := Result{ID: id, Guards: r.rules.guards[id], Status: Pass}
		if list := r.rules.broken[id]; len(list) > 0 {
			res.Status, res.Message = Fail, list[0]
			if len(list) > 1 {
				res.Message += fmt.Sprintf(" (and %d more)", len(list)-1)
			}
		}
		r.tell(res)
	}
}

const (
	// late is how long after its deadline a call may still be answered: more than any scheduler needs, less than a hang.
	late = 1500 * time.Millisecond
	// most is the largest answer about one of the suite's small pages, in bytes.
	most = 8 << 20
)

// ask makes a call for a check, looks at the answer as every answer is looked at, and gives it as JSON has it.
func (r *run) ask(ctx context.Context, t *T, m *catalog.Method, req proto.Message) Answer {
	if r.conn == nil {
		t.Fatalf("the provider is gone: %s", r.given)
	}
	began := time.Now()
	resp, err := r.call(ctx, m, req)
	a := Answer{Took: time.Since(began)}
	deadline := catalog.Timeout(m, req)
	if a.Took > deadline+late {
		r.rules.break_("wire/deadlines", "%s was not answered %d ms after its deadline of %d ms", m.Name, (a.Took - deadline).Milliseconds(), deadline.Milliseconds())
		r.silent++
	} else {
		r.silent = 0
	}
	if err != nil {
		a.Err = fault.From(err)
		if !ended(ctx) {
			r.lookAtError(m, a.Err)
		}
		return a
	}
	a.Bytes = proto.Size(resp)
	result, warnings, err := wire.MarshalResponse(resp)
	if err != nil {
		t.Fatalf("the answer of %s is no JSON: %v", m.Name, err)
	}
	a.Result = objectOf(result)
	if list := listOf(warnings); len(list) > 0 {
		a.Result["warnings"] = list
	}
	r.look(m, req, resp, a)
	return a
}

// call asks within the deadline of the call and a little more.
func (r *run) call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, catalog.Timeout(m, req)+2*late)
	defer cancel()
	return r.conn.Call(ctx, m, req)
}

// lookAtError looks at what every error must have.
func (r *run) lookAtError(m *catalog.Method, e *fault.Error) {
	_, known := fault.ParseCode(fault.Word(e.Code))
	switch {
	case !known || e.Code == fault.InternalError:
		r.rules.break_("wire/errors", "%s answers %v", m.Name, e)
	case e.Message == "":
		r.rules.break_("wire/errors", "%s answers %s without a message", m.Name, fault.Word(e.Code))
	case e.Retryable && e.Details[fault.KeyRetry] == nil:
		r.rules.break_("wire/errors", "%s answers %v as retryable and does not say how", m.Name, e)
	}
}

// pageless are methods of pages whose answers name none.
var pageless = []string{"page.wait"}

// look looks at what every answer must have.
func (r *run) look(m *catalog.Method, req, resp proto.Message, a Answer) {
	if a.Bytes > most {
		r.rules.break_("wire/size", "%s answers with %d MiB", m.Name, a.Bytes>>20)
	}
	if m.Noun() == "page" && !slices.Contains(pageless, m.Name) {
		got := catalog.PageID(resp)
		if got == "" {
			r.rules.break_("wire/pages", "%s names no page_id", m.Name)
		} else if want := catalog.PageID(req); want != "" && got != want && m.Name != "page.open" {
			r.rules.break_("wire/pages", "%s about page %q names page %q", m.Name, want, got)
		}
	}
	r.words(m, resp)
}

// words finds enums of an answer with values that the protocol does not have.
func (r *run) words(m *catalog.Method, resp proto.Message) {
	fields := resp.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Enum() == nil || fd.IsList() {
			continue
		}
		n := resp.ProtoReflect().Get(fd).Enum()
		if fd.Enum().Values().ByNumber(n) == nil {
			r.rules.break_("wire/words", "%s gives %s a value that the protocol does not have", m.Name, fd.Name())
		}
	}
}
