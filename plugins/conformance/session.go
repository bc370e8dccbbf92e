package conformance

import (
	"context"
	"strings"
	"sync"
	"time"
)

// sessionChecks are about sessions: what is kept apart, what may run side by side, and what ends.
func sessionChecks() []check {
	c := func(id, method, guards string, do func(*T)) check {
		return check{id: id, method: method, guards: guards, do: do}
	}
	isolated := c("session.ensure/isolated", "session.ensure", "Cookies of one session are not seen by another.", isolatedSessions)
	isolated.features = []string{"isolated_contexts"}
	return []check{
		c("session.ensure/apart", "session.ensure", "Two clients get two sessions, whose pages are each their own.", sessionsApart),
		isolated,
		c("session.ensure/side-by-side", "session.ensure", "Sessions work side by side: one that waits does not delay another.", sideBySide),
		c("session.ensure/viewport", "session.ensure", "A viewport that is asked for is the page's.", viewport),
		c("session.ensure/same-race", "session.ensure", "Two calls at once for the same client_session_id get one session.", ensureRace),
		c("session.close/others-stay", "session.close", "Closing one session leaves the others as they are.", othersStay),
		c("session.close/in-flight", "session.close", "A call in a session that is closed ends, and does not hang.", closeInFlight),
	}
}

// twoSessions makes two sessions and opens the form in both.
func (t *T) twoSessions() (a, b string) {
	a, b = t.Ensure(nil), t.Ensure(nil)
	if a == b {
		t.Fatalf("two clients get the same session_id")
	}
	return a, b
}

func sessionsApart(t *T) {
	a, b := t.twoSessions()
	pa := t.Must("page.open", map[string]any{"session_id": a, "url": t.run.site.url + "/form.html"})
	t.Must("page.open", map[string]any{"session_id": b, "url": t.run.site.url + "/second.html"})
	if got := text(t.Must("page.snapshot", map[string]any{"session_id": a}), "title"); got != "Order form" {
		t.Errorf("the first session shows %q after the second opened a page", got)
	}
	got := t.Call("page.snapshot", map[string]any{"session_id": b, "page_id": pa["page_id"]})
	if got.Err == nil && text(got.Result, "title") == "Order form" {
		t.Errorf("the second session can read a page of the first")
	}
}

func isolatedSessions(t *T) {
	a, b := t.twoSessions()
	t.Must("page.open", map[string]any{"session_id": a, "url": t.run.site.url + "/cookie?who=first"})
	t.Must("page.open", map[string]any{"session_id": b, "url": t.run.site.url + "/seen"})
	if s := text(t.Must("page.snapshot", map[string]any{"session_id": b}), "text"); !strings.Contains(s, "[]") {
		t.Errorf("the second session sends cookies of the first: %s", s)
	}
}

func sideBySide(t *T) {
	a, b := t.twoSessions()
	for _, s := range []string{a, b} {
		t.Must("page.open", map[string]any{"session_id": s, "url": t.run.site.url + "/form.html"})
	}
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = t.quietly(ctx, "page.wait", map[string]any{"session_id": a, "text_present": "never said", "timeout_ms": 20000})
	}()
	began := time.Now()
	t.Must("page.click", map[string]any{"session_id": b, "selector": "#count"})
	t.Must("page.snapshot", map[string]any{"session_id": b})
	took := time.Since(began)
	select {
	case <-over:
		t.Errorf("the other session's wait ended by itself after %d ms", took.Milliseconds())
	default:
	}
	cancel()
	<-over
	if took > patience {
		t.Errorf("a click and a snapshot took %d ms beside a session that waits", took.Milliseconds())
	}
}

// quietly makes a call whose answer does not matter, from another goroutine.
func (t *T) quietly(ctx context.Context, method string, params map[string]any) error {
	m := mustMethod(method)
	req, err := requestOf(m, params)
	if err == nil {
		_, err = t.run.call(ctx, m, req)
	}
	return err
}

func viewport(t *T) {
	if !t.Lists("page.screenshot") {
		t.Skipf("it does not list page.screenshot")
	}
	id := t.Ensure(map[string]any{"viewport": map[string]any{"width": 640, "height": 480}})
	t.vars["session"] = id
	t.open("tall.html")
	w, h := t.picture(nil)
	if w%640 != 0 || h%480 != 0 || w/640 != h/480 {
		t.Errorf("a picture of a viewport of 640 by 480 is %d by %d", w, h)
	}
}

func ensureRace(t *T) {
	params := map[string]any{"client_session_id": t.run.client(), "isolation": "per_client_session"}
	if t.run.opts.Provider != "" {
		params["provider_id"] = t.run.opts.Provider
	}
	ids := make([]string, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i], errs[i] = t.ensureAside(params) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("session.ensure: %v", err)
		}
		if i == 0 || ids[i] != ids[0] {
			t.sessions = append(t.sessions, ids[i])
		}
	}
	if ids[0] != ids[1] {
		t.Errorf("it gives two sessions")
	}
}

func othersStay(t *T) {
	a, b := t.twoSessions()
	t.Must("page.open", map[string]any{"session_id": b, "url": t.run.site.url + "/form.html"})
	t.Must("session.close", map[string]any{"session_id": a})
	t.sessions = []string{b}
	if got := text(t.Must("page.snapshot", map[string]any{"session_id": b}), "title"); got != "Order form" {
		t.Errorf("the other session shows %q", got)
	}
}

func closeInFlight(t *T) {
	id := t.Ensure(nil)
	t.Must("page.open", map[string]any{"session_id": id, "url": t.run.site.url + "/form.html"})
	over, began := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		close(began)
		_ = t.quietly(t.ctx, "page.wait", map[string]any{"session_id": id, "text_present": "never said", "timeout_ms": 8000})
	}()
	<-began
	t.Must("session.close", map[string]any{"session_id": id})
	t.sessions = nil
	select {
	case <-over: // how it ends is its own affair
	case <-time.After(8*time.Second + 2*late):
		t.Errorf("the call in the session does not end")
	}
}
