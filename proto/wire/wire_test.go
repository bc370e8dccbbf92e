package wire_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// Guards the shape of the JSON: what is always written, what is left out, what is null, flat targets, words and times.
func TestMarshal(t *testing.T) {
	for _, c := range []struct {
		name string
		msg  proto.Message
		want string
	}{
		{
			"fields without presence are written, optional ones left out", &browserv1.ClickResponse{PageId: "p"},
			`{"page_id":"p","clicked":false,"navigation_occurred":false,"url":"","new_page_ids":[],"warnings":[]}`,
		},
		{
			"a target is flat", &browserv1.ClickRequest{SessionId: "s", Target: &browserv1.Target{Selector: proto.String("a")}, Modifiers: []browserv1.Modifier{browserv1.Modifier_MODIFIER_CONTROL}},
			`{"session_id":"s","selector":"a","modifiers":["control"],"force":false}`,
		},
		{
			"a target inside a drag is not", &browserv1.DragRequest{From: &browserv1.Target{Position: &browserv1.Position{X: 1.5, Y: -2}}},
			`{"session_id":"","from":{"position":{"x":1.5,"y":-2}}}`,
		},
		{"a dialog that is not there is null", &browserv1.GetDialogResponse{}, `{"dialog":null,"warnings":[]}`},
		{
			"a value that is not there is null", &browserv1.EvalResponse{PageId: "p", Type: "undefined", Unserializable: proto.String("undefined")},
			`{"page_id":"p","value":null,"type":"undefined","unserializable":"undefined","warnings":[]}`,
		},
		{
			"a word with dots", &browserv1.Snapshot{Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_JCODE_PAGE_SNAPSHOT_V1},
			`{"format":"jcode.page_snapshot.v1","nodes":[],"removed_refs":[]}`,
		},
		{
			"bytes, 64 bits", &browserv1.GetArtifactResponse{Data: []byte("hi?"), Size: 1 << 53, Eof: true},
			`{"data":"aGk/","media_type":"","size":9007199254740992,"eof":true,"warnings":[]}`,
		},
		{
			"a time", &browserv1.Session{CreatedAt: timestamppb.New(time.Date(2031, 2, 9, 18, 45, 0, 5e6, time.UTC)), State: browserv1.SessionState_SESSION_STATE_LOST},
			`{"session_id":"","client_session_id":"","provider_id":"","browser_family":"","state":"lost","created_at":"2031-02-09T18:45:00.005Z"}`,
		},
		{
			"maps in order of keys", &browserv1.GetStorageResponse{Items: map[string]string{"b": "2", "a": "\"\\\n\u2028\x00é"}},
			`{"items":{"a":"\"\\\n` + "\u2028" + `\u0000é","b":"2"},"warnings":[]}`,
		},
		{"numbers as JSON writes them", &browserv1.Position{X: 1e21, Y: math.NaN()}, `{"x":1e+21,"y":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := wire.Marshal(c.msg)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if !json.Valid(got) {
				t.Error("not JSON")
			}
		})
	}
}

// Guards the envelope's warnings: they leave the result.
func TestMarshalResponse(t *testing.T) {
	details, _ := structpb.NewStruct(map[string]any{"n": 1})
	result, warnings, err := wire.MarshalResponse(&browserv1.HoverResponse{PageId: "p", Warnings: []*browserv1.Warning{{Code: "reduced_fidelity", Message: "m", Details: details}}})
	if err != nil {
		t.Fatal(err)
	}
	if string(result) != `{"page_id":"p"}` || string(warnings) != `[{"code":"reduced_fidelity","message":"m","details":{"n":1}}]` {
		t.Errorf("%s %s", result, warnings)
	}
}

// Guards what is said of bad input: the code and the field, and the nearest known name.
func TestUnmarshalFaults(t *testing.T) {
	for _, c := range []struct{ name, in, field, says string }{
		{"unknown field", `{"slector":"a"}`, "slector", `"selector"`},
		{"unknown far field", `{"zzzzqqq":1}`, "zzzzqqq", "session_id"},
		{"number for a string", `{"selector":7}`, "selector", "a string"},
		{"string for an object", `{"position":"1,2"}`, "position", "an object"},
		{"nested unknown", `{"position":{"z":1}}`, "position.z", "x, y"},
		{"nested wrong type", `{"position":{"x":"1"}}`, "position.x", "a number"},
		{"unknown word", `{"button":"LEFT"}`, "button", "left, middle, right"},
		{"object for a list", `{"modifiers":{}}`, "modifiers", "a list"},
		{"wrong in a list", `{"modifiers":["alt",1]}`, "modifiers[1]", "one of"},
		{"fraction", `{"click_count":1.5}`, "click_count", "whole number"},
		{"too large", `{"timeout_ms":99999999999}`, "timeout_ms", "32 bits"},
		{"text for a boolean", `{"force":"yes"}`, "force", "true or false"},
		{"a list", `[]`, "", "an object"},
		{"null", `null`, "", "an object"},
		{"broken", `{"a":`, "", "not JSON"},
		{"two values", `{} {}`, "", "follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := wire.Unmarshal([]byte(c.in), &browserv1.ClickRequest{})
			if fault.CodeOf(err) != fault.InvalidRequest {
				t.Fatalf("got %v", err)
			}
			if got, _ := fault.From(err).Details[fault.KeyField].(string); got != c.field {
				t.Errorf("field %q, want %q", got, c.field)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
		})
	}
}

// Guards that what is written can be read again, for every message of the protocol.
func TestRoundTrip(t *testing.T) {
	for _, m := range catalog.All() {
		for _, msg := range []proto.Message{m.NewRequest(), m.NewResponse()} {
			fill(msg.ProtoReflect(), 0)
			data, err := wire.Marshal(msg)
			if err != nil {
				t.Fatal(err)
			}
			back := msg.ProtoReflect().New().Interface()
			if err := wire.Unmarshal(data, back); err != nil {
				t.Errorf("%s: %v in %s", m.Name, err, data)
				continue
			}
			if d := cmp.Diff(msg, back, protocmp.Transform()); d != "" {
				t.Errorf("%s: %s", m.Name, d)
			}
		}
	}
}

// FuzzUnmarshal guards the reader against anything that a client may send, and the writer against anything that was read.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`{"session_id":"s","position":{"x":1}}`, `{"selector":"\ud800"}`, `{"modifiers":["alt"]}`, `null`, `{"timeout_ms":1e3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		msg := &browserv1.ClickRequest{}
		if err := wire.Unmarshal(data, msg); err != nil {
			return
		}
		out, err := wire.Marshal(msg)
		if err != nil || !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%v: %q", err, out)
		}
		back := &browserv1.ClickRequest{}
		if err := wire.Unmarshal(out, back); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
	})
}

func BenchmarkMarshalSnapshot(b *testing.B) {
	s := &browserv1.Snapshot{}
	for range 10000 {
		s.Nodes = append(s.Nodes, &browserv1.Node{NodeId: "n1", Role: "button", Name: "Add 1", ElementRef: proto.String("d1e1"), Actionable: true})
	}
	msg := &browserv1.SnapshotResponse{Snapshot: s}
	for b.Loop() {
		if _, err := wire.Marshal(msg); err != nil {
			b.Fatal(err)
		}
	}
}

// What nobody can read for certain is refused with its place: a member that stands twice, and nesting without end.
func TestUnreadable(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ text, field string }{
		{`{"expression":"1","expression":"2"}`, "expression"},
		{`{"session_id":"s","args":[{"a":1,"b":{"c":1,"c":1}}]}`, "args.b.c"},
		{`{"args":` + nested(1200) + `}`, "args"},
		{`{"args":` + nested(100_000) + `}`, "args"},
	} {
		err := wire.Unmarshal([]byte(c.text), &browserv1.EvalRequest{})
		if e := fault.From(err); e.Code != fault.InvalidRequest || e.Details["field"] != c.field {
			t.Errorf("%.60s: %v %v", c.text, err, e.Details)
		}
	}
	req := &browserv1.EvalRequest{}
	if err := wire.Unmarshal([]byte(`{"args":`+nested(900)+`}`), req); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(data, &browserv1.EvalRequest{}); err != nil {
		t.Errorf("what is let through cannot be carried: %v", err)
	}
	if _, err := wire.ParseValue([]byte(nested(1200))); fault.CodeOf(err) != fault.InvalidRequest {
		t.Errorf("a deep value: %v", err)
	}
	if v, err := wire.ParseValue([]byte(`"[[` + strings.Repeat(`[\"`, 2000) + `"`)); err != nil || v.GetStringValue() == "" {
		t.Errorf("brackets in a string: %v", err)
	}
}

// A position is whole or refused, and its corner is one.
func TestHalfAPosition(t *testing.T) {
	for text, field := range map[string]string{
		`{"position":{}}`: "position.x", `{"position":{"x":1}}`: "position.y", `{"position":{"x":null,"y":2}}`: "position.x",
	} {
		if e := fault.From(wire.Unmarshal([]byte(text), &browserv1.ClickRequest{})); e.Code != fault.InvalidRequest || e.Details["field"] != field {
			t.Errorf("%s: %v %v", text, e, e.Details)
		}
	}
	req := &browserv1.ClickRequest{}
	if err := wire.Unmarshal([]byte(`{"position":{"x":0,"y":0}}`), req); err != nil || req.GetTarget().GetPosition() == nil {
		t.Errorf("the corner: %v, %v", err, req)
	}
}
