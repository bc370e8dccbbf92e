package broker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// These tests guard what the policy says where calls are made: which provider gets a session, who is refused by which rule,
// what a client may hold, and what the audit log tells.

func config(t *testing.T, src string) *policy.Policy {
	t.Helper()
	c, err := policy.Load("test.hcl", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return policy.New(c)
}

// explain asks where a session would be made.
func (h *house) explain(who *user, without ...string) *broker.Explanation {
	h.t.Helper()
	m := methodOf(h.t, &browserv1.EnsureSessionRequest{})
	x, err := h.broker.Explain(h.t.Context(), who.Caller, m, &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, without...)
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

func TestRulesRouteSessions(t *testing.T) {
	h := build(t, `
rule "bank" {
  when   = client.name == "cashier"
  prefer = ["bidi"]
}
rule "no firefox for robots" {
  when   = contains(client.labels, "robot") && provider.family == "firefox"
  effect = "deny"
  reason = "robots use Chromium"
}
rule "read only" {
  when   = client.name == "crawler" && !method.read_only && method.group == "page" && method.name != "page.open"
  effect = "deny"
  reason = "it reads"
}
rule "evil" {
  when   = domain(url.host, "evil.example")
  effect = "deny"
}
client "crawler" {
  labels = ["robot"]
}`, cdp(), bidi())
	if got := h.user("ann").ensure("s").GetProviderId(); got != "cdp" {
		t.Errorf("ann gets %s", got)
	}
	if got := h.user("cashier").ensure("s"); got.GetProviderId() != "bidi" || got.GetBrowserFamily() != "firefox" {
		t.Errorf("the cashier gets %v", got)
	}
	crawler := h.user("crawler")
	s := crawler.ensure("s", func(r *browserv1.EnsureSessionRequest) { r.ProviderId = proto.String("bidi") })
	if s.GetBrowserFamily() != "chromium" {
		t.Errorf("the robot gets %v", s)
	}
	do[*browserv1.OpenResponse](crawler, open(s.GetSessionId(), "https://example.com/"))
	e := crawler.fails(click(s.GetSessionId(), ""), fault.PermissionDenied, policy.ReasonPolicy)
	if e.Details["rule"] != "read only" || e.Details["where"] != "test.hcl:11" || !strings.Contains(e.Message, "it reads") {
		t.Errorf("the refusal is %v %v", e, e.Details)
	}
	crawler.fails(open(s.GetSessionId(), "https://www.evil.example/"), fault.PermissionDenied, policy.ReasonPolicy)

	x := h.explain(crawler)
	var firefox *broker.ExplainedCandidate
	for i, c := range x.Candidates {
		if c.Provider == "bidi" && !c.Kept {
			firefox = &x.Candidates[i]
		}
	}
	if firefox == nil || firefox.Reasons[0].Rule != "no firefox for robots" || firefox.Reasons[0].Where != "test.hcl:6" {
		t.Errorf("explain says %+v", x)
	}
	if x := h.explain(crawler, "cdp"); x.Provider != "bidi" {
		t.Errorf("without cdp it would be %q", x.Provider)
	}
	if x := h.explain(h.user("cashier")); !strings.Contains(x.Why, `"bank" at test.hcl:2`) {
		t.Errorf("why: %s", x.Why)
	}
}

// For random policies and tables, explain names the provider that the call gets, and a provider that is rejected never
// gets it.
func TestExplainAgreesWithCall(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	terms := []string{`client.name == "x"`, `session.persist`, `provider.family == "firefox"`, `contains(provider.features, "pdf")`, `provider.id == "cdp"`, `provider.availability == "degraded"`}
	for range 60 {
		var src strings.Builder
		for i := range r.IntN(6) {
			fmt.Fprintf(&src, "rule \"r%d\" {\n when = %s %s %s && client.name != \"n%d\"\n %s\n}\n", i, pick(terms...), pick("&&", "||"), pick(terms...), i,
				pick(`effect = "deny"`, `prefer = ["bidi"]`, `prefer = ["firefox"]`, `exclude = ["cdp"]`, `require = ["pdf"]`))
		}
		fakes := []*brokertest.Fake{cdp(), bidi(), brokertest.New("firefox", []string{"firefox"})}
		for _, f := range fakes {
			f.State = &browserv1.StatusResponse{Availability: browserv1.Availability(1 + r.IntN(3))}
		}
		h := build(t, src.String(), fakes...)
		who := h.user(pick("x", "y"))
		x := h.explain(who)
		resp, err := who.try(t.Context(), &browserv1.EnsureSessionRequest{ClientSessionId: "x"})
		got := ""
		if err == nil {
			got = resp.(*browserv1.EnsureSessionResponse).GetProviderId()
		}
		if got != x.Provider {
			t.Fatalf("explain says %q and the call got %q, %v, under\n%s", x.Provider, got, err, src.String())
		}
		for _, c := range x.Candidates {
			if c.Provider == got && !c.Kept && len(x.Candidates) == 3 {
				t.Fatalf("%s was rejected for %v", got, c.Reasons)
			}
		}
	}
}

// A reload while 50 calls are under way at any time loses no call and no session.
func TestReloadUnderLoad(t *testing.T) {
	h := build(t, `prefer = ["cdp"]`, cdp(), bidi())
	who := h.user("ann")
	var work sync.WaitGroup
	for i := range 50 {
		s := who.ensure(fmt.Sprint("s", i)).GetSessionId()
		work.Go(func() {
			for range 40 {
				if _, err := who.try(t.Context(), click(s, "")); err != nil {
					t.Errorf("a call is lost: %v", err)
					return
				}
			}
		})
	}
	for i := range 20 {
		h.broker.SetPolicy(config(t, fmt.Sprintf("prefer = [\"bidi\"]\nrule \"r\" {\n when = client.name == \"n%d\"\n effect = \"deny\"\n}", i)))
	}
	work.Wait()
	if n := len(do[*browserv1.ListSessionsResponse](who, &browserv1.ListSessionsRequest{}).GetSessions()); n != 50 {
		t.Errorf("%d sessions are left", n)
	}
	if got := who.ensure("new").GetProviderId(); got != "bidi" {
		t.Errorf("a new session goes to %s", got)
	}
	st := do[*browserv1.StatusResponse](who, &browserv1.StatusRequest{})
	if st.GetPolicySha256() != h.broker.Policy().Config().Hash {
		t.Errorf("status tells the policy %q", st.GetPolicySha256())
	}
}

// A client with the label admin sees and closes the sessions of others; nobody else does.
func TestAdmin(t *testing.T) {
	h := build(t, "client \"root\" {\n labels = [\"admin\"]\n}", cdp())
	ann, root := h.user("ann"), h.user("root")
	s := ann.ensure("a").GetSessionId()
	all := &browserv1.ListSessionsRequest{All: proto.Bool(true)}
	ann.fails(all, fault.PermissionDenied, policy.ReasonPolicy)
	if l := do[*browserv1.ListSessionsResponse](root, all).GetSessions(); len(l) != 1 || l[0].GetClient() != "ann" {
		t.Errorf("the admin sees %v", l)
	}
	if l := do[*browserv1.ListSessionsResponse](root, &browserv1.ListSessionsRequest{}).GetSessions(); len(l) != 0 {
		t.Errorf("unasked, the admin sees %v", l)
	}
	root.fails(click(s, ""), fault.SessionNotFound, "")
	h.user("eve").fails(&browserv1.CloseSessionRequest{SessionId: s}, fault.SessionNotFound, "")
	do[*browserv1.CloseSessionResponse](root, &browserv1.CloseSessionRequest{SessionId: s})
	ann.fails(click(s, ""), fault.SessionNotFound, "")
}

// Over its limits a client is told to come back, and when; then there is room again. Others are not touched.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(t, `
client "busy" {
  limits {
    sessions         = 1
    calls_per_second = 3
  }
}
client "greedy" {
  limits {
    bytes_per_minute = "100B"
  }
}`, cdp())
		busy, other := h.user("busy"), h.user("other")
		list := &browserv1.ListSessionsRequest{}
		busy.ensure("a")
		e := busy.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "b"}, fault.NotReady, "capacity")
		if !e.Retryable {
			t.Errorf("the limit of sessions says %v", e.Details)
		}
		do[*browserv1.ListSessionsResponse](busy, list)
		e = busy.fails(list, fault.NotReady, "capacity")
		ms := after(t, e)
		if ms < 1 || ms > 1000 {
			t.Errorf("come back after %d ms", ms)
		}
		do[*browserv1.ListSessionsResponse](other, list)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		do[*browserv1.ListSessionsResponse](busy, list)

		greedy := h.user("greedy")
		var full *fault.Error
		for range 10 {
			if _, err := greedy.try(t.Context(), &browserv1.StatusRequest{}); err != nil {
				full = isFault(t, err, fault.NotReady, "capacity")
				break
			}
		}
		if full == nil {
			t.Fatal("there is no limit of bytes")
		}
		time.Sleep(time.Duration(after(t, full)) * time.Millisecond)
		do[*browserv1.StatusResponse](greedy, &browserv1.StatusRequest{})
	})
}

func after(t *testing.T, e *fault.Error) int {
	t.Helper()
	ms, ok := e.Details["after_ms"].(int)
	if !ok {
		t.Fatalf("the details are %#v", e.Details)
	}
	return ms
}

// A provider that fails again and again is tried after all others until it was left alone for a while, and listeners hear
// of it; nothing was lost to it.
func TestFlappingProviderIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad, good := cdp(), bidi()
		tries, broken := 0, true
		bad.On("session.ensure", func(_ context.Context, req proto.Message) (proto.Message, error) {
			tries++
			if broken {
				return nil, fault.New(fault.BrowserNotRunning, "it crashed")
			}
			return &browserv1.EnsureSessionResponse{SessionId: "n"}, nil
		})
		h := build(t, "", bad, good)
		who := h.user("ann")
		sub, err := who.Subscribe([]string{"provider.state_changed"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		for i := range 5 {
			s := who.ensure(fmt.Sprint("s", i))
			if s.GetProviderId() != "bidi" || (i < 3) != (len(s.GetWarnings()) > 0) {
				t.Errorf("session %d: %v", i, s)
			}
		}
		if tries != 3 {
			t.Errorf("it was tried %d times", tries)
		}
		if ev, err := sub.Next(t.Context()); err != nil || ev.GetPayload().AsMap()["state"] != "backoff" {
			t.Errorf("listeners hear %v, %v", ev, err)
		}
		broken = false
		time.Sleep(6 * time.Second)
		if x := h.explain(who); x.Provider != "cdp" {
			t.Errorf("after a while it is not tried again: %+v", x)
		}
		who.ensure("last")
		if ev, err := sub.Next(t.Context()); err != nil || ev.GetPayload().AsMap()["state"] != "ready" {
			t.Errorf("listeners hear %v, %v", ev, err)
		}
	})
}

// The audit log tells who, what and by which rule, and no secret.
func TestAudit(t *testing.T) {
	var mu sync.Mutex
	var log []broker.Entry
	p := config(t, "passthrough {\n allow = [\"cdp.*\"]\n}\nrule \"no\" {\n when = url.host == \"no.example\"\n effect = \"deny\"\n}")
	fake := cdp()
	fake.Description.Capabilities.CustomMethods = []*browserv1.CustomMethod{{Name: "cdp.send"}}
	b := broker.New(broker.Options{Policy: p, Sources: []broker.Source{fake}, Audit: func(e broker.Entry) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, e)
	}})
	t.Cleanup(func() { b.Close(t.Context()) })
	h := &house{t: t, broker: b}
	ann := h.user("ann")
	s := ann.ensure("a").GetSessionId()
	do[*browserv1.OpenResponse](ann, open(s, "https://u:secret@ok.example:444/p?token=secret#secret"))
	ann.fails(open(s, "https://no.example/?secret"), fault.PermissionDenied, policy.ReasonPolicy)
	do[*browserv1.CommandResponse](ann, &browserv1.CommandRequest{SessionId: s, ProviderMethod: "cdp.send", Params: &structpb.Struct{}})
	mu.Lock()
	defer mu.Unlock()
	if len(log) != 4 || strings.Contains(fmt.Sprintf("%+v", log), "secret") {
		t.Fatalf("the log is %+v", log)
	}
	if e := log[1]; e.Client != "ann" || e.Method != "page.open" || e.URL != "https://ok.example:444/p" || e.Provider != "cdp" || e.Code != "ok" {
		t.Errorf("the page is %+v", e)
	}
	if e := log[2]; e.Rule != "test.hcl:4" || e.Code != "permission_denied" || e.Reason != policy.ReasonPolicy {
		t.Errorf("the refusal is %+v", e)
	}
	if e := log[3]; e.Custom != "cdp.send" || e.Rule != "test.hcl:1" {
		t.Errorf("the custom method is %+v", e)
	}
}

// A custom method is allowed to one client of one provider, and its params must be as the provider's schema says.
func TestPassthroughByClient(t *testing.T) {
	schema, err := structpb.NewStruct(map[string]any{"type": "object", "required": []any{"method"}, "properties": map[string]any{"method": map[string]any{"type": "string"}}, "additionalProperties": false})
	if err != nil {
		t.Fatal(err)
	}
	with := func(f *brokertest.Fake) *brokertest.Fake {
		f.Description.Capabilities.CustomMethods = []*browserv1.CustomMethod{{Name: "cdp.send", InputSchema: schema}, {Name: "cdp.other"}}
		return f
	}
	h := build(t, "passthrough {\n allow = [\"cdp.send\"]\n clients = [\"ci-*\"]\n providers = [\"cdp\"]\n}", with(cdp()), with(bidi()))
	send := func(provider, method string, params map[string]any) *browserv1.CommandRequest {
		p, err := structpb.NewStruct(params)
		if err != nil {
			t.Fatal(err)
		}
		return &browserv1.CommandRequest{ProviderId: provider, ProviderMethod: method, Params: p}
	}
	good := map[string]any{"method": "Page.enable"}
	ci, ann := h.user("ci-1"), h.user("ann")
	do[*browserv1.CommandResponse](ci, send("cdp", "cdp.send", good))
	ann.fails(send("cdp", "cdp.send", good), fault.PermissionDenied, policy.ReasonPolicy)
	ci.fails(send("bidi", "cdp.send", good), fault.PermissionDenied, policy.ReasonPolicy)
	ci.fails(send("cdp", "cdp.other", good), fault.PermissionDenied, policy.ReasonPolicy)
	for _, params := range []map[string]any{{}, {"method": 3}, {"method": "x", "more": 1}} {
		if e := ci.fails(send("cdp", "cdp.send", params), fault.InvalidRequest, ""); e.Details["field"] != "params" {
			t.Errorf("%v: %v", params, e.Details)
		}
	}
}

// What a reload would change is told of the sessions too: those that a new guard would refuse until they are made again,
// and those whose provider is no longer given. What is refused names the guard and its place.
func TestDiffTellsOfGuardsAndProviders(t *testing.T) {
	h := build(t, "", cdp(), bidi())
	ann := h.user("ann")
	s := ann.ensure("a").GetSessionId()
	guarded := "guard \"inner\" {\n deny = [\"10.0.0.0/8\"]\n}\nprovider \"cdp\" {\n}"
	for src, want := range map[string]string{
		guarded:                  `refused until it is made again, for the guard "inner" holds`,
		"provider \"bidi\" {\n}": "no provider",
		"":                       "",
	} {
		got := ""
		for _, d := range h.broker.Diff(config(t, src)) {
			if d.Session == s {
				got = d.After
			}
		}
		if got != want {
			t.Errorf("of the session it says %q, not %q", got, want)
		}
	}
	h.broker.SetPolicy(config(t, guarded))
	e := ann.fails(click(s, ""), fault.PermissionDenied, policy.ReasonPolicy)
	if e.Details["rule"] != "inner" || e.Details["where"] != "test.hcl:1" || !strings.Contains(e.Error(), "test.hcl:1") {
		t.Errorf("the refusal is %v %v", e, e.Details)
	}
	if _, err := h.broker.Explain(t.Context(), ann.Caller, methodOf(t, &browserv1.EnsureSessionRequest{}), &browserv1.EnsureSessionRequest{ClientSessionId: "x"}, "cpd"); fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("without a provider that there is not: %v", err)
	}
}

// The limit of sessions holds for those who ask for many at once, too.
func TestSessionLimitAtOnce(t *testing.T) {
	fake := cdp()
	both := make(chan struct{})
	fake.On("session.ensure", func(_ context.Context, req proto.Message) (proto.Message, error) {
		<-both
		return &browserv1.EnsureSessionResponse{SessionId: req.(*browserv1.EnsureSessionRequest).GetClientSessionId()}, nil
	})
	h := build(t, "limits {\n sessions = 2\n}", fake)
	who := h.user("ann")
	errs := make(chan error)
	for i := range 6 {
		go func() {
			_, err := who.try(t.Context(), &browserv1.EnsureSessionRequest{ClientSessionId: fmt.Sprint("s", i)})
			errs <- err
		}()
	}
	for range 4 { // who finds no room is told at once, while the others are still being served
		isFault(t, <-errs, fault.NotReady, "capacity")
	}
	close(both)
	for range 2 {
		if err := <-errs; err != nil {
			t.Errorf("there was room: %v", err)
		}
	}
}
