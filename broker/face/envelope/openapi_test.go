package envelope

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// fetch gives the document as a client gets it.
func (w *web) openAPI() node {
	w.t.Helper()
	resp, body := w.raw(strings.Replace(routes["openapi"], "HEADERS", "Host: {HOST}\n"+auth, 1))
	var doc node
	if err := json.Unmarshal([]byte(body), &doc); err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/json" {
		w.t.Fatalf("%d %v", resp.StatusCode, err)
	}
	return doc
}

// at follows a path of keys.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for i, key := range path {
		m, ok := v.(node)
		if v = m[key]; !ok || v == nil {
			t.Fatalf("there is no %s", strings.Join(path[:i+1], " > "))
		}
	}
	return v
}

// walk visits every object within.
func walk(v any, visit func(node)) {
	switch v := v.(type) {
	case node:
		visit(v)
		for _, x := range v {
			walk(x, visit)
		}
	case []any:
		for _, x := range v {
			walk(x, visit)
		}
	}
}

// The document has the form that OpenAPI 3.1.0 asks for: its references lead somewhere, operations have ids of their own and
// described responses, path parameters are declared, names of components are legal, and schemas are JSON Schema.
func TestOpenAPIForm(t *testing.T) {
	doc := serveWeb(t).openAPI()
	if doc["openapi"] != "3.1.0" || at(t, doc, "info", "title") == "" || at(t, doc, "info", "version") != catalog.Version {
		t.Errorf("the head is %v %v", doc["openapi"], doc["info"])
	}
	legal := regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
	schemas := at(t, doc, "components", "schemas").(node)
	for name := range schemas {
		if !legal.MatchString(name) {
			t.Errorf("a component is called %q", name)
		}
	}
	walk(doc, func(n node) {
		if r, ok := n["$ref"].(string); ok {
			name, found := strings.CutPrefix(r, "#/components/schemas/")
			if _, ok := schemas[name]; !ok || !found {
				t.Errorf("%s leads nowhere", r)
			}
		}
	})
	compile(t, doc, ref("failure")) // and with it every component
	ids := map[string]bool{}
	for path, item := range at(t, doc, "paths").(node) {
		for method, x := range item.(node) {
			op := x.(node)
			id, _ := op["operationId"].(string)
			if id == "" || ids[id] || op["summary"] == "" {
				t.Errorf("%s %s has the id %q", method, path, id)
			}
			ids[id] = true
			responses, _ := op["responses"].(node)
			if len(responses) == 0 {
				t.Errorf("%s has no responses", path)
			}
			for status, r := range responses {
				if d, _ := r.(node)["description"].(string); d == "" || !regexp.MustCompile(`^[1-5]\d\d$`).MatchString(status) {
					t.Errorf("%s: the response %s says %q", path, status, d)
				}
			}
			declared := ""
			params, _ := op["parameters"].([]any)
			for _, p := range params {
				if p := p.(node); p["in"] == "path" {
					declared += fmt.Sprintf("{%v}", p["name"])
					if p["required"] != true {
						t.Errorf("%s: a path parameter is not required", path)
					}
				}
			}
			if strings.Join(regexp.MustCompile(`\{[^}]*\}`).FindAllString(path, -1), "") != declared {
				t.Errorf("%s declares %q", path, declared)
			}
		}
	}
	for route, request := range routes {
		method, path, _ := strings.Cut(strings.SplitN(request, " HTTP", 2)[0], " ")
		path, _, _ = strings.Cut(path, "?")
		if route == "mcp" || route == "nothing" {
			continue
		}
		if route == "artifacts" {
			path = "/v1/artifacts/{ref}"
		}
		at(t, doc, "paths", path, strings.ToLower(method))
	}
}

// compile makes a validator of a schema of the document.
func compile(t *testing.T, doc node, schema node) *jsonschema.Resolved {
	t.Helper()
	schema = node{"$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": []any{schema}, "$defs": at(t, doc, "components", "schemas")}
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "#/components/schemas/", "#/$defs/")), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What the document says of POST /v1/call is what is spoken: every method that can be called has its envelope, a call that
// is right fits one of them, its answer fits the answers, one with a wrong field fits none, and errors fit theirs.
func TestOpenAPICalls(t *testing.T) {
	w := serveWeb(t)
	doc := w.openAPI()
	post := at(t, doc, "paths", "/v1/call", "post")
	body := at(t, post, "requestBody", "content", "application/json", "schema").(node)
	mapping := at(t, body, "discriminator", "mapping").(node)
	for _, m := range catalog.All() {
		_, ok := mapping[m.Name]
		reached := !slices.Contains([]browserv1.Answerer{browserv1.Answerer_ANSWERER_FACE, browserv1.Answerer_ANSWERER_HOST}, m.Spec.GetAnswerer())
		if ok != reached {
			t.Errorf("%s is in the document: %t", m.Name, ok)
		}
	}
	calls := compile(t, doc, body)
	answers := compile(t, doc, at(t, post, "responses", "200", "content", "application/json", "schema").(node))
	failed := compile(t, doc, at(t, post, "responses", "404", "content", "application/json", "schema").(node))
	_, out := w.call(w.ann, ensureBody)
	s, _ := out["result"].(node)["session_id"].(string)
	for _, tt := range []struct {
		text string
		good bool
	}{
		{ensureBody, true},
		{`{"protocol_version":"0.1","id":"x","method":"page.open","params":{"session_id":"` + s + `","url":"https://example.com/"}}`, true},
		{`{"protocol_version":"0.1","id":"x","method":"page.click","params":{"session_id":"` + s + `","selector":"a"}}`, true},
		{`{"protocol_version":"0.1","id":"x","method":"provider.status"}`, true},
		{`{"protocol_version":"0.1","id":"x","method":"page.open","params":{"session_id":"` + s + `"}}`, false},
		{`{"protocol_version":"0.1","id":"x","method":"page.open","params":{"session_id":"` + s + `","ulr":"https://example.com/"}}`, false},
		{`{"protocol_version":"0.1","id":"x","method":"page.nope"}`, false},
		{`{"id":"x","method":"provider.status"}`, false},
	} {
		var msg any
		if err := json.Unmarshal([]byte(tt.text), &msg); err != nil {
			t.Fatal(err)
		}
		resp, out := w.call(w.ann, tt.text)
		if err := calls.Validate(msg); (err == nil) != tt.good || (resp.StatusCode == http.StatusOK) != tt.good {
			t.Errorf("%s: %d, the document says %v", tt.text, resp.StatusCode, err)
		}
		fits := answers
		if !tt.good {
			fits = failed
			if _, ok := at(t, post, "responses").(node)[fmt.Sprint(resp.StatusCode)]; !ok {
				t.Errorf("the status %d is not in the document", resp.StatusCode)
			}
		}
		if err := fits.Validate(any(out)); err != nil {
			t.Errorf("%s: the answer %v does not fit: %v", tt.text, out, err)
		}
	}
}
