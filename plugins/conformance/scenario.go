package conformance

import (
	"bytes"
	"encoding/base64"
	"image/jpeg"
	"image/png"
)

// scenarioChecks are the draft's ten minimal scenarios, in its order. Each is judged by itself, so that one that fails does not
// hide the others.
func scenarioChecks() []check {
	c := func(n, method, guards string, do func(*T)) check {
		return check{id: "scenario/" + n, method: method, guards: guards, do: do}
	}
	return []check{
		c("01-describe", "provider.describe", "provider.describe succeeds.", func(t *T) { t.Must("provider.describe", t.about()) }),
		c("02-status", "provider.status", "provider.status reports a coherent state.", statusCoherent),
		c("03-ensure", "session.ensure", "session.ensure creates or reuses a session.", ensureTwice),
		c("04-open", "page.open", "page.open navigates to a test page.", func(t *T) { t.open("form.html") }),
		c("05-snapshot", "page.snapshot", "page.snapshot returns usable text and at least one actionable reference.", scenarioSnapshot),
		c("06-click", "page.click", "page.click can activate a known element.", scenarioClick),
		c("07-type", "page.type", "page.type can fill a known input.", scenarioType),
		c("08-wait", "page.wait", "page.wait observes a deterministic page change.", scenarioWait),
		c("09-screenshot", "page.screenshot", "page.screenshot returns an image of the size that it says.", func(t *T) { t.open("form.html"); t.picture(nil) }),
		c("10-close", "session.close", "session.close cleans up: the session is gone afterwards.", closeCleansUp),
	}
}

// open opens one of the site's pages in the check's session.
func (t *T) open(page string) map[string]any {
	r := t.Must("page.open", map[string]any{"url": t.run.site.url + "/" + page})
	if want := t.run.site.url + "/" + page; text(r, "url") != want {
		t.Errorf("page.open gives the url %q, not %q", text(r, "url"), want)
	}
	return r
}

// snapshot reads the page.
func (t *T) snapshot() map[string]any { return t.Must("page.snapshot", nil) }

// ref finds the ref of the one actionable element with a role and name in a fresh snapshot.
func (t *T) ref(role, name string) string {
	for _, e := range objects(t.snapshot()["elements"]) {
		if text(e, "role") == role && text(e, "name") == name && text(e, "element_ref") != "" {
			return text(e, "element_ref")
		}
	}
	t.Fatalf("the snapshot lists no %s %q with an element_ref", role, name)
	return ""
}

// shows checks that the page shows some words, now or in a moment.
func (t *T) shows(words string) {
	r := t.Must("page.wait", map[string]any{"text_present": words})
	if r["satisfied"] != true {
		t.Errorf("the page does not come to show %q", words)
	}
}

func ensureTwice(t *T) {
	client := t.run.client()
	ask := func() map[string]any {
		params := map[string]any{"client_session_id": client, "isolation": "per_client_session"}
		if t.run.opts.Provider != "" {
			params["provider_id"] = t.run.opts.Provider
		}
		return t.Must("session.ensure", params)
	}
	first := ask()
	t.sessions = append(t.sessions, text(first, "session_id"))
	again := ask()
	switch {
	case text(first, "session_id") == "":
		t.Errorf("session_id is empty")
	case text(again, "session_id") != text(first, "session_id"):
		t.Errorf("asked again for the same client_session_id it gives another session")
		t.sessions = append(t.sessions, text(again, "session_id"))
	case first["created"] != true || again["created"] != false:
		t.Errorf("created is %v at first and %v when asked again, not true and false", first["created"], again["created"])
	}
	if text(first, "default_page_id") == "" {
		t.Errorf("default_page_id is empty")
	}
	if text(first, "browser_family") == "" {
		t.Errorf("browser_family is empty")
	}
}

func scenarioSnapshot(t *T) {
	t.open("form.html")
	s := t.snapshot()
	m := match{vars: t.vars}
	err := m.value(map[string]any{
		"text": "~Order form", "snapshot_id": "$any", "title": "Order form",
		"snapshot": map[string]any{"format": "jcode.page_snapshot.v1", "root": map[string]any{"role": "document"}},
		"elements": []any{map[string]any{"role": "button", "name": "Place order", "element_ref": "$any", "actionable": true}},
	}, any(s), "page.snapshot")
	if err != nil {
		t.Errorf("%v", err)
	}
}

func scenarioClick(t *T) {
	t.open("form.html")
	r := t.Must("page.click", map[string]any{"element_ref": t.ref("button", "Count")})
	if r["clicked"] != true {
		t.Errorf("clicked is %v", r["clicked"])
	}
	t.shows("Counted 1")
}

func scenarioType(t *T) {
	t.open("form.html")
	r := t.Must("page.type", map[string]any{"element_ref": t.ref("textbox", "Name"), "text": "Ada"})
	if r["typed"] != true || text(r, "value") != "Ada" {
		t.Errorf("typed is %v and value %q, not true and \"Ada\"", r["typed"], text(r, "value"))
	}
	t.shows("Hello Ada")
}

func scenarioWait(t *T) {
	t.open("form.html")
	t.Must("page.click", map[string]any{"selector": "#later"})
	r := t.Must("page.wait", map[string]any{"text_present": "It came later"})
	if r["satisfied"] != true || text(r, "matched_condition") != "text_present" {
		t.Errorf("satisfied is %v and matched_condition %q", r["satisfied"], text(r, "matched_condition"))
	}
}

func closeCleansUp(t *T) {
	id := t.Ensure(nil)
	t.sessions = nil
	r := t.Must("session.close", map[string]any{"session_id": id})
	if r["closed"] != true {
		t.Errorf("closed is %v", r["closed"])
	}
	if d := text(r, "disposition"); d != "closed" && d != "detached" {
		t.Errorf("disposition is %q, neither closed nor detached", d)
	}
	if a := t.Call("page.snapshot", map[string]any{"session_id": id}); !says(a, "session_not_found") {
		t.Errorf("a call in the closed session must answer session_not_found, and it answers %s", a.said())
	}
}

// picture takes a screenshot, decodes it and gives its size in pixels.
func (t *T) picture(params map[string]any) (width, height int) {
	all := map[string]any{"inline": true}
	for k, v := range params {
		all[k] = v
	}
	r := t.Must("page.screenshot", all)
	data, err := base64.StdEncoding.DecodeString(text(r, "image"))
	if err != nil || len(data) == 0 {
		t.Fatalf("image holds no base64 of a picture: %v", err)
	}
	decode := png.Decode
	if text(r, "media_type") == "image/jpeg" {
		decode = jpeg.Decode
	} else if text(r, "media_type") != "image/png" {
		t.Errorf("media_type is %q, neither image/png nor image/jpeg", text(r, "media_type"))
	}
	img, err := decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("the picture cannot be decoded: %v", err)
	}
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	if float64(w) != r["width"] || float64(h) != r["height"] {
		t.Errorf("the picture is %d by %d, and the answer says %v by %v", w, h, r["width"], r["height"])
	}
	return w, h
}
