package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// wholeChecks are about the provider as a whole, on the connection that the suite has.
func wholeChecks() []check {
	return []check{
		{id: "provider/events", guards: "Events name the session that they are about, and come in measure: an idle session sends no flood.", features: []string{"events"}, do: eventsInMeasure},
		{id: "provider/quiet", guards: "A provider floods nobody: an idle session sends fewer than 200 events a second.", do: quiet},
		{id: "provider/again", guards: "The main job done three times, each in a session of its own, comes out the same.", methods: []string{"session.ensure"}, do: mainJobAgain},
	}
}

// listen collects events until the context ends.
func (t *T) listen(ctx context.Context, each func(kind string, payload map[string]any)) (stop func(), err error) {
	teller, ok := t.run.conn.(Teller)
	if !ok {
		return nil, errors.New("the connection has no events")
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for e, err := range teller.Events(ctx) {
			if err != nil {
				return
			}
			each(e.GetType(), e.GetPayload().AsMap())
		}
	}()
	return func() { cancel(); <-over }, nil
}

func eventsInMeasure(t *T) {
	heard := make(chan map[string]any, 4096)
	id := t.Ensure(nil)
	stop, err := t.listen(t.ctx, func(kind string, payload map[string]any) {
		payload["_type"] = kind
		select {
		case heard <- payload:
		default:
		}
	})
	if err != nil {
		t.Skipf("%v", err)
	}
	defer stop()
	t.Must("page.open", map[string]any{"session_id": id, "url": t.run.site.url + "/second.html"})
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case e := <-heard:
			kind := text(e, "_type")
			if text(e, "session_id") == "" && kind != "provider.state_changed" && kind != "events.lagged" && kind != "call.progress" {
				t.Fatalf("an event %s names no session", kind)
			}
			if kind == "page.navigated" && text(e, "session_id") == id {
				return
			}
		case <-limit.C:
			t.Fatalf("page.open is followed by no page.navigated of its session")
		}
	}
}

func quiet(t *T) {
	t.Ensure(nil)
	count := make(chan struct{}, 1<<16)
	stop, err := t.listen(t.ctx, func(string, map[string]any) {
		select {
		case count <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Skipf("%v", err)
	}
	timer := time.NewTimer(time.Second)
	<-timer.C
	stop()
	if n := len(count); n > 200 {
		t.Errorf("an idle session sent %d events in a second", n)
	}
}

func mainJobAgain(t *T) {
	if !t.Lists("page.type") || !t.Lists("page.click") {
		t.Skipf("it does not list the methods of the main job")
	}
	var first string
	for i := range 3 {
		t.vars["session"] = t.Ensure(nil)
		t.open("form.html")
		typed := t.Must("page.type", map[string]any{"element_ref": t.ref("textbox", "Name"), "text": "Ada"})
		clicked := t.Must("page.click", map[string]any{"element_ref": t.ref("button", "Place order")})
		waited := t.Must("page.wait", map[string]any{"text_present": "Sent by Ada"})
		got := fmt.Sprint(typed["value"], clicked["clicked"], clicked["navigation_occurred"], waited["satisfied"], waited["matched_condition"])
		if i == 0 {
			first = got
		} else if got != first {
			t.Errorf("time %d it comes out as %s, the first time as %s", i+1, got, first)
		}
	}
}
