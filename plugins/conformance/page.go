package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// requestOf reads params as a request of a method.
func requestOf(m *catalog.Method, params map[string]any) (proto.Message, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	req := m.NewRequest()
	return req, wire.Unmarshal(data, req)
}

// ensureAside makes a session from another goroutine.
func (t *T) ensureAside(params map[string]any) (string, error) {
	m := mustMethod("session.ensure")
	req, err := requestOf(m, params)
	if err != nil {
		return "", err
	}
	resp, err := t.run.call(t.ctx, m, req)
	if err != nil {
		return "", err
	}
	id := catalog.SessionID(resp)
	if id == "" {
		return "", errors.New("session_id is empty")
	}
	return id, nil
}

// pageChecks are about pages and need more than a talk.
func pageChecks() []check {
	c := func(id, method, guards string, needs []string, do func(*T)) check {
		return check{id: id, method: method, guards: guards, methods: needs, do: do}
	}
	return []check{
		c("page.wait/cancel", "page.wait", "A call that is cancelled ends at once, and the next one is answered.", nil, cancelled),
		c("page.wait/deadline", "page.wait", "A wait ends at its own deadline, and not much later.", nil, waitDeadline),
		c("page.snapshot/agree", "page.snapshot", "The same page read three times in three documents reads the same.", nil, readsAgree),
		c("page.snapshot/at-once", "page.snapshot", "Many snapshots at once are all answered, and each about its own page.", nil, atOnce),
		c("page.type/order", "page.type", "Calls on one page run in the order of their arrival.", nil, inOrder),
		c("page.type/cancel", "page.type", "Typing that is cancelled stops: the provider does not go on with what nobody waits for.", nil, typingCancelled),
		c("page.type/long", "page.type", "A long text arrives whole.", nil, longText),
		c("page.drag/native", "page.drag", "What the browser itself drags is dropped, or the answer warns that it was not; a drop is never made up.", nil, nativeDrag),
		c("page.click/odd", "page.click", "Odd input is refused as what it is, and the provider lives on.", nil, oddInput),
	}
}

func cancelled(t *T) {
	t.open("form.html")
	ctx, cancel := context.WithCancel(t.ctx)
	over := make(chan error, 1)
	go func() {
		over <- t.quietly(ctx, "page.wait", map[string]any{"session_id": t.vars["session"], "text_present": "never said", "timeout_ms": 20000})
	}()
	time.AfterFunc(200*time.Millisecond, cancel)
	select {
	case err := <-over:
		if err == nil {
			t.Errorf("the cancelled call succeeded")
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("the cancelled call does not end")
	}
	// A provider that goes on with what was cancelled shows in its page's lane: what follows there would wait for it.
	began := time.Now()
	t.Must("page.click", map[string]any{"selector": "#count"})
	if took := time.Since(began); took > patience/2 {
		t.Errorf("the call after a cancelled one took %d ms", took.Milliseconds())
	}
}

func waitDeadline(t *T) {
	t.open("form.html")
	a := t.Call("page.wait", map[string]any{"text_present": "never said", "timeout_ms": 500})
	switch {
	case a.Err != nil:
		t.Errorf("running out of time must be satisfied:false, and it answers %s", a.said())
	case a.Result["satisfied"] != false:
		t.Errorf("satisfied is %v", a.Result["satisfied"])
	}
	if a.Took > 500*time.Millisecond+late {
		t.Errorf("a wait of 500 ms took %d ms", a.Took.Milliseconds())
	}
	if a.Took < 300*time.Millisecond {
		t.Errorf("a wait of 500 ms for what never comes took only %d ms", a.Took.Milliseconds())
	}
}

func readsAgree(t *T) {
	var first string
	for i := range 3 {
		t.Must("page.open", map[string]any{"url": fmt.Sprintf("%s/form.html?%d", t.run.site.url, i)})
		var b strings.Builder
		s := t.snapshot()
		for _, e := range objects(s["elements"]) {
			fmt.Fprintf(&b, "%s %q; ", text(e, "role"), text(e, "name"))
		}
		b.WriteString(text(s, "text"))
		if i == 0 {
			first = b.String()
		} else if b.String() != first {
			t.Errorf("reading %d differs from the first: %s", i+1, show(b.String()))
		}
	}
}

func atOnce(t *T) {
	pages := map[string]string{}
	for _, name := range []string{"form.html", "second.html", "many.html"} {
		r := t.Must("page.open", map[string]any{"url": t.run.site.url + "/" + name, "new_page": true})
		pages[text(r, "page_id")] = text(r, "title")
	}
	t.spoilt = true
	if len(pages) != 3 {
		t.Fatalf("three pages have %d different page_ids", len(pages))
	}
	m := mustMethod("page.snapshot")
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id, title := range pages {
		for range 4 {
			wg.Go(func() {
				req, err := requestOf(m, map[string]any{"session_id": t.vars["session"], "page_id": id, "timeout_ms": int(2 * patience / time.Millisecond)})
				var got map[string]any
				if err == nil {
					var resp proto.Message
					if resp, err = t.run.call(t.ctx, m, req); err == nil {
						data, _ := wire.Marshal(resp) // a message of the protocol
						got = objectOf(data)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("a snapshot among many: %v", err)
				case text(got, "page_id") != id || text(got, "title") != title:
					t.Errorf("a snapshot of %q is answered with %q", title, text(got, "title"))
				}
			})
		}
	}
	wg.Wait()
}

func inOrder(t *T) {
	t.open("form.html")
	t.Must("page.type", map[string]any{"selector": "#who", "text": "-"})
	var want strings.Builder
	want.WriteString("-")
	for i := range 6 {
		word := fmt.Sprint(i)
		want.WriteString(word)
		t.Must("page.type", map[string]any{"selector": "#who", "text": word})
	}
	r := t.Must("page.type", map[string]any{"selector": "#who", "text": "."})
	if text(r, "value") != want.String()+"." {
		t.Errorf("the field holds %q, not %q", text(r, "value"), want.String()+".")
	}
}

func longText(t *T) {
	t.open("form.html")
	long := strings.Repeat("all work and no play ", 60)
	r := t.Must("page.type", map[string]any{"selector": "#who", "text": long, "timeout_ms": 20000})
	if text(r, "value") != long {
		t.Errorf("of %d letters %d arrived", len(long), len(text(r, "value")))
	}
}

func oddInput(t *T) {
	t.open("form.html")
	for _, params := range []map[string]any{
		{"selector": strings.Repeat("div > ", 4000) + "p"},
		{"text_query": strings.Repeat("long words ", 4000)},
		{"selector": "#count\u0000"},
		{"element_ref": strings.Repeat("d1e", 500)},
		{"position": map[string]any{"x": -5, "y": 1e9}},
	} {
		params["timeout_ms"] = 700
		a := t.Call("page.click", params)
		if a.Err == nil && params["position"] == nil {
			t.Errorf("it clicked %s", show(params))
		}
		if a.Err != nil && a.Err.Code == fault.InternalError {
			t.Errorf("%s is answered with %v", show(params), a.Err)
		}
	}
	t.Must("page.click", map[string]any{"selector": "#count"})
}

func nativeDrag(t *T) {
	t.open("drag.html")
	r := t.Must("page.drag", map[string]any{"from": map[string]any{"selector": "#a"}, "to": map[string]any{"selector": "#b"}})
	if r["dropped"] != true {
		if empty(r["warnings"]) {
			t.Errorf("dropped is false, and no warning says why")
		}
		return
	}
	t.shows("Dropped piece")
}

func typingCancelled(t *T) {
	t.open("form.html")
	const letters = 150
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = t.quietly(ctx, "page.type", map[string]any{
			"session_id": t.vars["session"], "selector": "#who", "text": strings.Repeat("x", letters), "delay_ms": 60, "timeout_ms": 30000,
		})
	}()
	t.Must("page.wait", map[string]any{"text_present": "Hello x"})
	cancel()
	<-over
	r := t.Must("page.type", map[string]any{"selector": "#who", "text": ".", "timeout_ms": 30000})
	if n := strings.Count(text(r, "value"), "x"); n == letters {
		t.Errorf("all %d letters were typed although the call was cancelled after the first ones", letters)
	}
}
