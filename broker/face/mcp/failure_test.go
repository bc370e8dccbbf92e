package mcp

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
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

// What a delta leaves out is not to be had by an offset, which counts the lines of a whole outline.
func TestACutDeltaNamesNoOffset(t *testing.T) {
	r := &reply{tool: &tool{}, room: 1000}
	r.snapshot(&browserv1.SnapshotResponse{Snapshot: &browserv1.Snapshot{}, Url: "http://127.0.0.1/"}, 0, snapshotDelta)
	r.snapshot(&browserv1.SnapshotResponse{Outline: proto.String(strings.Repeat("+ - paragraph: one more\n", 200))}, 0, snapshotDelta)
	all := strings.Join(r.pages, "\n")
	if strings.Contains(all, "offset") || !strings.Contains(all, "browser_snapshot shows the page as it is now") {
		t.Errorf("the reply says %s", all[max(len(all)-200, 0):])
	}
}
