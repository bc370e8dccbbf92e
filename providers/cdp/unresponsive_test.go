package cdp

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Guards callers of a page whose own script never ends: they are told so and what helps; navigations end the script, for a
// page of the same site would wait for it too, and tabs can be closed.
func TestPageOfAnEndlessScript(t *testing.T) {
	r := newRig(t, nil)
	u := r.session("endless")
	base := site(t, map[string]string{"/": formPage, "/other": "<!doctype html><title>Other</title>"})
	short := ptr(int32(600))
	hang := func() {
		t.Helper()
		do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "setTimeout(() => { while (1) {} }); 1"})
	}
	u.open(base + "/")
	u.open(base + "/other")
	hang()
	e := fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "6*7", TimeoutMs: short}, fault.NotReady, "deadline_exceeded")
	if !strings.Contains(e.Message, "page.reload") || e.Retryable {
		t.Errorf("it tells no next step: %v, %v", e, e.Details)
	}
	_, err := try[*browserv1.ScreenshotResponse](r, &browserv1.ScreenshotRequest{SessionId: u.id, TimeoutMs: short})
	if e := fault.From(err); e == nil || e.Code != fault.NotReady || !strings.Contains(e.Message, "page.reload") {
		t.Errorf("the screenshot: %v", err)
	}

	if got := do[*browserv1.ReloadResponse](r, &browserv1.ReloadRequest{SessionId: u.id}); got.GetTitle() != "Other" {
		t.Errorf("reload: %v", got)
	}
	hang()
	if got := do[*browserv1.GoBackResponse](r, &browserv1.GoBackRequest{SessionId: u.id}); got.GetTitle() != "Form" {
		t.Errorf("back: %v", got)
	}
	hang()
	if got := do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: u.id, Url: base + "/other"}); got.GetTitle() != "Other" {
		t.Errorf("open: %v", got)
	}
	if s := u.snapshot(); s.GetTitle() != "Other" {
		t.Errorf("the page is %q", s.GetTitle())
	}
	hang()
	page := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs()[0].GetPageId()
	do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: &page})
}

// Guards the page against a function that loops, which the browser takes no deadline for: it is ended with its call.
func TestLoopingFunctionIsEnded(t *testing.T) {
	r := newRig(t, nil)
	u := r.session("function")
	u.open(site(t, map[string]string{"/": formPage}) + "/")
	loop := &browserv1.EvalRequest{SessionId: u.id, Expression: "x => { while (x) {} }", Args: []*structpb.Value{structpb.NewNumberValue(1)}, TimeoutMs: ptr(int32(400))}
	if _, err := try[*browserv1.EvalResponse](r, loop); fault.CodeOf(err) != fault.NotReady {
		t.Errorf("the function that loops: %v", err)
	}
	if v := do[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "6*7"}); v.GetValue().GetNumberValue() != 42 {
		t.Errorf("the page says %v", v)
	}
	if s := u.snapshot(); s.GetTitle() != "Form" {
		t.Errorf("the page is %q", s.GetTitle())
	}
}
