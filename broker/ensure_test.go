package broker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// The same name gives the same session, with the viewport that is asked for now; what the session cannot meet is refused,
// naming the field.
func TestEnsureAgain(t *testing.T) {
	f := cdp()
	u := build(t, "", f).user("ann")
	first := u.ensure("a")
	again := u.ensure("a", func(r *browserv1.EnsureSessionRequest) {
		r.Viewport = &browserv1.Size{Width: 800, Height: 600}
		r.BrowserPreference, r.ProviderId = proto.String("chrome"), nil
	}, func(r *browserv1.EnsureSessionRequest) { r.BrowserPreference = proto.String("chromium") })
	if again.GetSessionId() != first.GetSessionId() || again.GetCreated() || again.GetDefaultPageId() != "page-1" {
		t.Errorf("ensured again: %v", again)
	}
	down := f.Calls("session.ensure")[1].(*browserv1.EnsureSessionRequest)
	if down.GetViewport().GetWidth() != 800 || down.GetClientSessionId() != first.GetSessionId() {
		t.Errorf("the provider was asked for %v", down)
	}
	for field, ask := range map[string]*browserv1.EnsureSessionRequest{
		"browser_preference": {BrowserPreference: proto.String("firefox")},
		"isolation":          {Isolation: browserv1.Isolation_ISOLATION_SHARED.Enum()},
		"attach":             {Attach: browserv1.Attach_ATTACH_REQUIRE.Enum()},
		"persist":            {Persist: proto.Bool(true)},
		"require_features":   {RequireFeatures: []string{"pdf"}},
	} {
		ask.ClientSessionId = "a"
		if e := u.fails(ask, fault.InvalidRequest, "session_mismatch"); e.Details["field"] != field {
			t.Errorf("the mismatch of %s names %v", field, e.Details["field"])
		}
	}
	for _, ask := range []*browserv1.EnsureSessionRequest{
		{Isolation: browserv1.Isolation_ISOLATION_PER_JCODE_SESSION.Enum()},
		{Attach: browserv1.Attach_ATTACH_NEVER.Enum()},
		{Persist: proto.Bool(false)},
		{RequireFeatures: []string{"element_refs"}},
		{ProviderId: proto.String("cdp")},
		{RequireMethods: []string{"page.open", "session.list"}},
	} {
		ask.ClientSessionId = "a"
		do[*browserv1.EnsureSessionResponse](u, ask)
	}
}

// A mismatch of provider_id is told as such even where the other provider is there.
func TestEnsureAgainWithAnotherProvider(t *testing.T) {
	u := build(t, "", cdp(), bidi()).user("ann")
	u.ensure("a")
	e := u.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a", ProviderId: proto.String("bidi")}, fault.InvalidRequest, "session_mismatch")
	if e.Details["field"] != "provider_id" {
		t.Errorf("it names %v", e.Details["field"])
	}
}

// Many who ask for one name at once get one session, of which one of them is told that it is new.
func TestEnsureAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		slow := func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			<-time.After(time.Second)
			return &browserv1.EnsureSessionResponse{SessionId: "one", DefaultPageId: "p", BrowserFamily: "chromium"}, nil
		}
		f.On("session.ensure", slow)
		u := build(t, "", f).user("ann")
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids, created := map[string]bool{}, 0
		for range 10 {
			wg.Go(func() {
				s := u.ensure("a")
				mu.Lock()
				defer mu.Unlock()
				ids[s.GetSessionId()] = true
				if s.GetCreated() {
					created++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || created != 1 {
			t.Errorf("%d sessions, %d of them new", len(ids), created)
		}
	})
}

// Those who waited for an attempt that failed are told its failure and do not try it all over, one after another; who asks
// for something else, or whose attempt was only given up, tries.
func TestEnsureAtOnceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp()
		f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
			<-time.After(time.Second)
			return nil, fault.New(fault.InternalError, "no")
		})
		u := build(t, "", f).user("ann")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				u.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.InternalError, "")
			})
		}
		wg.Wait()
		if n := len(f.Calls("session.ensure")); n != 1 {
			t.Errorf("it was tried %d times", n)
		}
		u.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.InternalError, "")
		if n := len(f.Calls("session.ensure")); n != 2 {
			t.Errorf("the next one did not try: %d", n)
		}
	})
}

// A provider that does not start, or makes no session, is left for the next that fits, and the answer says so.
func TestFailover(t *testing.T) {
	for name, breakIt := range map[string]func(*brokertest.Fake){
		"does not start": func(f *brokertest.Fake) { f.Fails = fault.New(fault.SetupRequired, "no Chromium was found") },
		"makes no session": func(f *brokertest.Fake) {
			f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
				return nil, fault.New(fault.BrowserNotRunning, "Chromium crashed")
			})
		},
		"dies of it every time": func(f *brokertest.Fake) {
			f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
				f.Kill()
				return nil, fault.New(fault.BrowserNotRunning, "gone").Reason("provider_exited")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := cdp()
			breakIt(broken)
			s := build(t, "", broken, bidi()).user("ann").ensure("a")
			if s.GetProviderId() != "bidi" || len(s.GetWarnings()) != 1 || s.GetWarnings()[0].GetCode() != "provider_failover" {
				t.Errorf("got %v", s)
			}
			if got := s.GetWarnings()[0].GetDetails().GetFields()["provider_id"].GetStringValue(); got != "cdp" {
				t.Errorf("the warning is about %q", got)
			}
		})
	}
}

// There is no failover where the request is what is wrong, where the provider was named, and where a profile is in use.
func TestNoFailover(t *testing.T) {
	answer := func(err error) *brokertest.Fake {
		return cdp().On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) { return nil, err })
	}
	build(t, "", answer(fault.New(fault.InvalidRequest, "viewport")), bidi()).user("ann").
		fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.InvalidRequest, "")
	build(t, "", answer(fault.New(fault.NotReady, "in use").Reason("in_use")), bidi()).user("ann").
		fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.NotReady, "in_use")
	e := build(t, "", answer(fault.New(fault.SetupRequired, "install it")), bidi()).user("ann").
		fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a", ProviderId: proto.String("cdp")}, fault.SetupRequired, "")
	if e.Details["provider_id"] != "cdp" {
		t.Errorf("the error is of %v", e.Details["provider_id"])
	}
}

// A process that ends while it makes the session is started once more.
func TestEnsureIsTriedOnceMore(t *testing.T) {
	f := cdp()
	f.On("session.ensure", func(context.Context, proto.Message) (proto.Message, error) {
		if f.Lives() == 1 {
			f.Kill()
			return nil, nil
		}
		return &browserv1.EnsureSessionResponse{SessionId: "x"}, nil
	})
	if s := build(t, "", f).user("ann").ensure("a"); !s.GetCreated() || len(s.GetWarnings()) != 0 {
		t.Errorf("got %v", s)
	}
}

// When every provider fails, the best one's error is told, with the others' beside it.
func TestAllFail(t *testing.T) {
	a, b := cdp(), bidi()
	a.Fails = fault.New(fault.SetupRequired, "install Chromium")
	b.Fails = fault.New(fault.InternalError, "broken")
	e := build(t, "", a, b).user("ann").fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.SetupRequired, "")
	tried, _ := e.Details["tried"].([]map[string]any)
	if len(tried) != 3 || e.Details["provider_id"] != "cdp" { // bidi has two browsers
		t.Errorf("tried %v, error of %v", tried, e.Details["provider_id"])
	}
}

// When nothing fits, every rejection is told, and what a person does to make the nearest provider fit.
func TestNoProvider(t *testing.T) {
	e := build(t, "").user("ann").fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.SetupRequired, "no_provider")
	if !strings.Contains(e.Message, "drover-provider-") {
		t.Errorf("it does not say what to do: %v", e)
	}
	f, b := cdp(), bidi()
	f.State = &browserv1.StatusResponse{
		Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE,
		Diagnostics: []*browserv1.Diagnostic{{
			Level: browserv1.Level_LEVEL_ERROR, Message: "no Chromium was found", ManualSteps: []string{"apt install chromium"},
		}},
	}
	e = build(t, "", f, b).user("ann").fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a", BrowserPreference: proto.String("webkit")}, fault.SetupRequired, "no_provider")
	if r, _ := e.Details["rejections"].([]map[string]any); len(r) != 3 {
		t.Errorf("the rejections are %v", r)
	}
	e = build(t, "", f, b).user("ann").fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a", BrowserPreference: proto.String("chromium"), RequireFeatures: []string{"frames"}}, fault.SetupRequired, "no_provider")
	if steps, _ := e.Details["manual_steps"].([]string); e.Details["nearest_provider"] != "bidi" && len(steps) == 0 {
		t.Errorf("nearest is %v, steps %v", e.Details["nearest_provider"], steps)
	}
	e = build(t, "", f).user("ann").fails(&browserv1.EnsureSessionRequest{ClientSessionId: "a"}, fault.SetupRequired, "no_provider")
	if !strings.Contains(e.Message, "apt install chromium") {
		t.Errorf("it does not tell the step: %v", e)
	}
}

// Wishes that are not met are told as warnings.
func TestWishes(t *testing.T) {
	s := build(t, "", cdp()).user("ann").ensure("a", func(r *browserv1.EnsureSessionRequest) {
		r.BrowserPreference, r.PreferFeatures = proto.String("chrome"), []string{"pdf", "element_refs"}
	})
	var codes []string
	for _, w := range s.GetWarnings() {
		codes = append(codes, w.GetCode())
	}
	if got := strings.Join(codes, " "); got != "preference_substituted feature_missing" {
		t.Errorf("the warnings are %s", got)
	}
}

// Providers that never spoke are started and asked only while they could win, the best first.
func TestAskingTheShy(t *testing.T) {
	c, b := cdp(), bidi()
	c.Shy, b.Shy = true, true
	u := build(t, "", c, b).user("ann")
	if s := u.ensure("a"); s.GetProviderId() != "cdp" || b.Lives() != 0 {
		t.Errorf("%s serves it, bidi was started %d times", s.GetProviderId(), b.Lives())
	}
	if s := u.ensure("b", func(r *browserv1.EnsureSessionRequest) { r.BrowserPreference = proto.String("firefox") }); s.GetProviderId() != "bidi" {
		t.Errorf("%s serves Firefox", s.GetProviderId())
	}
	c, b = cdp(), bidi()
	c.Shy, c.Fails = true, fault.New(fault.SetupRequired, "it does not start")
	if s := build(t, "", c, b).user("ann").ensure("a"); s.GetProviderId() != "bidi" {
		t.Errorf("%s serves it", s.GetProviderId())
	}
}

// The config says which instances there are, in which order, and which browser each is kept to.
func TestConfiguredProviders(t *testing.T) {
	f, g := bidi(), brokertest.New("spare", []string{"chromium"})
	u := build(t, `
prefer = ["spare"]
provider "bidi" { browser = "chromium" }
provider "spare" { plugin = "cdp" }
`, f, g).user("ann")
	if s := u.ensure("a"); s.GetProviderId() != "spare" {
		t.Errorf("%s serves it", s.GetProviderId())
	}
	e := u.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "b", BrowserPreference: proto.String("firefox")}, fault.SetupRequired, "no_provider")
	if r, _ := e.Details["rejections"].([]map[string]any); len(r) != 3 {
		t.Errorf("the rejections are %v", r)
	}
}

// A caller has as many sessions as the config lets it have.
func TestSessionLimit(t *testing.T) {
	h := build(t, `limits { sessions = 1 }`, cdp())
	ann := h.user("ann")
	s := ann.ensure("a")
	ann.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "b"}, fault.NotReady, "capacity")
	ann.ensure("a")
	h.user("bob").ensure("b")
	do[*browserv1.CloseSessionResponse](ann, &browserv1.CloseSessionRequest{SessionId: s.GetSessionId()})
	ann.ensure("b")
}

// Explain says what ensure does: the same provider first, the same ones rejected.
func TestExplain(t *testing.T) {
	h := build(t, "", cdp(), bidi())
	u := h.user("ann")
	for _, pref := range []string{"auto", "firefox", "chrome", "webkit"} {
		ask := &browserv1.EnsureSessionRequest{ClientSessionId: pref, BrowserPreference: &pref}
		m := methodOf(t, ask)
		x, err := h.broker.Explain(t.Context(), u.Caller, m, ask)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.try(t.Context(), ask)
		if s, ok := resp.(*browserv1.EnsureSessionResponse); err == nil && (!ok || s.GetProviderId() != x.Provider) {
			t.Errorf("%s: explain says %q, ensure %q", pref, x.Provider, s.GetProviderId())
		}
		if (err != nil) != (x.Provider == "") || x.Why == "" || len(x.Candidates) != 3 {
			t.Errorf("%s: %v, explained as %+v", pref, err, x)
		}
	}
	s := u.ensure("auto").GetSessionId()
	x, err := h.broker.Explain(t.Context(), u.Caller, methodOf(t, open(s, "file:///etc/passwd")), open(s, "file:///etc/passwd"))
	if err != nil || x.Allowed || x.Denied.Reason != "url_refused" {
		t.Errorf("a refused URL is explained as %+v, %v", x, err)
	}
	x, err = h.broker.Explain(t.Context(), u.Caller, methodOf(t, open(s, "https://example.com/")), open(s, "https://example.com/"))
	if err != nil || !x.Allowed || x.Provider != "cdp" {
		t.Errorf("an open is explained as %+v, %v", x, err)
	}
	x, err = h.broker.Explain(t.Context(), u.Caller, methodOf(t, &browserv1.StatusRequest{}), &browserv1.StatusRequest{})
	if err != nil || x.Provider != broker.OwnID {
		t.Errorf("a status is explained as %+v, %v", x, err)
	}
}

// Every wish that is not met is told, when the session is made and whenever it is come back to.
func TestWishesThatAreNotMet(t *testing.T) {
	u := build(t, "", cdp()).user("ann")
	for _, made := range []string{"made", "come back to"} {
		r := u.ensure("a", func(r *browserv1.EnsureSessionRequest) {
			r.BrowserPreference, r.PreferFeatures, r.Attach = proto.String("chrome"), []string{"pdf", "element_refs"}, browserv1.Attach_ATTACH_PREFER.Enum()
		})
		var codes []string
		for _, w := range r.GetWarnings() {
			codes = append(codes, w.GetCode())
		}
		slices.Sort(codes)
		if got := strings.Join(codes, " "); got != "feature_missing not_attached preference_substituted" {
			t.Errorf("%s, the warnings are %q", made, got)
		}
	}
}
