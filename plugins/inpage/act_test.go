package inpage_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// scene is a page of the tests with its driver.
type scene struct {
	*inpage.Page
	t   testing.TB
	tab *tab
}

// stage opens a fixture, or HTML, in a new tab.
func stage(t testing.TB, page string) *scene {
	t.Helper()
	b := newTab(t)
	s := &scene{Page: inpage.NewSession().NewPage(b, b), t: t, tab: b}
	s.show(page)
	return s
}

func (s *scene) show(page string) {
	s.t.Helper()
	if strings.HasPrefix(page, "<") {
		page = serve(s.t, "<!doctype html><meta charset=utf-8><script>log=[]</script>"+page)
	} else if !strings.Contains(page, "://") {
		page = site.URL + "/" + page
	}
	s.tab.open(s.t, page)
}

// serve gives the address of a page of its own.
func serve(t testing.TB, html string) string {
	t.Helper()
	path := "/" + strings.ReplaceAll(strings.ReplaceAll(t.Name(), "/", "-"), "#", "") + time.Now().Format("150405.000000000")
	pages.Store(path, html)
	return "http://" + site.Listener.Addr().String() + path
}

func (s *scene) ctx(d time.Duration) context.Context {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *scene) want(expr, want string) {
	s.t.Helper()
	if got := s.tab.js(s.t, expr); got != want {
		s.t.Errorf("%s is %s, want %s", expr, got, want)
	}
}

// soon is want for what another process tells the page, a moment later.
func (s *scene) soon(expr, want string) {
	s.t.Helper()
	end := time.Now().Add(3 * time.Second)
	for s.tab.js(s.t, expr) != want && time.Now().Before(end) {
		s.tab.js(s.t, "new Promise(r=>setTimeout(r,20))")
	}
	s.want(expr, want)
}

func css(sel string) *browserv1.Target    { return &browserv1.Target{Selector: &sel} }
func words(text string) *browserv1.Target { return &browserv1.Target{TextQuery: &text} }
func byRef(ref string) *browserv1.Target  { return &browserv1.Target{ElementRef: &ref} }

func (s *scene) click(t *browserv1.Target) {
	s.t.Helper()
	if _, err := s.Click(s.ctx(8*time.Second), &browserv1.ClickRequest{Target: t}); err != nil {
		s.t.Fatalf("click %v: %v", t, err)
	}
}

func (s *scene) typed(t *browserv1.Target, text string, replace bool) string {
	s.t.Helper()
	got, err := s.Type(s.ctx(8*time.Second), &browserv1.TypeRequest{Target: t, Text: text, Replace: replace})
	if err != nil {
		s.t.Fatalf("type into %v: %v", t, err)
	}
	if got.Value == nil {
		return "<nil>"
	}
	return *got.Value
}

func (s *scene) fails(err error, code fault.Code, reason string) *fault.Error {
	s.t.Helper()
	if fault.CodeOf(err) != code || fault.ReasonOf(err) != reason || err == nil {
		s.t.Fatalf("got %v, want %s/%s", err, fault.Word(code), reason)
	}
	return fault.From(err)
}

func (s *scene) snap(r *browserv1.SnapshotRequest) *browserv1.SnapshotResponse {
	s.t.Helper()
	got, err := s.Snapshot(s.ctx(10*time.Second), r)
	if err != nil {
		s.t.Fatalf("snapshot: %v", err)
	}
	return got
}

// ref finds the only node of a role and name.
func (s *scene) ref(r *browserv1.SnapshotResponse, role, name string) string {
	s.t.Helper()
	found := ""
	for _, n := range r.GetSnapshot().GetNodes() {
		if n.GetRole() == role && n.GetName() == name {
			if found != "" {
				s.t.Fatalf("several %s %q", role, name)
			}
			found = n.GetElementRef()
		}
	}
	if found == "" {
		s.t.Fatalf("no %s %q in %v", role, name, r.GetSnapshot().GetNodes())
	}
	return found
}

var errDialog = errors.New("a dialog opened")

func newCause(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(ctx)
}

func isDialog(err error) bool { return errors.Is(err, errDialog) }
