package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Guards the closed set of codes: fourteen, each with a word that reads back and a gRPC code of its own meaning.
func TestCodes(t *testing.T) {
	if n := len(browserv1.ErrorCode_name) - 1; n != 14 {
		t.Fatalf("%d codes, the protocol has 14", n)
	}
	for n := range browserv1.ErrorCode_name {
		c := fault.Code(n)
		if c == 0 {
			continue
		}
		back, ok := fault.ParseCode(fault.Word(c))
		if !ok || back != c {
			t.Errorf("%s reads back as %v", fault.Word(c), back)
		}
		if st := fault.Status(fault.New(c, "x")); st.Code() == codes.OK || st.Code() == codes.Unknown {
			t.Errorf("%s is gRPC %s", fault.Word(c), st.Code())
		}
	}
	if _, ok := fault.ParseCode("no_such_code"); ok {
		t.Error("an unknown word is a code")
	}
}

// Guards the table of reasons: which of them may be tried again, and how.
func TestReasonsSayHowToRetry(t *testing.T) {
	for _, c := range []struct {
		code   fault.Code
		reason string
		retry  any
	}{
		{fault.ElementNotFound, "stale_ref", nil},
		{fault.InvalidRequest, "ambiguous_target", nil},
		{fault.ElementNotActionable, "covered", "same"},
		{fault.ElementNotActionable, "disabled", nil},
		{fault.NotReady, "dialog_open", "same"},
		{fault.NotReady, "deadline_exceeded", "same"},
		{fault.NavigationTimeout, "", "same"},
		{fault.NotReady, "capacity", "after_ms"},
		{fault.SetupRequired, "no_provider", nil},
		{fault.BrowserNotRunning, "provider_exited", "new_session"},
		{fault.SessionNotFound, "session_lost", "new_session"},
		{fault.SessionNotFound, "", nil},
		{fault.PageNotFound, "page_crashed", nil},
		{fault.PermissionDenied, "url_refused", nil},
	} {
		e := fault.New(c.code, "x")
		if c.reason != "" {
			e.Reason(c.reason)
		}
		if e.Details[fault.KeyRetry] != c.retry || e.Retryable != (c.retry != nil) {
			t.Errorf("%v: retryable %v, retry %v, want %v", e, e.Retryable, e.Details[fault.KeyRetry], c.retry)
		}
	}
}

// Guards the way over gRPC: nothing of a fault is lost, and plain gRPC errors become the fault that they mean.
func TestStatusRoundTrip(t *testing.T) {
	want := fault.New(fault.InvalidRequest, "two \xff hits").Reason("ambiguous_target").Provider("cdp").Method("page.click").
		With("candidates", []map[string]any{{"element_ref": "d1e2", "role": "button"}}).With("odd", struct{ A int }{1}).Hint("say which")
	got := fault.FromStatus(status.ErrorProto(fault.Status(fmt.Errorf("wrapped: %w", want)).Proto()))
	if got.Code != want.Code || got.ReasonWord() != "ambiguous_target" || got.Details["provider_id"] != "cdp" || got.Details["method"] != "page.click" {
		t.Errorf("%+v", got)
	}
	if got.Message != "two \uFFFD hits; say which" {
		t.Errorf("message %q", got.Message)
	}
	for code, want := range map[codes.Code]string{
		codes.Unimplemented: "unsupported_method", codes.DeadlineExceeded: "not_ready/deadline_exceeded",
		codes.Unavailable: "browser_not_running/provider_exited", codes.Canceled: "not_ready/cancelled", codes.Unknown: "internal_error",
	} {
		e := fault.FromStatus(status.Error(code, "m"))
		word := fault.Word(e.Code)
		if r := e.ReasonWord(); r != "" {
			word += "/" + r
		}
		if word != want {
			t.Errorf("%s is %s, want %s", code, word, want)
		}
	}
	large := fault.FromStatus(status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"))
	if large.ReasonWord() != "payload_too_large" {
		t.Errorf("%+v", large)
	}
	if fault.FromStatus(nil) != nil || fault.Status(nil) != nil || fault.From(nil) != nil {
		t.Error("nil is an error")
	}
}

// Guards that causes stay findable and that context errors get their reason.
func TestFrom(t *testing.T) {
	base := errors.New("base")
	if !errors.Is(fault.New(fault.InternalError, "x").Cause(base), base) {
		t.Error("the cause is lost")
	}
	if r := fault.ReasonOf(fmt.Errorf("x: %w", context.DeadlineExceeded)); r != "deadline_exceeded" {
		t.Error(r)
	}
	if c := fault.CodeOf(base); c != fault.InternalError {
		t.Error(c)
	}
	e := fault.New(fault.NotReady, "x").Reason("in_use")
	c := e.Clone().With("more", 1)
	if _, shared := e.Details["more"]; shared || c.Details["after_ms"] != 1000 {
		t.Errorf("clone: %v %v", e.Details, c.Details)
	}
}
