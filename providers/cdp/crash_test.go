package cdp

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// A browser that is killed ends its calls at once; the next session gets a new one.
func TestBrowserKilled(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": formPage})
	u := r.session("killed")
	u.open(base + "/")
	var wg sync.WaitGroup
	var flight error
	var ended time.Time
	wg.Go(func() {
		_, flight = try[*browserv1.WaitResponse](r, &browserv1.WaitRequest{SessionId: u.id, TextPresent: ptr("never"), TimeoutMs: ptr(int32(30000))})
		ended = time.Now()
	})
	do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}) // The wait is under way by then, or fails the same.
	killed := time.Now()
	for _, pid := range processesOf(r.run) {
		if line, err := os.ReadFile("/proc/" + itoa(pid) + "/cmdline"); err == nil && !strings.Contains(string(line), "--type=") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	wg.Wait()
	if c := fault.CodeOf(flight); c != fault.BrowserNotRunning && c != fault.SessionNotFound || !fault.From(flight).Retryable {
		t.Errorf("the call under way said %v", flight)
	}
	if took := ended.Sub(killed); took > time.Second {
		t.Errorf("the call under way ended after %v", took)
	}
	fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.SessionNotFound, "session_lost")
	n := r.session("killed")
	if !n.info.GetCreated() || n.id == u.id {
		t.Errorf("the new session is %v", n.info)
	}
	n.open(base + "/")
}

// A page that crashed says so at once, also to the call that was under way, and can be loaded again.
func TestRendererCrashed(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": formPage})
	u := r.session("crashed")
	u.open(base + "/")
	var wg sync.WaitGroup
	var flight error
	wg.Go(func() {
		_, flight = try[*browserv1.EvalResponse](r, &browserv1.EvalRequest{SessionId: u.id, Expression: "new Promise(()=>{})", TimeoutMs: ptr(int32(20000))})
	})
	body, _ := structpb.NewStruct(map[string]any{"method": "Page.crash"})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = r.srv.Custom(ctx, &browserv1.CustomRequest{SessionId: u.id, Method: "cdp.send", Params: body})
	wg.Wait()
	if e := fault.From(flight); e == nil || e.Code != fault.PageNotFound || e.ReasonWord() != "page_crashed" {
		t.Errorf("the call under way said %v", flight)
	}
	fails(r, &browserv1.SnapshotRequest{SessionId: u.id}, fault.PageNotFound, "page_crashed")
	if l := do[*browserv1.ReloadResponse](r, &browserv1.ReloadRequest{SessionId: u.id}); l.GetTitle() != "Form" {
		t.Errorf("reload said %v", l)
	}
	u.clickOn("button", "Save")
}

// A page that hangs answers at its deadline and can be closed; the others work.
func TestFrozenPage(t *testing.T) {
	r := newRig(t, nil)
	base := site(t, map[string]string{"/": formPage, "/freeze": "<title>F</title><button onclick='for(;;);'>Freeze</button>"})
	u := r.session("frozen")
	u.open(base + "/")
	o := do[*browserv1.OpenResponse](r, &browserv1.OpenRequest{SessionId: u.id, Url: strings.Replace(base, "127.0.0.1", "localhost", 1) + "/freeze", NewPage: true})
	_, _ = try[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, Target: bySelector("button"), TimeoutMs: ptr(int32(700))})
	began := time.Now()
	fails(r, &browserv1.SnapshotRequest{SessionId: u.id, TimeoutMs: ptr(int32(500))}, fault.NotReady, "deadline_exceeded")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the snapshot gave up after %v", took)
	}
	if tabs := do[*browserv1.ListTabsResponse](r, &browserv1.ListTabsRequest{SessionId: u.id}).GetTabs(); len(tabs) != 2 || tabs[1].GetTitle() != "F" {
		t.Errorf("the tabs are %v", tabs)
	}
	do[*browserv1.CloseTabResponse](r, &browserv1.CloseTabRequest{SessionId: u.id, PageId: ptr(o.GetPageId())})
	if s := u.snapshot(); s.GetTitle() != "Form" {
		t.Errorf("the page that is left is %q", s.GetTitle())
	}
	fails(r, &browserv1.EvalRequest{SessionId: u.id, Expression: "new Promise(()=>{})", TimeoutMs: ptr(int32(300))}, fault.NotReady, "deadline_exceeded")
}
