package conformance

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// describeChecks hold what a provider says of itself against the protocol, and against what it does.
func describeChecks() []check {
	c := func(name, guards string, do func(*T)) check {
		return check{id: "provider.describe/" + name, method: "provider.describe", guards: guards, do: do}
	}
	return []check{
		c("says-what-it-is", "A description has an id, a version, the protocol's version and the families that it drives.", describeFields),
		c("known-words", "What it lists are methods and features of the protocol, each once and in the right list.", describeWords),
		c("core", "A provider that can be certified lists every core method.", describeCore),
		c("truth-listed", "What it lists it has: no listed method answers unsupported_method.", truthListed),
		c("truth-unlisted", "What it does not list it does not have: every other method answers unsupported_method.", truthUnlisted),
		c("steady", "Asked again it says the same.", describeSteady),
		c("custom", "Custom methods are namespaced, described, and no methods of the protocol.", describeCustom),
		c("features-fit", "A feature that needs a method comes with it.", featuresFit),
	}
}

func describeFields(t *T) {
	d := t.run.describe
	if d.GetProviderId() == "" {
		t.Errorf("provider_id is empty")
	}
	if d.GetProviderVersion() == "" {
		t.Errorf("provider_version is empty")
	}
	if d.GetProtocolVersion() != catalog.Version && !strings.HasPrefix(d.GetProtocolVersion(), catalog.Version+".") {
		t.Errorf("protocol_version is %q, not %q", d.GetProtocolVersion(), catalog.Version)
	}
	if len(d.GetBrowserFamilies()) == 0 {
		t.Errorf("browser_families is empty")
	}
	families := []string{"chromium", "firefox", "webkit"}
	for _, f := range d.GetBrowserFamilies() {
		if !slices.Contains(families, f) {
			t.Errorf("browser_families has %q, which is none of %s", f, strings.Join(families, ", "))
		}
	}
	for _, b := range d.GetBrowsers() {
		if !slices.Contains(d.GetBrowserFamilies(), b.GetFamily()) {
			t.Errorf("it has a browser of the family %q, which browser_families does not list", b.GetFamily())
		}
	}
}

func describeWords(t *T) {
	caps := t.run.describe.GetCapabilities()
	seen := map[string]bool{}
	for core, list := range map[bool][]string{true: caps.GetCoreMethods(), false: caps.GetOptionalMethods()} {
		for _, name := range list {
			m, ok := catalog.Lookup(name)
			switch {
			case !ok:
				t.Errorf("it lists %s, which is no method of the protocol; a method of its own belongs into custom_methods", name)
			case seen[name]:
				t.Errorf("it lists %s twice", name)
			case m.Core() != core:
				t.Errorf("it lists %s in the wrong list", name)
			}
			seen[name] = true
		}
	}
	for _, f := range caps.GetFeatures() {
		if !catalog.IsFeature(f) {
			t.Errorf("it lists the feature %s, which the protocol does not have", f)
		}
	}
}

func describeCore(t *T) {
	var missing []string
	for _, m := range catalog.All() {
		if m.Core() && m.Routed() && !t.Lists(m.Name) && !unlisted[m.Name] {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("it lacks %s", strings.Join(missing, ", "))
	}
}

// nobody is a session that no provider has.
const nobody = "conform-no-such-session"

// probe calls a method in a way that does nothing where it exists.
func (t *T) probe(m *catalog.Method) Answer {
	req := m.NewRequest()
	if m.NeedsSession() {
		catalog.SetSessionID(req, nobody)
	}
	if t.run.opts.Provider != "" {
		catalog.SetProviderID(req, t.run.opts.Provider)
	}
	return t.run.ask(t.ctx, t, m, req)
}

func truthListed(t *T) {
	for _, m := range catalog.All() {
		if !t.Lists(m.Name) || !m.NeedsSession() {
			continue
		}
		if a := t.probe(m); a.Err != nil && a.Err.Code == fault.UnsupportedMethod {
			t.Errorf("it lists %s and answers unsupported_method", m.Name)
		}
	}
}

func truthUnlisted(t *T) {
	for _, m := range catalog.All() {
		if t.Lists(m.Name) || !m.Routed() || unlisted[m.Name] || !m.NeedsSession() {
			continue
		}
		if t.run.opts.Provider != "" && m.NeedsSession() {
			continue // a broker looks for the session first
		}
		if a := t.probe(m); a.Err == nil || a.Err.Code != fault.UnsupportedMethod {
			t.Errorf("it does not list %s and answers %s", m.Name, a.said())
		}
	}
}

func describeSteady(t *T) {
	a := t.Must("provider.describe", t.about())
	b := t.Must("provider.describe", t.about())
	if !same(a["capabilities"], b["capabilities"]) || !same(a["provider_version"], b["provider_version"]) {
		t.Errorf("its capabilities changed between two calls")
	}
}

func describeCustom(t *T) {
	for _, c := range t.run.describe.GetCapabilities().GetCustomMethods() {
		ns, word, ok := strings.Cut(c.GetName(), ".")
		if !ok || ns == "" || word == "" {
			t.Errorf("custom method %q has no namespace, as in cdp.send", c.GetName())
		}
		if _, ok := catalog.Lookup(c.GetName()); ok {
			t.Errorf("custom method %s is one of the protocol's", c.GetName())
		}
		if c.GetDescription() == "" {
			t.Errorf("custom method %s has no description", c.GetName())
		}
	}
}

// featureMethods are the features that are of no use without a method.
var featureMethods = [][2]string{
	{"js_eval", "page.eval"},
	{"network_observe", "network.list"},
	{"console_observe", "console.list"},
	{"file_upload", "upload.set_files"},
	{"download_observe", "download.list"},
	{"dialogs", "dialog.respond"},
	{"element_refs", "page.snapshot"},
	{"full_page_screenshot", "page.screenshot"},
}

func featuresFit(t *T) {
	for _, fm := range featureMethods {
		if t.Has(fm[0]) && !t.Lists(fm[1]) {
			t.Errorf("it has the feature %s and lacks %s", fm[0], fm[1])
		}
	}
	if t.Has("input_trusted") && t.Has("synthetic_input") {
		t.Errorf("its input cannot be both trusted and synthetic")
	}
}

// about gives the params of a method about the provider itself.
func (t *T) about() map[string]any {
	if t.run.opts.Provider == "" {
		return map[string]any{}
	}
	return map[string]any{"provider_id": t.run.opts.Provider}
}

// statusChecks hold its state against what it says.
func statusChecks() []check {
	return []check{
		{id: "provider.status/coherent", method: "provider.status", do: statusCoherent, guards: "What provider.status says fits together: nothing ready is missing something, nothing unavailable is without a reason."},
		{id: "provider.setup_guide/steps", method: "provider.setup_guide", do: setupSteps, guards: "The steps of a setup each say what to do."},
		{id: "provider.verify/drives", method: "provider.verify", do: verifyDrives, guards: "provider.verify really tries, and every check of it has an id, a status and words."},
	}
}

func statusCoherent(t *T) {
	s := t.Must("provider.status", t.about())
	availability, setup := text(s, "availability"), text(s, "setup_state")
	manual, _ := s["requires_manual_setup"].(bool)
	steps, _ := s["manual_steps"].([]any)
	switch availability {
	case "ready":
		if setup == "required" || setup == "broken" {
			t.Errorf("it is ready, and its setup_state is %s", setup)
		}
		if manual {
			t.Errorf("it is ready, and requires_manual_setup is true")
		}
	case "degraded":
	case "unavailable":
		if len(steps) == 0 && empty(s["diagnostics"]) {
			t.Errorf("it is unavailable, and neither manual_steps nor diagnostics say why")
		}
		t.Errorf("it is unavailable here: %s", show(s["diagnostics"]))
	default:
		t.Errorf("availability is %q, none of ready, degraded, unavailable", availability)
	}
	if manual && len(steps) == 0 {
		t.Errorf("a person has to do something, and manual_steps is empty")
	}
}

func setupSteps(t *T) {
	r := t.Must("provider.setup_guide", t.about())
	for i, s := range objects(r["steps"]) {
		if text(s, "title") == "" {
			t.Errorf("step %d has no title", i+1)
		}
	}
}

func verifyDrives(t *T) {
	params := t.about()
	a := t.Call("provider.verify", params)
	if a.Err != nil {
		t.Fatalf("provider.verify: %v", a.Err)
	}
	list := objects(a.Result["checks"])
	if len(list) == 0 {
		t.Fatalf("it made no check")
	}
	for _, c := range list {
		if text(c, "id") == "" || text(c, "message") == "" {
			t.Errorf("a check has no id or no message: %s", show(c))
		}
		switch text(c, "status") {
		case "pass", "warn":
		case "fail":
			t.Errorf("%s failed: %s", text(c, "id"), text(c, "message"))
		default:
			t.Errorf("%s has the status %q", text(c, "id"), text(c, "status"))
		}
	}
}
