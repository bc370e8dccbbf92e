package cdp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Guards the page against a script that loops: the call ends at its deadline, the script a moment later, and the page
// lives on.
func TestLoopingScriptIsEnded(t *testing.T) {
	r := newRig(t, nil)
	u := r.session("loop")
	u.open(site(t, map[string]string{"/": formPage}) + "/")
	fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "while(1){}", TimeoutMs: ptr(int32(400))}, fault.NotReady, "deadline_exceeded")
	if v := do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "6*7", TimeoutMs: ptr(int32(5000))}); v.GetValue().GetNumberValue() != 42 {
		t.Errorf("the page says %v", v)
	}
	if s := u.snapshot(); s.GetTitle() != "Form" {
		t.Errorf("the page is %q", s.GetTitle())
	}
}

// Guards the page against a navigation that is given up before it began: it is stopped all the same.
func TestNavigationGivenUpEarly(t *testing.T) {
	r := newRig(t, nil)
	u := r.session("early")
	base := site(t, map[string]string{"/": formPage})
	end := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-end:
		case <-q.Context().Done():
		}
	}))
	defer hang.Close()
	defer close(end)
	u.open(base + "/")
	open, _ := catalog.Lookup("page.open")
	for i := range 12 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond/2)
		_, err := r.srv.Call(ctx, open, &browserv1.OpenRequest{SessionId: u.id, Url: hang.URL})
		cancel()
		if err == nil {
			t.Fatal("a page that never answers is open")
		}
		v, err := try[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "location.pathname", TimeoutMs: ptr(int32(3000))})
		if err != nil || v.GetValue().GetStringValue() != "/" {
			t.Fatalf("round %d: the page says %v, %v", i, v, err)
		}
	}
}
