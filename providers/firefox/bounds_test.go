package firefox

import (
	"net/http"
	"net/http/httptest"
	"testing"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// A session reaches its own tabs alone: neither the person's, nor another session's, whatever ids it tries; and what it opened is
// closed with it.
func TestBorder(t *testing.T) {
	person(t)
	r, other := newRig(t), newRig(t)
	base := site(t, map[string]string{"/": formPage})
	u, v := r.session("mine"), other.session("yours")
	u.open(base + "/")
	v.open(base + "/")
	tabs := ask[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id})
	if len(tabs.GetTabs()) != 1 || tabs.GetTabs()[0].GetTitle() != "Form" {
		t.Errorf("the session has the tabs %v", tabs.GetTabs())
	}
	fails(r, &browserv1.ClickRequest{SessionId: v.id, Target: bySelector("button")}, fault.SessionNotFound, "")
	// A request that names a foreign tab in the provider's own words is refused by the add-on.
	s, err := r.p.session(u.id)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.p.session(v.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range []int64{1, foreign.active.tab} {
		if err := s.b.request(t.Context(), s, "doc.state", map[string]any{"tab": tab}, nil); !refused(err, "tab_gone") {
			t.Errorf("asking of tab %d gave %v", tab, err)
		}
	}
	if err := s.b.link.request(t.Context(), "session.close", map[string]any{"session": foreign.name}, nil); !refused(err, "no_session") {
		t.Errorf("closing another's session gave %v", err)
	}
	for _, address := range []string{"about:config", "file:///etc/hosts", "javascript:1", "data:text/html,x", "moz-extension://x/"} {
		fails(r, &browserv1.OpenRequest{SessionId: u.id, Url: address}, fault.PermissionDenied, "url_refused")
	}
	ask[*browserv1.CloseSessionResponse](r, &browserv1.CloseSessionRequest{SessionId: u.id})
	if got := v.eval("document.title"); got != `"Form"` {
		t.Errorf("the other session's page is %s", got)
	}
}

// A page may forbid evaluation, and then every other method still works in it.
func TestStrictPolicy(t *testing.T) {
	person(t)
	r := newRig(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'")
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<title>Strict</title><form><label>Word <input name=q></label><button>Go</button></form>`))
	}))
	t.Cleanup(srv.Close)
	u := r.session("strict")
	u.open(srv.URL)
	fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "1"}, fault.PermissionDenied, "csp_refused")
	ask[*browserv1.TypeResponse](r, &browserv1.TypeRequest{SessionId: u.id, Target: bySelector("input"), Text: "a b"})
	if c := u.clickOn("button", "Go"); !c.GetNavigationOccurred() || c.GetUrl() != srv.URL+"/?q=a+b" {
		t.Errorf("the click said %v", c)
	}
}
