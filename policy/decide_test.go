package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

func load(t testing.TB, src string) *Policy {
	t.Helper()
	c, err := LoadWith("c.hcl", []byte(src), known)
	if err != nil {
		t.Fatal(err)
	}
	return New(c)
}

func url(t testing.TB, text string) []URL {
	t.Helper()
	u, err := ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return []URL{u}
}

// A rule that reads provider.* keeps out the providers, and of one with several browsers the families, that it holds for;
// where the session's provider is the only one, that denies the call.
func TestRulesAboutProviders(t *testing.T) {
	p := load(t, `
rule "no chromium" {
  when   = provider.family == "chromium"
  effect = "deny"
  reason = "it is not trusted"
}
rule "pdf" {
  when    = provider.plugin == "bidi"
  require = ["pdf"]
}`)
	all := []Candidate{
		{ID: "a", Plugin: "cdp", Families: []string{"chromium"}},
		{ID: "b", Plugin: "bidi", Families: []string{"firefox", "chromium"}},
		{ID: "c", Plugin: "bidi", Families: []string{"firefox"}, Features: []string{"pdf"}},
	}
	d := p.Decide(Facts{Method: "session.ensure", Providers: all})
	if d.Denied != nil || d.Excluded("a", "chromium") == nil || d.Excluded("b", "chromium") == nil || d.Excluded("b", "firefox") != nil || d.Exclude["b"] != nil {
		t.Errorf("it says %+v", d)
	}
	if x := d.Excluded("a", "chromium"); x.Rule != "no chromium" || x.Where != "c.hcl:2" || !strings.Contains(x.Message, "not trusted") {
		t.Errorf("the reason is %+v", x)
	}
	kept, rejected := p.Order(d, all)
	if len(kept) != 1 || kept[0].ID != "c" || len(rejected) != 2 || rejected[1].Message != "it lacks the feature pdf" {
		t.Errorf("kept %v, rejected %v", kept, rejected)
	}
	for i, denied := range []bool{true, true, false} {
		if got := p.Decide(Facts{Method: "page.click", Providers: all[i : i+1]}); got.Denied != nil != denied {
			t.Errorf("a click with %s: %+v", all[i].ID, got.Denied)
		}
	}
}

// The first reason is told, what is excluded and required adds up, and the first preference counts.
func TestRulesInOrder(t *testing.T) {
	p := load(t, `
rule "a" { 
  when = client.name == "x"
  prefer = ["bidi"]
  exclude = ["cdp"]
}
rule "b" { 
  prefer = ["cdp"]
  exclude = ["firefox"]
  require = ["pdf"]
}
rule "c" {
  when = url.host == "bad.example"
  effect = "deny"
  reason = "first"
}
rule "d" {
  when = domain(url.host, "bad.example")
  effect = "deny"
  reason = "second"
}`)
	d := p.Decide(Facts{Method: "session.ensure", Client: Client{Name: "x"}})
	if !slices.Equal(d.Prefer, []string{"bidi"}) || d.PreferBy.Name != "a" || d.Exclude["cdp"].Rule != "a" || d.Exclude["firefox"].Rule != "b" || !slices.Equal(d.Need, []string{"pdf"}) {
		t.Errorf("it says %+v", d)
	}
	if d := p.Decide(Facts{Method: "session.ensure"}); !slices.Equal(d.Prefer, []string{"cdp"}) || d.Exclude["cdp"] != nil {
		t.Errorf("without the first rule it says %+v", d)
	}
	for host, reason := range map[string]string{"bad.example": "first", "x.bad.example": "second", "good.example": ""} {
		got := p.Decide(Facts{Method: "page.open", URLs: url(t, "https://"+host+"/")})
		if (got.Denied == nil) != (reason == "") || (reason != "" && !strings.HasSuffix(got.Denied.Message, reason)) {
			t.Errorf("%s: %+v", host, got.Denied)
		}
	}
}

// Every variable and function of the table has a value, of the type that the table says.
func TestVariables(t *testing.T) {
	facts := Facts{
		Method: "page.open", ReadOnly: true, URLs: url(t, "https://a.b.example.co.uk/x/y?q"), Custom: "", Client: Client{"ann", []string{"team:a", "admin"}},
		Session:   Session{"s", "Firefox", "shared", "prefer", true, map[string]any{"n": 3.0, "b": true, "x": nil, "deep": map[string]any{}}},
		Providers: []Candidate{{ID: "cdp", Plugin: "cdp", Families: []string{"chromium"}, Version: "1.2", Tier: "certified", Availability: "degraded", Features: []string{"pdf"}, Latency: 40, Sessions: 2}},
	}
	for _, when := range []string{
		`method.name == "page.open" && method.group == "page" && method.read_only && method.custom == ""`,
		`url.given && url.scheme == "https" && url.host == "a.b.example.co.uk" && url.port == 443 && url.path == "/x/y" && url.domain == "example.co.uk"`,
		`client.name == "ann" && contains(client.labels, "admin") && !contains(client.labels, "adm") && length(client.labels) == 2`,
		`session.client_session_id == "s" && session.browser_preference == "firefox" && session.isolation == "shared" && session.attach == "prefer" && session.persist`,
		`session.metadata.n == "3" && session.metadata["b"] == "true" && session.metadata.x == "" && session.metadata.nope == "" && session.metadata.deep == ""`,
		`provider.id == "cdp" && provider.plugin == "cdp" && provider.family == "chromium" && provider.version == "1.2" && provider.tier == "certified"`,
		`provider.availability == "degraded" && contains(provider.features, "pdf") && provider.latency == 40 && provider.sessions >= 2`,
		`startswith("abc", "ab") && endswith("abc", "bc") && !startswith("abc", "b") && matches("abc", "^a.c$") && glob("a/b", "a*b") && !glob("ab", "a?b")`,
		`cidr("10.1.2.3", "10.0.0.0/8") && !cidr("x.example", "0.0.0.0/0") && domain("a.b", "b") && !domain("ab", "b") && intersects(client.labels, ["x", "admin"])`,
		`lower("A") == "a" && upper("a") == "A" && contains(split(",", "a,b"), "b") && replace("a-b", "-", "+") == "a+b"`,
	} {
		p := load(t, "rule \"r\" {\n when = "+when+"\n effect = \"deny\"\n}")
		if d := p.Decide(facts); d.Denied == nil {
			t.Errorf("it does not hold: %s", when)
		}
	}
}

// Conditions are computed without HCL's evaluator, which is slow; both come to the same.
func TestConditionsAreHCL(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	terms := []string{
		`client.name == "x"`, `contains(client.labels, "a")`, `!url.given`, `session.persist`, `provider.family != "firefox"`, `provider.availability == "degraded"`,
		`intersects(provider.features, ["pdf", client.name])`, `provider.sessions + 1 > 2 * 2`, `provider.plugin == "${client.name}y"`, `method.read_only`, `url.port <= 80`,
		`(session.persist ? url.host : client.name) == "x"`, `-provider.sessions < -1`, `length(client.labels) == 1`, `provider.sessions % 2 == 0`, `url.port / 4 >= 20 - 0`,
		`matches(url.host, "^b.d")`, `lower(upper(client.name)) == "x"`, `contains(split(".", url.host), "bad")`, `session.persist == method.read_only`, `cidr(url.host, "10.0.0.0/8")`,
	}
	pick := func() string { return terms[r.IntN(len(terms))] }
	seen := map[bool]int{}
	for range 600 {
		when := fmt.Sprintf("(%s && !(%s)) || %s", pick(), pick(), pick())
		p := load(t, "rule \"r\" {\n when = "+when+"\n effect = \"deny\"\n}")
		_, f := random(t, r)
		f.ReadOnly = r.IntN(2) == 0
		u := &noURL
		if r.IntN(2) == 0 {
			f.URLs = url(t, []string{"http://bad.example/", "https://10.1.1.1:8443/"}[r.IntN(2)])
			u = &f.URLs[0]
		}
		v := &view{facts: &f, url: u, candidate: &f.Providers[0], family: f.Providers[0].Families[0]}
		ctx := &hcl.EvalContext{Functions: functions, Variables: map[string]cty.Value{}}
		for _, o := range objects {
			attrs := map[string]cty.Value{}
			for _, x := range variables {
				if x.Object == o {
					attrs[x.Name] = x.get(v).cty(x.ctyType())
				}
			}
			ctx.Variables[o] = cty.ObjectVal(attrs)
		}
		c := p.config.Rules[0].when
		want, diags := c.expr.Value(ctx)
		if diags.HasErrors() {
			t.Fatalf("%s: %v", when, diags)
		}
		if got, err := c.run(v); err != nil || got.yes != want.True() {
			t.Fatalf("%s is %t and in HCL %t, %v", when, got.yes, want.True(), err)
		}
		seen[want.True()]++
	}
	if seen[true] < 50 || seen[false] < 50 {
		t.Errorf("it came to true and false %v times", seen)
	}
}

// random makes a policy and a table.
func random(t testing.TB, r *rand.Rand) (*Policy, Facts) {
	ids := []string{"cdp", "bidi", "webdriver", "firefox", "extension", "stranger"}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	terms := []string{
		`client.name == "x"`, `contains(client.labels, "a")`, `url.host == "bad.example"`, `session.persist`, `provider.family == "firefox"`,
		`provider.availability == "degraded"`, `contains(provider.features, "pdf")`, `provider.sessions > 2`, `provider.plugin == "cdp"`, `method.read_only`,
	}
	var b strings.Builder
	for i := range 1 + r.IntN(12) {
		what := pick(`effect = "deny"`, `effect = "deny"`, `prefer = ["`+pick(ids...)+`"]`, `exclude = ["`+pick(ids...)+`"]`, `require = ["pdf"]`)
		fmt.Fprintf(&b, "rule \"r%d\" {\n when = %s %s %s && client.name != \"never%d\"\n %s\n}\n", i, pick(terms...), pick("&&", "||"), pick(terms...), i, what)
	}
	return load(t, b.String()), facts(r)
}

// facts makes a table and a caller.
func facts(r *rand.Rand) Facts {
	ids := []string{"cdp", "bidi", "webdriver", "firefox", "extension", "stranger"}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	f := Facts{Method: "session.ensure", Client: Client{Name: pick("x", "y"), Labels: []string{pick("a", "b")}}, Session: Session{Persist: r.IntN(2) == 0}}
	for _, id := range ids[:1+r.IntN(len(ids))] {
		c := Candidate{ID: id, Plugin: id, Families: []string{pick("chromium", "firefox"), "webkit"}[:1+r.IntN(2)], Sessions: r.IntN(5), Availability: pick("ready", "degraded", "unavailable")}
		if r.IntN(2) == 0 {
			c.Features = []string{"pdf"}
		}
		f.Providers = append(f.Providers, c)
	}
	return f
}

// For random policies and facts the decision is the same each time and in whatever order the providers stand, and a
// provider that is rejected is never tried.
func TestDecideIsDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		p, f := random(t, r)
		names := func(f Facts) (string, Decision) {
			d := p.Decide(f)
			kept, rejected := p.Order(d, f.Providers)
			var out []string
			for _, k := range kept {
				out = append(out, k.ID)
				if d.Exclude[k.ID] != nil || k.Availability == "unavailable" {
					t.Fatalf("%s is tried and rejected", k.ID)
				}
			}
			if len(kept)+len(rejected) != len(f.Providers) {
				t.Fatal("a provider is neither kept nor rejected")
			}
			return fmt.Sprint(out, d.Denied), d
		}
		want, _ := names(f)
		other := f
		other.Providers = slices.Clone(f.Providers)
		r.Shuffle(len(other.Providers), func(i, j int) { other.Providers[i], other.Providers[j] = other.Providers[j], other.Providers[i] })
		if got, _ := names(other); got != want {
			t.Fatalf("%s, and in another order %s", want, got)
		}
		if got, _ := names(f); got != want {
			t.Fatalf("%s, and then %s", want, got)
		}
	}
}

// BenchmarkDecide is a decision among 10 providers under 30 rules, of which a third read provider.*.
func BenchmarkDecide(b *testing.B) {
	var src strings.Builder
	for i := range 30 {
		when := fmt.Sprintf(`method.name == "page.open" && domain(url.host, "h%d.example")`, i)
		switch i % 3 {
		case 1:
			when = fmt.Sprintf(`contains(client.labels, "team-%d") || session.metadata.team == "t%d"`, i, i)
		case 2:
			when = fmt.Sprintf(`provider.sessions > %d && contains(provider.features, "pdf") && provider.availability != "ready"`, i)
		}
		fmt.Fprintf(&src, "rule \"r%d\" {\n when = %s\n effect = \"deny\"\n}\n", i, when)
	}
	p := load(b, src.String())
	f := Facts{Method: "session.ensure", Client: Client{Name: "ci", Labels: []string{"a", "b", "c"}}, Session: Session{Metadata: map[string]any{"team": "x"}}}
	for i := range 10 {
		f.Providers = append(f.Providers, Candidate{ID: fmt.Sprint("p", i), Plugin: "cdp", Families: []string{"chromium"}, Features: []string{"a", "b", "pdf"}, Sessions: 40})
	}
	b.ReportAllocs()
	for b.Loop() {
		if d := p.Decide(f); d.Denied != nil {
			b.Fatal(d.Denied)
		}
	}
}

// A condition that is refused for contradicting itself holds for nothing indeed, and plain contradictions are found.
func TestContradictionsHoldForNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	terms := []string{
		`client.name == "x"`, `client.name == "y"`, `client.name != "x"`, `session.persist`, `!session.persist`, `session.persist == false`, `method.read_only != true`,
		`method.read_only`, `url.port > 80`, `url.port <= 80`, `443 == url.port`, `!(url.port >= 443)`, `"bad.example" == url.host`, `url.host != "bad.example"`,
		`contains(client.labels, "a")`, `!contains(client.labels, "a")`, `(url.port < 443 || client.name == "y")`, `(client.name == "x" || client.name == "y")`,
	}
	refused := 0
	for range 400 {
		when := terms[r.IntN(len(terms))]
		for range 1 + r.IntN(3) {
			when += " && " + terms[r.IntN(len(terms))]
		}
		rule := "rule \"r\" {\n when = %s\n effect = \"deny\"\n}"
		if _, err := LoadWith("c.hcl", []byte(fmt.Sprintf(rule, when)), known); err == nil {
			continue
		}
		refused++
		p := load(t, fmt.Sprintf(rule, "("+when+`) || client.name == "nobody"`))
		for range 60 {
			f := facts(r)
			f.ReadOnly = r.IntN(2) == 0
			f.URLs = url(t, []string{"http://bad.example/", "https://10.1.1.1/", "http://x:81/", "https://bad.example/"}[r.IntN(4)])
			if d := p.Decide(f); d.Denied != nil {
				t.Fatalf("it is refused and holds: %s", when)
			}
		}
	}
	if refused < 50 {
		t.Errorf("%d contradictions were found", refused)
	}
}

// Under a guard a custom method passes only where the passthrough block says so.
func TestPassthroughUnderAGuard(t *testing.T) {
	p := load(t, `
guard "inner" {
  when = client.name == "kept"
  deny = ["10.0.0.0/8"]
}
passthrough {
  allow = ["cdp.send"]
}
passthrough {
  allow   = ["cdp.events"]
  guarded = true
}`)
	for _, c := range []struct {
		client, custom string
		denied         bool
	}{{"kept", "cdp.send", true}, {"kept", "cdp.events", false}, {"free", "cdp.send", false}, {"kept", "cdp.other", true}} {
		d := p.Decide(Facts{Method: "provider.command", Custom: c.custom, Client: Client{Name: c.client}})
		if d.Denied != nil != c.denied {
			t.Errorf("%s of %s: %+v", c.custom, c.client, d.Denied)
		}
		if c.custom == "cdp.send" && c.denied && (d.Denied.Rule != "inner" || d.Denied.Where != "c.hcl:2") {
			t.Errorf("the refusal is %+v", d.Denied)
		}
	}
}
