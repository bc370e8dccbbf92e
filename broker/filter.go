package broker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// Families of browsers, as the protocol names them.
const (
	chromium = "chromium"
	firefox  = "firefox"
	webkit   = "webkit"
)

var families = []string{chromium, firefox, webkit}

// products are the labels that a caller may ask for whether or not a provider has them, each with its family; the second
// value says that any browser of the family may stand in for it.
var products = map[string]struct {
	family     string
	substitute bool
}{
	"chrome": {chromium, true}, "safari": {webkit, true},
	"edge": {chromium, false}, "brave": {chromium, false}, "opera": {chromium, false}, "vivaldi": {chromium, false},
}

// wanted gives a browser_preference in lower case; empty for auto.
func wanted(preference string) string {
	w := strings.ToLower(strings.TrimSpace(preference))
	if w == "auto" {
		return ""
	}
	return w
}

// ruledOut tests what does not depend on the browser, nor on the provider's own word.
func (r *Row) ruledOut(ask *browserv1.EnsureSessionRequest, d policy.Decision) (Reason, bool) {
	switch id := ask.GetProviderId(); {
	case id != "" && id != r.ID:
		return Reason{Code: "provider", Message: "the request names " + id}, true
	case r.Disabled:
		return Reason{Code: "disabled", Message: "the config keeps it out"}, true
	}
	if x := d.Exclude[r.ID]; x != nil {
		return Reason{Code: "policy", Message: x.Message, Rule: x.Rule, Where: x.Where}, true
	}
	return Reason{}, false
}

// candidates gives the browsers of a provider, in the order that it offers them; one without a name when it does not say.
func (r *Row) candidates() []*Candidate {
	var out []*Candidate
	for _, b := range r.Describe.GetBrowsers() {
		out = append(out, &Candidate{Provider: r.ID, Family: b.GetFamily(), Label: b.GetLabel(), row: r, browser: b})
	}
	if len(out) == 0 {
		for _, f := range r.Describe.GetBrowserFamilies() {
			out = append(out, &Candidate{Provider: r.ID, Family: f, row: r})
		}
	}
	if len(out) == 0 {
		out = []*Candidate{{Provider: r.ID, row: r}}
	}
	slices.SortStableFunc(out, func(a, b *Candidate) int { return r.offer(a.Family) - r.offer(b.Family) })
	for i, k := range out {
		k.order = i
		k.alone = !slices.ContainsFunc(out, func(o *Candidate) bool { return o != k && o.Family == k.Family })
	}
	return out
}

// offer is how early a provider offers a family: bidi Firefox first, webdriver first what cdp and bidi do not have.
func (r *Row) offer(family string) int {
	var order []string
	switch r.Plugin {
	case "bidi":
		order = []string{firefox}
	case "webdriver":
		order = []string{webkit, firefox}
	}
	if i := slices.Index(order, family); i >= 0 {
		return i
	}
	return len(order)
}

// filter notes every reason why a candidate does not fit.
func (k *Candidate) filter(ask *browserv1.EnsureSessionRequest, want string, d policy.Decision) {
	if only := wanted(k.row.Only); only != "" && !k.is(only) {
		k.reject("browser", "the config keeps %s to %s", k.Provider, only)
	}
	if want != "" && !k.is(want) {
		if p, ok := products[want]; ok && p.substitute && k.Family == p.family {
			k.Substituted = true
		} else {
			k.reject("browser", "it is %s, not %s", k.title(), want)
		}
	}
	if x := d.Excluded(k.Provider, k.Family); x != nil {
		k.reject("policy", "%s", x.Message)
		k.Reasons[len(k.Reasons)-1].Rule, k.Reasons[len(k.Reasons)-1].Where = x.Rule, x.Where
	}
	k.filterAttach(ask)
	if k.row.Failure != "" {
		k.reject("unavailable", "%s", k.row.Failure)
	} else if k.row.Status.GetAvailability() == browserv1.Availability_AVAILABILITY_UNAVAILABLE {
		k.reject("unavailable", "%s", unavailable(k.row.Status))
	}
	if k.row.Describe == nil {
		return // what it lacks is not known
	}
	for _, f := range d.Need {
		if !k.hasFeature(f) {
			k.reject("feature", "it lacks the feature %s, which a rule requires", f)
			if r := d.NeedBy[f]; r != nil {
				k.Reasons[len(k.Reasons)-1].Rule, k.Reasons[len(k.Reasons)-1].Where = r.Name, r.Where
			}
		}
	}
	if d.Reach.Contained() && !k.hasFeature(policy.ContainmentProxy) && !k.hasFeature(policy.ContainmentHooks) {
		k.reject("containment", "it cannot keep a session inside a guard")
	}
	need := ask.GetRequireFeatures()
	if ask.GetPersist() {
		need = append(slices.Clone(need), "persistent_profile")
	}
	for _, f := range need {
		if !k.hasFeature(f) {
			k.reject("feature", "it lacks the feature %s", f)
		}
	}
	for _, name := range ask.GetRequireMethods() {
		if m, ok := catalog.Lookup(name); ok && m.Routed() && !k.hasMethod(name) {
			k.reject("method", "it lacks the method %s", name)
		}
	}
	for _, f := range ask.GetPreferFeatures() {
		if !k.hasFeature(f) {
			k.Missing = append(k.Missing, f)
		}
	}
}

// filterAttach keeps bridges, which can only attach to the person's own browser, away from those who did not ask for it,
// and the others from those who insist. Who names the provider and says nothing has asked for what it does.
func (k *Candidate) filterAttach(ask *browserv1.EnsureSessionRequest) {
	if k.row.Describe == nil {
		return
	}
	bridge, attaches := k.hasFeature("extension_required"), k.hasFeature("attach_existing_browser")
	switch ask.GetAttach() {
	case browserv1.Attach_ATTACH_REQUIRE:
		if !bridge && !attaches {
			k.reject("attach", "it cannot attach to a running browser")
		}
	case browserv1.Attach_ATTACH_PREFER:
	default:
		if bridge && (ask.Attach != nil || ask.GetProviderId() == "") {
			k.reject("attach", "it only attaches to a running browser; ask with attach prefer or require")
		}
	}
}

func (k *Candidate) reject(code, format string, args ...any) {
	k.Reasons = append(k.Reasons, Reason{Code: code, Message: fmt.Sprintf(format, args...)})
}

// is says whether the candidate is of a family or product; want is in lower case.
func (k *Candidate) is(want string) bool {
	if want == k.Family {
		return true
	}
	label := strings.ToLower(k.Label)
	return label == want || slices.Contains(strings.Fields(label), want)
}

func (k *Candidate) title() string {
	switch {
	case k.Label != "":
		return k.Label
	case k.Family != "":
		return k.Family
	}
	return "a browser it does not name"
}

func (k *Candidate) hasFeature(f string) bool {
	return slices.Contains(k.row.Describe.GetCapabilities().GetFeatures(), f) || slices.Contains(k.browser.GetFeatures(), f)
}

func (k *Candidate) hasMethod(name string) bool {
	c := k.row.Describe.GetCapabilities()
	has := slices.Contains(c.GetCoreMethods(), name) || slices.Contains(c.GetOptionalMethods(), name)
	return has && !slices.Contains(k.browser.GetWithoutMethods(), name)
}

// word is the browser_preference that makes the provider take this browser: its family, or its label where the provider
// has several of the family.
func (k *Candidate) word() string {
	switch {
	case k.Family == "":
		return "auto"
	case k.alone || k.Label == "":
		return k.Family
	}
	return k.Label
}

// unavailable says in a few words why a provider is.
func unavailable(s *browserv1.StatusResponse) string {
	for _, d := range s.GetDiagnostics() {
		if d.GetLevel() == browserv1.Level_LEVEL_ERROR {
			return d.GetMessage()
		}
	}
	for _, d := range s.GetDiagnostics() {
		return d.GetMessage()
	}
	if s.GetState() != "" {
		return "it is " + s.GetState()
	}
	return "it is unavailable"
}
