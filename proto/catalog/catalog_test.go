package catalog_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// Guards the declarations: every method is told in words, and names, tools and command lines are never used twice.
func TestEveryMethodIsDeclaredWhole(t *testing.T) {
	if len(catalog.All()) < 45 {
		t.Fatalf("only %d methods", len(catalog.All()))
	}
	tools, words := map[string]string{}, map[string]string{}
	for _, m := range catalog.All() {
		if m.Doc == "" {
			t.Errorf("%s has no comment", m.Name)
		}
		for _, f := range m.Spec.GetFeatures() {
			if !catalog.IsFeature(f) {
				t.Errorf("%s needs %q, which is no feature", m.Name, f)
			}
		}
		for _, f := range m.Spec.GetUrlFields() {
			if m.Request.Descriptor().Fields().ByTextName(f) == nil {
				t.Errorf("%s guards %q, which is no field", m.Name, f)
			}
		}
		unique(t, tools, m.Spec.GetMcpTool(), m.Name)
		unique(t, words, m.Spec.GetCli(), m.Name)
		if in, out := catalog.Schema(m); in["type"] != "object" || out["type"] != "object" {
			t.Errorf("%s: schemas %v, %v", m.Name, in["type"], out["type"])
		}
	}
}

func unique(t *testing.T, seen map[string]string, word, method string) {
	t.Helper()
	if word == "" {
		return
	}
	if other, twice := seen[word]; twice {
		t.Errorf("%q stands for %s and for %s", word, other, method)
	}
	seen[word] = method
}

// Guards the words of a bad request: the code, and the field that is wrong.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, method, params, field string }{
		{"no target", "page.click", `{"session_id":"s"}`, "element_ref"},
		{"two targets", "page.click", `{"session_id":"s","selector":"a","text_query":"b"}`, "text_query"},
		{"long name", "session.ensure", `{"client_session_id":"` + strings.Repeat("a", 1025) + `"}`, "client_session_id"},
		{"empty ref", "page.click", `{"session_id":"s","element_ref":""}`, "element_ref"},
		{"no url", "page.open", `{"session_id":"s"}`, "url"},
		{"no session", "page.snapshot", `{}`, "session_id"},
		{"timeout 0", "page.snapshot", `{"session_id":"s","timeout_ms":0}`, "timeout_ms"},
		{"empty page", "tab.activate", `{"session_id":"s","page_id":""}`, "page_id"},
		{"no condition", "page.wait", `{"session_id":"s"}`, "text_present"},
		{"unknown feature", "session.ensure", `{"client_session_id":"a","require_features":["framez"]}`, "require_features[0]"},
		{"unknown method", "session.ensure", `{"client_session_id":"a","require_methods":["page.clik"]}`, "require_methods[0]"},
		{"no choice", "page.select", `{"session_id":"s","selector":"a"}`, "values"},
		{"both regions", "page.screenshot", `{"session_id":"s","element_ref":"e","clip":{"x":1,"y":1,"width":2,"height":2}}`, "element_ref"},
		{"clip without size", "page.screenshot", `{"session_id":"s","clip":{"x":1,"y":1,"height":2}}`, "clip.width"},
		{"drag to nothing", "page.drag", `{"session_id":"s","from":{"selector":"a"},"to":{}}`, "to.element_ref"},
		{"no action", "dialog.respond", `{"session_id":"s"}`, "action"},
		{"nothing to clear", "storage.clear", `{"session_id":"s"}`, "area"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, req := request(t, c.method, c.params)
			err := m.Check(req)
			if fault.CodeOf(err) != fault.InvalidRequest {
				t.Fatalf("got %v", err)
			}
			if got := fault.From(err).Details[fault.KeyField]; got != c.field {
				t.Errorf("field %v, want %s: %v", got, c.field, err)
			}
		})
	}
	for _, c := range []struct{ method, params string }{
		{"page.type", `{"session_id":"s","text":""}`},
		{"page.type", `{"session_id":"s","text":"a","frame_ref":"e1"}`},
		{"page.click", `{"session_id":"s","position":{"x":0,"y":0}}`},
		{"page.press", `{"session_id":"s","key":"Enter"}`},
		{"page.wait", `{"session_id":"s","navigation_complete":true}`},
		{"session.ensure", `{"client_session_id":"a","viewport":{"width":800,"height":600}}`},
		{"download.wait", `{"session_id":"s"}`},
	} {
		m, req := request(t, c.method, c.params)
		if err := m.Check(req); err != nil {
			t.Errorf("%s %s: %v", c.method, c.params, err)
		}
	}
}

func request(t *testing.T, method, params string) (*catalog.Method, proto.Message) {
	t.Helper()
	m, ok := catalog.Lookup(method)
	if !ok {
		t.Fatalf("no method %s", method)
	}
	req := m.NewRequest()
	if err := wire.Unmarshal([]byte(params), req); err != nil {
		t.Fatal(err)
	}
	return m, req
}
