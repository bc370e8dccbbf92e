package broker

import (
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// These tests guard the routing of session.ensure: which browsers of which providers fit, in which order they are tried,
// and that every other one is told why not.

type rowOption func(*Row)

// prov makes a row with one browser a family, ranked as the default config ranks its plugin.
func prov(id string, families string, opts ...rowOption) *Row {
	r := &Row{
		ID: id, Plugin: id, Status: &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_READY},
		Describe: &browserv1.DescribeResponse{Capabilities: &browserv1.Capabilities{
			CoreMethods: []string{"page.open", "page.click"}, Features: []string{"element_refs"},
		}},
	}
	for _, f := range strings.Fields(families) {
		family, label, ok := strings.Cut(f, ":")
		if !ok {
			label = map[string]string{chromium: "Chromium", firefox: "Firefox", webkit: "MiniBrowser"}[family]
		}
		r.Describe.BrowserFamilies = append(r.Describe.BrowserFamilies, family)
		r.Describe.Browsers = append(r.Describe.Browsers, &browserv1.Browser{Family: family, Label: strings.ReplaceAll(label, "_", " ")})
	}
	for _, o := range opts {
		o(r)
	}
	r.Rank = policy.Default().Rank(r.ID, r.Plugin)
	return r
}

func plugin(name string) rowOption { return func(r *Row) { r.Plugin = name } }
func only(word string) rowOption   { return func(r *Row) { r.Only = word } }
func disabled(r *Row)              { r.Disabled = true }
func shy(r *Row)                   { r.Describe = nil }
func noBrowsers(r *Row)            { r.Describe.Browsers = nil }

func features(f ...string) rowOption {
	return func(r *Row) { r.Describe.Capabilities.Features = append(r.Describe.Capabilities.Features, f...) }
}

func methods(m ...string) rowOption {
	return func(r *Row) { r.Describe.Capabilities.OptionalMethods = m }
}

func without(m ...string) rowOption {
	return func(r *Row) { r.Describe.Browsers[0].WithoutMethods = m }
}

func is(a browserv1.Availability, why ...string) rowOption {
	return func(r *Row) {
		r.Status.Availability = a
		for _, w := range why {
			r.Status.Diagnostics = append(r.Status.Diagnostics, &browserv1.Diagnostic{Level: browserv1.Level_LEVEL_ERROR, Message: w})
		}
	}
}

func tier(t browserv1.CertificationTier) rowOption {
	return func(r *Row) { r.Describe.CertificationTier = t }
}

const (
	ready       = browserv1.Availability_AVAILABILITY_READY
	degradedNow = browserv1.Availability_AVAILABILITY_DEGRADED
	down        = browserv1.Availability_AVAILABILITY_UNAVAILABLE
	unsaid      = browserv1.Availability_AVAILABILITY_UNSPECIFIED
)

// ask makes a request from words: browser=firefox provider=cdp attach=require persist need=F method=M prefer=F.
func ask(words string) *browserv1.EnsureSessionRequest {
	r := &browserv1.EnsureSessionRequest{ClientSessionId: "a"}
	for _, w := range strings.Fields(words) {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "browser":
			r.BrowserPreference = &v
		case "provider":
			r.ProviderId = &v
		case "attach":
			r.Attach = browserv1.Attach(browserv1.Attach_value["ATTACH_"+strings.ToUpper(v)]).Enum()
		case "persist":
			r.Persist = proto.Bool(true)
		case "need":
			r.RequireFeatures = append(r.RequireFeatures, v)
		case "method":
			r.RequireMethods = append(r.RequireMethods, v)
		case "prefer":
			r.PreferFeatures = append(r.PreferFeatures, v)
		default:
			panic(w)
		}
	}
	return r
}

// told writes a choice in one line: kept in order, then the rejected with their codes, then the pending.
func told(c Choice) string {
	var out []string
	for _, k := range c.Kept {
		w := k.Provider + "/" + k.word()
		if k.Substituted {
			w += "~"
		}
		for _, f := range k.Missing {
			w += "-" + f
		}
		out = append(out, w)
	}
	for _, k := range c.Rejected {
		codes := make([]string, len(k.Reasons))
		for i, r := range k.Reasons {
			codes[i] = r.Code
			if r.Message == "" {
				codes[i] += "(no reason)"
			}
		}
		out = append(out, "!"+k.Provider+":"+strings.Join(codes, "+"))
	}
	for _, r := range c.Pending {
		out = append(out, "?"+r.ID)
	}
	return strings.Join(out, " ")
}

func TestPick(t *testing.T) {
	ext := features("extension_required", "attach_existing_browser")
	tests := []struct {
		name string
		have []*Row
		ask  string
		d    policy.Decision
		want string
	}{
		{name: "nothing is installed", want: ""},
		{
			name: "the default order, whatever order they were found in",
			have: []*Row{prov("extension", "chromium"), prov("zeta", "chromium"), prov("firefox", "firefox"), prov("webdriver", "chromium"), prov("alpha", "chromium"), prov("bidi", "firefox"), prov("cdp", "chromium")},
			want: "cdp/chromium bidi/firefox webdriver/chromium firefox/firefox extension/chromium alpha/chromium zeta/chromium",
		},
		{name: "equal ones are told apart by name", have: []*Row{prov("b", "chromium"), prov("a", "chromium")}, want: "a/chromium b/chromium"},
		{name: "an instance has the place of its plugin", have: []*Row{prov("work", "chromium", plugin("cdp")), prov("bidi", "firefox")}, want: "work/chromium bidi/firefox"},
		{name: "ready before degraded", have: []*Row{prov("a", "chromium", is(degradedNow)), prov("b", "chromium")}, want: "b/chromium a/chromium"},
		{name: "but the default order comes before that", have: []*Row{prov("cdp", "chromium", is(degradedNow)), prov("webdriver", "chromium")}, want: "cdp/chromium webdriver/chromium"},
		{name: "the better tier first", have: []*Row{prov("a", "chromium"), prov("b", "chromium", tier(browserv1.CertificationTier_CERTIFICATION_TIER_CERTIFIED))}, want: "b/chromium a/chromium"},
		{name: "ready counts more than the tier", have: []*Row{prov("a", "chromium"), prov("b", "chromium", is(degradedNow), tier(browserv1.CertificationTier_CERTIFICATION_TIER_CERTIFIED))}, want: "a/chromium b/chromium"},
		{name: "one that has not said how it is may be ready", have: []*Row{prov("cdp", "chromium", is(unsaid))}, want: "cdp/chromium"},
		{name: "an unavailable one is left out", have: []*Row{prov("cdp", "chromium", is(down, "no Chromium was found")), prov("bidi", "firefox")}, want: "bidi/firefox !cdp:unavailable"},
		{name: "bidi offers Firefox first", have: []*Row{prov("bidi", "chromium firefox")}, want: "bidi/firefox bidi/chromium"},
		{name: "webdriver offers first what the others lack", have: []*Row{prov("webdriver", "chromium firefox webkit")}, want: "webdriver/webkit webdriver/firefox webdriver/chromium"},
		{name: "an instance of bidi too", have: []*Row{prov("fox", "chromium firefox", plugin("bidi"))}, want: "fox/firefox fox/chromium"},
		{name: "auto is no preference", have: []*Row{prov("cdp", "chromium")}, ask: "browser=auto", want: "cdp/chromium"},
		{name: "a family", have: []*Row{prov("cdp", "chromium"), prov("bidi", "chromium firefox")}, ask: "browser=firefox", want: "bidi/firefox !cdp:browser !bidi:browser"},
		{name: "a family in another case", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox")}, ask: "browser=Firefox", want: "bidi/firefox !cdp:browser"},
		{name: "a label", have: []*Row{prov("cdp", "chromium chromium:Microsoft_Edge")}, ask: "browser=edge", want: "cdp/Microsoft Edge !cdp:browser"},
		{name: "a whole label", have: []*Row{prov("cdp", "chromium chromium:Microsoft_Edge")}, ask: "browser=MICROSOFT", want: "cdp/Microsoft Edge !cdp:browser"},
		{name: "chrome is any Chromium where there is none", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox")}, ask: "browser=chrome", want: "cdp/chromium~ !bidi:browser"},
		{name: "chrome is Chrome where there is one, though another provider comes first", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "chromium:Google_Chrome")}, ask: "browser=chrome", want: "webdriver/chromium !cdp:browser"},
		{name: "safari is WebKit", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "webkit chromium")}, ask: "browser=safari", want: "webdriver/webkit~ !cdp:browser !webdriver:browser"},
		{name: "edge is nothing else", have: []*Row{prov("cdp", "chromium")}, ask: "browser=edge", want: "!cdp:browser"},
		{name: "a provider by name", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox")}, ask: "provider=bidi", want: "bidi/firefox !cdp:provider"},
		{name: "a provider and a browser that it lacks", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox")}, ask: "provider=cdp browser=firefox", want: "!cdp:browser !bidi:provider"},
		{name: "the config keeps one out", have: []*Row{prov("cdp", "chromium", disabled), prov("bidi", "firefox")}, want: "bidi/firefox !cdp:disabled"},
		{name: "and by name too", have: []*Row{prov("cdp", "chromium", disabled)}, ask: "provider=cdp", want: "!cdp:disabled"},
		{name: "the config keeps one to a browser", have: []*Row{prov("bidi", "chromium firefox", only("chromium"))}, want: "bidi/chromium !bidi:browser"},
		{name: "bridges are for those who ask to attach", have: []*Row{prov("extension", "chromium", ext)}, want: "!extension:attach"},
		{name: "prefer is asking", have: []*Row{prov("extension", "chromium", ext)}, ask: "attach=prefer", want: "extension/chromium"},
		{name: "prefer keeps the others", have: []*Row{prov("cdp", "chromium"), prov("extension", "chromium", ext)}, ask: "attach=prefer", want: "cdp/chromium extension/chromium"},
		{name: "require leaves those that only launch", have: []*Row{prov("cdp", "chromium"), prov("extension", "chromium", ext)}, ask: "attach=require", want: "extension/chromium !cdp:attach"},
		{name: "require takes a launcher that can attach", have: []*Row{prov("cdp", "chromium", features("attach_existing_browser"))}, ask: "attach=require", want: "cdp/chromium"},
		{name: "naming a bridge is asking for what it does", have: []*Row{prov("extension", "chromium", ext)}, ask: "provider=extension", want: "extension/chromium"},
		{name: "unless attach is forbidden in words", have: []*Row{prov("extension", "chromium", ext)}, ask: "provider=extension attach=never", want: "!extension:attach"},
		{name: "a feature that is required", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "chromium", features("pdf"))}, ask: "need=pdf", want: "webdriver/chromium !cdp:feature"},
		{name: "two that are missing are told both", have: []*Row{prov("cdp", "chromium")}, ask: "need=pdf need=frames", want: "!cdp:feature+feature"},
		{name: "a feature of the browser counts", have: []*Row{prov("cdp", "chromium", func(r *Row) { r.Describe.Browsers[0].Features = []string{"pdf"} })}, ask: "need=pdf", want: "cdp/chromium"},
		{name: "persist needs profiles that persist", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", features("persistent_profile"))}, ask: "persist", want: "bidi/firefox !cdp:feature"},
		{name: "a method that is required", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "chromium", methods("page.drag"))}, ask: "method=page.drag", want: "webdriver/chromium !cdp:method"},
		{name: "a method that the browser lacks", have: []*Row{prov("cdp", "chromium", methods("page.drag"), without("page.drag"))}, ask: "method=page.drag", want: "!cdp:method"},
		{name: "the broker's own methods are always there", have: []*Row{prov("cdp", "chromium")}, ask: "method=session.list method=events.subscribe", want: "cdp/chromium"},
		{name: "a preferred feature comes before the default order", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "chromium", features("pdf"))}, ask: "prefer=pdf", want: "webdriver/chromium cdp/chromium-pdf"},
		{name: "a preferred feature that nobody has", have: []*Row{prov("cdp", "chromium")}, ask: "prefer=pdf", want: "cdp/chromium-pdf"},
		{name: "the rule's preference comes first", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox"), prov("webdriver", "chromium")}, d: policy.Decision{Prefer: []string{"webdriver", "bidi"}}, want: "webdriver/chromium bidi/firefox cdp/chromium"},
		{name: "the rule excludes", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox")}, d: policy.Decision{Exclude: map[string]*policy.Denial{"cdp": {Message: "not for crawlers"}}}, want: "bidi/firefox !cdp:policy"},
		{name: "the rule demands a feature", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", features("containment_proxy"))}, d: policy.Decision{Need: []string{"containment_proxy"}}, want: "bidi/firefox !cdp:feature"},
		{name: "all that is wrong is told", have: []*Row{prov("cdp", "chromium", is(down))}, ask: "browser=firefox need=pdf", want: "!cdp:browser+unavailable+feature"},
		{name: "a provider without browsers has its families", have: []*Row{prov("x", "firefox", noBrowsers)}, ask: "browser=firefox", want: "x/firefox"},
		{name: "a provider that says nothing of browsers", have: []*Row{prov("x", "")}, want: "x/auto"},
		{name: "and is not what one asks for by name", have: []*Row{prov("x", "")}, ask: "browser=firefox", want: "!x:browser"},
		{name: "one that never spoke and could win is asked first", have: []*Row{prov("cdp", "chromium", shy), prov("bidi", "firefox")}, want: "bidi/firefox ?cdp"},
		{name: "one that never spoke and cannot win is not", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", shy)}, want: "cdp/chromium"},
		{name: "one that never spoke is asked when nothing fits", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", shy)}, ask: "browser=firefox", want: "!cdp:browser ?bidi"},
		{name: "and when only a stand-in does", have: []*Row{prov("cdp", "chromium"), prov("webdriver", "chromium", shy)}, ask: "browser=chrome", want: "cdp/chromium~ ?webdriver"},
		{name: "and when a rule prefers it", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", shy)}, d: policy.Decision{Prefer: []string{"bidi"}}, want: "cdp/chromium ?bidi"},
		{name: "one that never spoke is not asked when another is named", have: []*Row{prov("cdp", "chromium"), prov("bidi", "firefox", shy)}, ask: "provider=cdp", want: "cdp/chromium !bidi:provider"},
		{name: "a binary that is missing is unavailable", have: []*Row{prov("cdp", "chromium", shy, is(down, "drover-provider-cdp is not there"))}, want: "!cdp:unavailable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := told(NewTable(tt.have).Pick(ask(tt.ask), tt.d))
			if got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The config's prefer comes before the default order and before preferred features.
func TestPickConfiguredOrder(t *testing.T) {
	config := policy.Default()
	config.Prefer = []string{"bidi"}
	rows := []*Row{prov("cdp", "chromium", features("pdf")), prov("bidi", "firefox")}
	for _, r := range rows {
		r.Rank, r.Preferred = config.Rank(r.ID, r.Plugin), r.ID == "bidi"
	}
	if got, want := told(NewTable(rows).Pick(ask("prefer=pdf"), policy.Decision{})), "bidi/firefox-pdf cdp/chromium"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// For random tables the pick depends on nothing but the table: the order the providers were found in does not matter, none
// is lost, and none is kept with a reason against it.
func TestPickIsDeterministic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	asks := []string{"", "browser=firefox", "browser=chrome", "attach=require", "need=pdf", "prefer=pdf", "persist"}
	for range 500 {
		var rows []*Row
		for _, id := range []string{"cdp", "bidi", "webdriver", "firefox", "extension", "a", "b"} {
			if random.IntN(3) == 0 {
				continue
			}
			opts := []rowOption{is([]browserv1.Availability{ready, degradedNow, down, unsaid}[random.IntN(4)])}
			if random.IntN(2) == 0 {
				opts = append(opts, features("pdf", "extension_required"))
			}
			if random.IntN(4) == 0 {
				opts = append(opts, shy)
			}
			r := prov(id, []string{"chromium", "firefox chromium", "webkit"}[random.IntN(3)])
			for _, o := range opts {
				if r.Describe != nil {
					o(r)
				}
			}
			rows = append(rows, r)
		}
		a := ask(asks[random.IntN(len(asks))])
		first := NewTable(rows).Pick(a, policy.Decision{})
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if x, y := told(first), told(NewTable(rows).Pick(a, policy.Decision{})); x != y {
			t.Fatalf("the order of discovery matters:\n%s\n%s", x, y)
		}
		seen := map[string]bool{}
		for _, k := range first.Kept {
			seen[k.Provider] = true
			if len(k.Reasons) > 0 {
				t.Fatalf("%s is kept and rejected", k.Provider)
			}
		}
		for _, k := range first.Rejected {
			seen[k.Provider] = true
			if len(k.Reasons) == 0 {
				t.Fatalf("%s is rejected without a reason", k.Provider)
			}
		}
		for _, r := range rows {
			if !seen[r.ID] && r.Describe != nil {
				t.Fatalf("%s is lost", r.ID)
			}
		}
	}
}
