package mcp

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/proto/fault"
)

// A model knows its session by the name that it gave, so no error names it otherwise.
func TestErrorsNameTheSessionAsTheModelDoes(t *testing.T) {
	r := &reply{tool: &tool{}, seat: &seat{name: "mine", id: "s_7f"}, structured: true}
	e := r.named(fault.New(fault.SessionNotFound, "there is no session %q", "s_7f").Field("session_id").With("session_id", "s_7f"))
	if strings.Contains(e.Message, "s_7f") || !strings.Contains(e.Message, `"mine"`) || e.Details["session_id"] != nil || e.Details[fault.KeyField] != argSession {
		t.Errorf("the error is %v %v", e, e.Details)
	}
	if e := (&reply{seat: &seat{name: "mine"}}).named(fault.New(fault.NotReady, "later")); e.Message != "later" {
		t.Errorf("without an id the error is %q", e.Message)
	}
}
