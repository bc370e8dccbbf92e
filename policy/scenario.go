package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Test is a proof that stands beside the rules: given facts, what must come of them.
type Test struct {
	Name   string
	Facts  Facts
	Expect Expect
	Where  string
}

// Expect is what a test demands; what it leaves empty is not looked at.
type Expect struct {
	// Provider is who comes first.
	Provider string
	// Order is who comes in which order, all of them.
	Order []string
	// Rejected are providers that must not be tried.
	Rejected []string
	// Deny is whether the call must be refused.
	Deny *bool
	// Rule is the rule or guard that must refuse it.
	Rule string
	// Reason is the protocol's word for the refusal, or a part of its message.
	Reason string
}

type testSpec struct {
	Name      string         `hcl:"name,label"`
	At        hcl.Range      `hcl:",def_range"`
	NameAt    hcl.Range      `hcl:"name,label_range"`
	Method    string         `hcl:"method,optional"`
	MethodAt  hcl.Range      `hcl:"method,attr_value_range"`
	ReadOnly  bool           `hcl:"read_only,optional"`
	URL       string         `hcl:"url,optional"`
	URLAt     hcl.Range      `hcl:"url,attr_value_range"`
	Custom    string         `hcl:"custom,optional"`
	Client    []testClient   `hcl:"client,block"`
	Session   []testSession  `hcl:"session,block"`
	Providers []testProvider `hcl:"provider,block"`
	Expect    []expectSpec   `hcl:"expect,block"`
}

type testClient struct {
	At     hcl.Range `hcl:",def_range"`
	Name   string    `hcl:"name,optional"`
	Labels []string  `hcl:"labels,optional"`
}

type testSession struct {
	At         hcl.Range         `hcl:",def_range"`
	ID         string            `hcl:"client_session_id,optional"`
	Preference string            `hcl:"browser_preference,optional"`
	Isolation  string            `hcl:"isolation,optional"`
	Attach     string            `hcl:"attach,optional"`
	Persist    bool              `hcl:"persist,optional"`
	Metadata   map[string]string `hcl:"metadata,optional"`
}

type testProvider struct {
	ID           string    `hcl:"id,label"`
	At           hcl.Range `hcl:",def_range"`
	IDAt         hcl.Range `hcl:"id,label_range"`
	Plugin       string    `hcl:"plugin,optional"`
	Families     []string  `hcl:"families,optional"`
	Version      string    `hcl:"version,optional"`
	Tier         string    `hcl:"tier,optional"`
	TierAt       hcl.Range `hcl:"tier,attr_value_range"`
	Availability string    `hcl:"availability,optional"`
	AvailAt      hcl.Range `hcl:"availability,attr_value_range"`
	Features     []string  `hcl:"features,optional"`
	FeatAt       hcl.Range `hcl:"features,attr_value_range"`
	Latency      int64     `hcl:"latency,optional"`
	Sessions     int       `hcl:"sessions,optional"`
}

type expectSpec struct {
	At       hcl.Range `hcl:",def_range"`
	Provider string    `hcl:"provider,optional"`
	ProvAt   hcl.Range `hcl:"provider,attr_value_range"`
	Order    []string  `hcl:"order,optional"`
	OrderAt  hcl.Range `hcl:"order,attr_value_range"`
	Rejected []string  `hcl:"rejected,optional"`
	RejectAt hcl.Range `hcl:"rejected,attr_value_range"`
	Deny     *bool     `hcl:"deny,optional"`
	Rule     string    `hcl:"rule,optional"`
	RuleAt   hcl.Range `hcl:"rule,attr_value_range"`
	Reason   string    `hcl:"reason,optional"`
}

func (l *loader) test(s *testSpec) {
	t := &Test{Name: s.Name, Where: place(s.At), Facts: Facts{Method: or(s.Method, ensureMethod), ReadOnly: s.ReadOnly || slices.Contains(l.known.ReadOnly, s.Method), Custom: s.Custom}}
	l.named(s.Name, s.NameAt, "test")
	for _, o := range l.config.Tests {
		if o.Name == s.Name {
			l.wrong(s.NameAt, "Duplicate test", "There is a test %q at %s already.", s.Name, o.Where)
		}
	}
	if s.Custom != "" && s.Method == "" {
		t.Facts.Method = "provider.command"
	}
	if len(l.known.Methods) > 0 && s.Method != "" && !slices.Contains(l.known.Methods, s.Method) {
		l.wrong(s.MethodAt, "Unknown method", "The protocol has no method %q.%s", s.Method, didYouMean(s.Method, l.known.Methods))
	}
	if s.URL != "" {
		u, err := ParseURL(s.URL)
		if err != nil {
			l.wrong(s.URLAt, "Not a URL", "%q is not an absolute URL such as https://example.com/.", s.URL)
		}
		t.Facts.URLs = []URL{u}
	}
	if c, ok := once(l, "client", s.Client, func(b testClient) hcl.Range { return b.At }); ok {
		t.Facts.Client = Client{Name: c.Name, Labels: c.Labels}
	}
	if b, ok := once(l, "session", s.Session, func(b testSession) hcl.Range { return b.At }); ok {
		t.Facts.Session = Session{ClientSessionID: b.ID, BrowserPreference: b.Preference, Isolation: b.Isolation, Attach: b.Attach, Persist: b.Persist, Metadata: map[string]any{}}
		for k, v := range b.Metadata {
			t.Facts.Session.Metadata[k] = v
		}
	}
	t.Facts.Providers = l.candidates(s)
	b, ok := once(l, "expect", s.Expect, func(b expectSpec) hcl.Range { return b.At })
	if !ok {
		l.wrong(s.At, "Test without expectation", "The test %q expects nothing: give it an expect block.", s.Name)
	}
	t.Expect = Expect{b.Provider, b.Order, b.Rejected, b.Deny, b.Rule, b.Reason}
	l.expect(t, &b)
	l.config.Tests = append(l.config.Tests, t)
}

// candidates are the providers that a test names, or those of the file's blocks.
func (l *loader) candidates(s *testSpec) []Candidate {
	var out []Candidate
	for i, p := range s.Providers {
		if slices.ContainsFunc(s.Providers[:i], func(o testProvider) bool { return o.ID == p.ID }) {
			l.wrong(p.IDAt, "Duplicate provider", "The test has a provider %q already.", p.ID)
		}
		if !slices.Contains(l.providerIDs(), p.ID) {
			l.wrong(p.IDAt, "Unknown provider", "No provider block and no plugin gives %q.%s", p.ID, didYouMean(p.ID, l.providerIDs()))
		}
		if p.Tier != "" && !slices.Contains(tierWords, p.Tier) {
			l.wrong(p.TierAt, "Unknown word", "tier is never %q.%s", p.Tier, suggest(p.Tier, tierWords))
		}
		if words := []string{"ready", "degraded", "unavailable"}; p.Availability != "" && !slices.Contains(words, p.Availability) {
			l.wrong(p.AvailAt, "Unknown word", "availability is never %q.%s", p.Availability, suggest(p.Availability, words))
		}
		if p.Features != nil {
			l.features(p.Features, p.FeatAt)
		}
		c := Candidate{ID: p.ID, Plugin: or(p.Plugin, p.ID), Families: p.Families, Version: p.Version, Tier: p.Tier, Availability: p.Availability, Features: p.Features, Latency: p.Latency, Sessions: p.Sessions}
		if b := l.config.Provider(p.ID); b != nil {
			c.Plugin = b.Plugin
		}
		out = append(out, c)
	}
	if len(out) > 0 || len(s.Method) > 0 && s.Method != ensureMethod {
		return out
	}
	for _, p := range l.config.Providers {
		c := Candidate{ID: p.ID, Plugin: p.Plugin}
		if f := Family(p.Kind()); f != "" {
			c.Families = []string{f}
		}
		out = append(out, c)
	}
	return out
}

// expect checks that what a test expects can be.
func (l *loader) expect(t *Test, b *expectSpec) {
	names := make([]string, len(t.Facts.Providers))
	for i, c := range t.Facts.Providers {
		names[i] = c.ID
	}
	for _, e := range []struct {
		ids []string
		at  hcl.Range
	}{{[]string{b.Provider}, b.ProvAt}, {b.Order, b.OrderAt}, {b.Rejected, b.RejectAt}} {
		for _, id := range e.ids {
			if id != "" && !slices.Contains(names, id) {
				l.wrong(e.at, "Unknown provider", "The test has no provider %q.%s", id, suggest(id, names))
			}
		}
	}
	if b.Rule == "" {
		return
	}
	var rules []string
	for _, r := range l.config.Rules {
		rules = append(rules, r.Name)
	}
	for _, g := range l.config.Guards {
		rules = append(rules, g.Name)
	}
	if !slices.Contains(rules, b.Rule) {
		l.wrong(b.RuleAt, "Unknown rule", "There is no rule or guard %q.%s", b.Rule, suggest(b.Rule, rules))
	}
}

// Result is how a test went.
type Result struct {
	Test *Test
	// Failures say what differs; none when it passes.
	Failures []string
	// Reached are the places of the rules and guards that held.
	Reached []string
}

// RunTests runs every test of the config.
func (p *Policy) RunTests() []Result {
	var out []Result
	for _, t := range p.config.Tests {
		out = append(out, p.run(t))
	}
	return out
}

func (p *Policy) run(t *Test) Result {
	at := func(d *Denial) string {
		if d.Where == "" {
			return ""
		}
		return " (" + d.Where + ")"
	}
	d := p.Decide(t.Facts)
	r := Result{Test: t}
	for _, m := range d.Matched {
		r.Reached = append(r.Reached, m.Where)
	}
	if d.Reach != nil {
		for _, g := range d.Reach.guards {
			r.Reached = append(r.Reached, g.Where)
		}
	}
	if d.Denied != nil && d.Denied.Rule != "" {
		r.Reached = append(r.Reached, d.Denied.Where)
	}
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	e := t.Expect
	routed := e.Provider != "" || e.Order != nil || len(e.Rejected) > 0
	deny := e.Deny
	if yes := e.Rule != "" || e.Reason != ""; deny == nil && (yes || routed) && d.Denied != nil != yes {
		deny = &yes
	}
	switch {
	case deny != nil && *deny && d.Denied == nil:
		fail("it is allowed")
	case deny != nil && !*deny && d.Denied != nil:
		fail("it is denied: %s%s", d.Denied.Message, at(d.Denied))
	}
	if d.Denied != nil {
		if e.Rule != "" && d.Denied.Rule != e.Rule {
			fail("not %q denies it: %s%s", e.Rule, d.Denied.Message, at(d.Denied))
		}
		if e.Reason != "" && d.Denied.Reason != e.Reason && !strings.Contains(d.Denied.Message, e.Reason) {
			fail("the reason is %s: %s", d.Denied.Reason, d.Denied.Message)
		}
		return r
	}
	if !routed {
		return r
	}
	kept, _ := p.Order(d, t.Facts.Providers)
	order := make([]string, len(kept))
	for i, c := range kept {
		order[i] = c.ID
	}
	if e.Provider != "" && first(order) != e.Provider {
		fail("the provider is %s", or(first(order), "none"))
	}
	if e.Order != nil && !slices.Equal(order, e.Order) {
		fail("the order is %s", or(strings.Join(order, ", "), "empty"))
	}
	for _, id := range e.Rejected {
		if slices.Contains(order, id) {
			fail("%s is not rejected", id)
		}
	}
	return r
}

// Unreached lists the rules and guards that no test reached, each as NAME at FILE:LINE.
func (p *Policy) Unreached(results []Result) []string {
	reached := map[string]bool{}
	for _, r := range results {
		for _, at := range r.Reached {
			reached[at] = true
		}
	}
	var out []string
	for _, g := range p.config.Guards {
		if !reached[g.Where] {
			out = append(out, fmt.Sprintf("guard %q at %s", g.Name, g.Where))
		}
	}
	for _, r := range p.config.Rules {
		if !reached[r.Where] {
			out = append(out, fmt.Sprintf("rule %q at %s", r.Name, r.Where))
		}
	}
	return out
}
