package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Ids are the broker's above and the provider's below: the provider never learns the caller's name of a session, nor the
// caller the provider's id.
func TestIDsAreReplaced(t *testing.T) {
	f := cdp()
	u := build(t, "", f).user("ann")
	s := u.ensure("a")
	if s.GetSessionId() == f.Native() || s.GetProviderId() != "cdp" || !s.GetCreated() || s.GetBrowserFamily() != "chromium" {
		t.Errorf("session.ensure answered %v", s)
	}
	down := f.Calls("session.ensure")[0].(*browserv1.EnsureSessionRequest)
	if down.GetClientSessionId() != s.GetSessionId() || down.GetProviderId() != "" || down.GetBrowserPreference() != "chromium" {
		t.Errorf("the provider was asked for %v", down)
	}
	do[*browserv1.OpenResponse](u, open(s.GetSessionId(), "https://example.com/"))
	if got := f.Calls("page.open")[0].(*browserv1.OpenRequest); got.GetSessionId() != f.Native() || got.GetTimeoutMs() < 29000 {
		t.Errorf("the provider was told to open %v", got)
	}
	list := do[*browserv1.ListSessionsResponse](u, &browserv1.ListSessionsRequest{}).GetSessions()
	if len(list) != 1 || list[0].GetSessionId() != s.GetSessionId() || list[0].GetClientSessionId() != "a" {
		t.Errorf("session.list gave %v", list)
	}
	u.fails(open(f.Native(), "https://example.com/"), fault.SessionNotFound, "")
}

// A message of the provider that tells its own session id is told with the broker's.
func TestErrorsTellTheBrokersID(t *testing.T) {
	f := cdp()
	f.On("page.open", func(context.Context, proto.Message) (proto.Message, error) {
		return nil, fault.New(fault.NotReady, "the session %s is busy", f.Native())
	})
	u := build(t, "", f).user("ann")
	s := u.ensure("a").GetSessionId()
	e := u.fails(open(s, "https://example.com/"), fault.NotReady, "")
	if !strings.Contains(e.Message, s) || strings.Contains(e.Message, f.Native()) || e.Details["provider_id"] != "cdp" || e.Details["method"] != "page.open" {
		t.Errorf("the error is %v, %v", e, e.Details)
	}
}

// Two callers who use the same name have two sessions, and neither can do anything with the other's.
func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	f := cdp()
	h := build(t, "", f)
	ann, bob := h.user("ann"), h.user("bob")
	a, b := ann.ensure("a").GetSessionId(), bob.ensure("a").GetSessionId()
	if a == b {
		t.Fatal("both got one session")
	}
	asked := f.Calls("session.ensure")
	if asked[0].(*browserv1.EnsureSessionRequest).GetClientSessionId() == asked[1].(*browserv1.EnsureSessionRequest).GetClientSessionId() {
		t.Error("the provider was asked for one session twice")
	}
	for _, req := range []proto.Message{
		open(a, "https://example.com/"), click(a, ""), &browserv1.CloseSessionRequest{SessionId: a}, &browserv1.ListTabsRequest{SessionId: a},
		&browserv1.CommandRequest{SessionId: a, ProviderMethod: "cdp.send"}, &browserv1.GetArtifactRequest{SessionId: a, Ref: "x"},
	} {
		e := bob.fails(req, fault.SessionNotFound, "")
		if e.Details["provider_id"] != nil {
			t.Errorf("%T tells that the session is there: %v", req, e.Details)
		}
	}
	if _, err := bob.Subscribe(nil, []string{a}); fault.CodeOf(err) != fault.SessionNotFound {
		t.Errorf("bob may listen to ann's session: %v", err)
	}
	if list := do[*browserv1.ListSessionsResponse](bob, &browserv1.ListSessionsRequest{}).GetSessions(); len(list) != 1 || list[0].GetSessionId() != b {
		t.Errorf("bob sees %v", list)
	}
	do[*browserv1.CloseSessionResponse](ann, &browserv1.CloseSessionRequest{SessionId: a})
	ann.fails(&browserv1.CloseSessionRequest{SessionId: a}, fault.SessionNotFound, "")
	if n := len(f.Calls("page.open")) + len(f.Calls("page.click")); n != 0 {
		t.Errorf("%d calls of bob reached the provider", n)
	}
}

// A profile that persists is found again by its name, and is another one for another principal.
func TestPersistentNameStays(t *testing.T) {
	f := cdp()
	f.Description.Capabilities.Features = append(f.Description.Capabilities.Features, "persistent_profile")
	h := build(t, "", f)
	keep := func(r *browserv1.EnsureSessionRequest) { r.Persist = proto.Bool(true) }
	for _, who := range []string{"ann", "ann", "bob"} {
		u := h.user(who)
		do[*browserv1.CloseSessionResponse](u, &browserv1.CloseSessionRequest{SessionId: u.ensure("a", keep).GetSessionId()})
	}
	var names []string
	for _, c := range f.Calls("session.ensure") {
		names = append(names, c.(*browserv1.EnsureSessionRequest).GetClientSessionId())
	}
	if names[0] != names[1] || names[0] == names[2] {
		t.Errorf("the profiles were called %v", names)
	}
}

// What is wrong with a request is told before any provider is asked.
func TestBadRequestsGoNowhere(t *testing.T) {
	f := cdp()
	u := build(t, "", f).user("ann")
	s := u.ensure("a").GetSessionId()
	for _, tt := range []struct {
		req    proto.Message
		code   fault.Code
		reason string
		field  string
	}{
		{&browserv1.OpenRequest{SessionId: s}, fault.InvalidRequest, "", "url"},
		{&browserv1.OpenRequest{Url: "https://example.com/"}, fault.InvalidRequest, "", "session_id"},
		{open(s, "not a url"), fault.InvalidRequest, "", "url"},
		{&browserv1.NewTabRequest{SessionId: s, Url: proto.String("//x")}, fault.InvalidRequest, "", "url"},
		{&browserv1.ClickRequest{SessionId: s}, fault.InvalidRequest, "", "element_ref"},
		{&browserv1.EnsureSessionRequest{}, fault.InvalidRequest, "", "client_session_id"},
		{&browserv1.EnsureSessionRequest{ClientSessionId: "b", ProviderId: proto.String("cpd")}, fault.InvalidRequest, "", "provider_id"},
		{&browserv1.EnsureSessionRequest{ClientSessionId: "b", BrowserPreference: proto.String("chorme")}, fault.InvalidRequest, "", "browser_preference"},
		{&browserv1.EnsureSessionRequest{ClientSessionId: "b", RequireFeatures: []string{"element_ref"}}, fault.InvalidRequest, "", "require_features[0]"},
		{&browserv1.StatusRequest{ProviderId: "nobody"}, fault.InvalidRequest, "", "provider_id"},
		{&browserv1.DescribeRequest{ProviderId: "nobody"}, fault.InvalidRequest, "", "provider_id"},
		{&browserv1.SubscribeRequest{}, fault.UnsupportedMethod, "", ""},
		{&browserv1.ConfigureRequest{}, fault.UnsupportedMethod, "", ""},
		{open("nobody", "https://example.com/"), fault.SessionNotFound, "", "session_id"},
	} {
		e := u.fails(tt.req, tt.code, tt.reason)
		if field, _ := e.Details["field"].(string); field != tt.field {
			t.Errorf("%T: the field is %q, want %q (%v)", tt.req, field, tt.field, e)
		}
	}
	e := u.fails(&browserv1.EnsureSessionRequest{ClientSessionId: "b", BrowserPreference: proto.String("chorme")}, fault.InvalidRequest, "")
	if e.Details["nearest"] != "chrome" {
		t.Errorf("nearest to chorme is %v", e.Details["nearest"])
	}
	if n := len(f.Calls("page.open")) + len(f.Calls("page.click")) + len(f.Calls("tab.new")); n != 0 {
		t.Errorf("%d bad requests reached the provider", n)
	}
}

// A URL that the guard refuses never reaches a provider, by whatever method and spelling; one that it lets through is opened
// as it was checked.
func TestGuardedURLs(t *testing.T) {
	f := cdp()
	u := build(t, "", f).user("ann")
	s := u.ensure("a").GetSessionId()
	for _, bad := range []string{"file:///etc/passwd", " FI\tLE:///etc/passwd", "http://0xa9fea9fe/", "view-source:https://example.com/", "about:config"} {
		u.fails(open(s, bad), fault.PermissionDenied, "url_refused")
		u.fails(&browserv1.NewTabRequest{SessionId: s, Url: &bad}, fault.PermissionDenied, "url_refused")
	}
	if n := len(f.Calls("page.open")) + len(f.Calls("tab.new")); n != 0 {
		t.Errorf("%d refused URLs reached the provider", n)
	}
	do[*browserv1.OpenResponse](u, open(s, " HTTP://Example.COM:80/\ta"))
	do[*browserv1.NewTabResponse](u, &browserv1.NewTabRequest{SessionId: s})
	if got := f.Calls("page.open")[0].(*browserv1.OpenRequest).GetUrl(); got != "http://example.com/a" {
		t.Errorf("the provider was told to open %q", got)
	}
}

// A call that the provider does not end ends at the deadline and the hop's grace, with the word that the method has for it,
// and says whether it may be tried again.
func TestDeadlines(t *testing.T) {
	hang := func(ctx context.Context, _ proto.Message) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tests := []struct {
		method string
		req    func(s string) proto.Message
		code   fault.Code
		retry  bool
	}{
		{"page.open", func(s string) proto.Message {
			return &browserv1.OpenRequest{SessionId: s, Url: "https://example.com/", TimeoutMs: proto.Int32(3000)}
		}, fault.NavigationTimeout, true},
		{"page.click", func(s string) proto.Message {
			r := click(s, "")
			r.TimeoutMs = proto.Int32(3000)
			return r
		}, fault.NotReady, false},
		{"page.snapshot", func(s string) proto.Message {
			return &browserv1.SnapshotRequest{SessionId: s, TimeoutMs: proto.Int32(3000)}
		}, fault.NotReady, true},
	}
	for _, tt := range tests {
		t.Run(tt.method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := cdp().On(tt.method, hang)
				u := build(t, "", f).user("ann")
				s := u.ensure("a").GetSessionId()
				start := time.Now()
				e := u.fails(tt.req(s), tt.code, "deadline_exceeded")
				if took := time.Since(start); took != 4*time.Second {
					t.Errorf("it took %v", took)
				}
				if e.Retryable != tt.retry {
					t.Errorf("retryable is %v", e.Retryable)
				}
			})
		})
	}
}

// A call that its caller gives up is cancelled at the provider too.
func TestCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := make(chan error, 1)
		f := cdp().On("page.click", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			<-ctx.Done()
			reached <- ctx.Err()
			return nil, ctx.Err()
		})
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := u.try(ctx, click(s, ""))
		isFault(t, err, fault.NotReady, "cancelled")
		if err := <-reached; !errors.Is(err, context.Canceled) {
			t.Errorf("the provider saw %v", err)
		}
	})
}

// A method that a provider says it lacks with this browser is not sent to it.
func TestMissingMethodOfABrowser(t *testing.T) {
	f := cdp()
	f.Description.Browsers[0].WithoutMethods = []string{"page.drag"}
	u := build(t, "", f).user("ann")
	s := u.ensure("a").GetSessionId()
	u.fails(&browserv1.DragRequest{SessionId: s, From: &browserv1.Target{Selector: proto.String("a")}, To: &browserv1.Target{Selector: proto.String("b")}},
		fault.UnsupportedMethod, "")
	if len(f.Calls("page.drag")) > 0 {
		t.Error("it was sent")
	}
}

// Custom methods are reached only by provider.command, only when the policy allows the name and the provider lists it.
func TestPassthrough(t *testing.T) {
	f := cdp()
	f.Description.Capabilities.CustomMethods = []*browserv1.CustomMethod{{Name: "cdp.send"}, {Name: "cdp.other"}}
	command := func(s, method string) proto.Message {
		return &browserv1.CommandRequest{SessionId: s, ProviderMethod: method}
	}
	t.Run("by default nothing", func(t *testing.T) {
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		u.fails(command(s, "cdp.send"), fault.PermissionDenied, "policy_denied")
		u.fails(command(s, "cdp.nothing"), fault.PermissionDenied, "policy_denied")
		u.fails(&browserv1.CommandRequest{ProviderId: "cdp", ProviderMethod: "cdp.send"}, fault.PermissionDenied, "policy_denied")
	})
	t.Run("what is allowed and listed", func(t *testing.T) {
		u := build(t, `passthrough { allow = ["cdp.send", "cdp.no*", "page.*"] }`, f).user("ann")
		s := u.ensure("a").GetSessionId()
		do[*browserv1.CommandResponse](u, command(s, "cdp.send"))
		do[*browserv1.CommandResponse](u, &browserv1.CommandRequest{ProviderId: "cdp", ProviderMethod: "cdp.send"})
		u.fails(command(s, "cdp.other"), fault.PermissionDenied, "policy_denied")
		u.fails(command(s, "cdp.nothing"), fault.UnsupportedMethod, "")
		u.fails(command(s, "page.open"), fault.UnsupportedMethod, "")
	})
	got := f.Customs()
	if len(got) != 2 || got[0].GetSessionId() != f.Native() || got[1].GetSessionId() != "" {
		t.Errorf("the provider got %v", got)
	}
	if _, ok := catalog.Lookup("cdp.send"); ok {
		t.Error("a custom method is in the catalog")
	}
}

// The broker describes itself as what any of its providers can do, and says how it is as well as the best of them is.
func TestTheBrokersOwnObject(t *testing.T) {
	c, b := cdp(), bidi()
	c.State = &browserv1.StatusResponse{Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE, Diagnostics: []*browserv1.Diagnostic{{Message: "no Chromium"}}}
	u := build(t, "", c, b).user("ann")
	u.ensure("a")
	d := do[*browserv1.DescribeResponse](u, &browserv1.DescribeRequest{})
	if d.GetProviderId() != broker.OwnID || len(d.GetProviders()) != 2 || d.GetProtocolVersion() != "0.1" {
		t.Errorf("describe gave %v", d)
	}
	optional := strings.Join(d.GetCapabilities().GetOptionalMethods(), " ")
	if !strings.Contains(optional, "session.list") || !strings.Contains(optional, "provider.command") || !strings.Contains(optional, "tab.new") || strings.Contains(optional, "events.") {
		t.Errorf("the methods are %s", optional)
	}
	if got := strings.Join(d.GetCapabilities().GetFeatures(), " "); got != "element_refs pdf" {
		t.Errorf("the features are %s", got)
	}
	s := do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{})
	if s.GetAvailability() != browserv1.Availability_AVAILABILITY_READY || len(s.GetProviders()) != 2 || s.GetSessions() != 1 {
		t.Errorf("status gave %v", s)
	}
	one := do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{ProviderId: "bidi"})
	if one.GetProviderId() != "bidi" || one.GetSessions() != 1 || len(one.GetProviders()) != 0 {
		t.Errorf("the status of bidi is %v", one)
	}
}

// Status and describe are never held up by a busy provider, and wait only a moment for one that was never heard of and does
// not start.
func TestStatusDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cdp().On("page.click", func(ctx context.Context, _ proto.Message) (proto.Message, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		u.aside(click(s, ""))
		synctest.Wait()
		start := time.Now()
		do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{})
		do[*browserv1.StatusResponse](u, &browserv1.StatusRequest{ProviderId: "cdp"})
		do[*browserv1.DescribeResponse](u, &browserv1.DescribeRequest{ProviderId: "cdp"})
		if took := time.Since(start); took != 0 {
			t.Errorf("they waited %v", took)
		}
	})
}
