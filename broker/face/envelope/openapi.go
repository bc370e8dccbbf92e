package envelope

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// node is a part of the OpenAPI document.
type node = map[string]any

// openAPI writes the document once, at the first request for it.
var openAPI = sync.OnceValues(func() ([]byte, error) { return json.Marshal(document()) })

// describe answers GET /v1/openapi.json.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	doc, err := openAPI()
	if err != nil {
		writeError(w, http.StatusInternalServerError, fault.New(fault.InternalError, "the document cannot be written").Cause(err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(doc)
}

// document is the HTTP face as OpenAPI 3.1 tells it, derived from the catalog: every method that a call over HTTP reaches
// has an envelope for its request and one for its answer.
func document() node {
	schemas := node{"error": errorSchema(), "warning": warningSchema(), "failure": envelopeSchema("A call that failed.", node{
		"ok": node{"const": false}, "error": ref("error"),
	}, "ok", "error")}
	var calls, answers []any
	mapping := node{}
	for _, m := range catalog.All() {
		if a := m.Spec.GetAnswerer(); a == browserv1.Answerer_ANSWERER_FACE || a == browserv1.Answerer_ANSWERER_HOST {
			continue
		}
		params, result := catalog.Schema(m)
		needs := []string{"protocol_version", "id", "method"}
		if _, ok := params["required"]; ok {
			needs = append(needs, "params")
		}
		call, reply := m.Name+".call", m.Name+".answer"
		schemas[call] = node{
			"type": "object", "title": m.Name, "description": m.Doc, "additionalProperties": false, "required": needs,
			"properties": node{
				"protocol_version": node{"const": catalog.Version}, "id": idSchema(), "method": node{"const": m.Name}, "params": params,
			},
		}
		schemas[reply] = envelopeSchema("The answer to "+m.Name+".", node{
			"ok": node{"const": true}, "result": result, "warnings": node{"type": "array", "items": ref("warning")},
		}, "ok", "result", "warnings")
		calls, answers = append(calls, ref(call)), append(answers, ref(reply))
		mapping[m.Name] = "#/components/schemas/" + call
	}
	callBody := node{"oneOf": calls, "discriminator": node{"propertyName": "method", "mapping": mapping}}
	return node{
		"openapi": "3.1.0", "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": node{
			"title": "Drover", "version": catalog.Version, "license": node{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Browsers of every engine behind one protocol. Each call is an envelope; the same envelopes are spoken over stdio, the unix socket and the WebSocket.",
		},
		"servers":  []any{node{"url": "/", "description": "The daemon, on the address that drover serve prints."}},
		"security": []any{node{"bearer": []any{}}},
		"components": node{
			"securitySchemes": node{"bearer": node{"type": "http", "scheme": "bearer", "description": "A token that drover token made."}},
			"schemas":         schemas,
		},
		"paths": paths(callBody, node{"anyOf": answers}),
	}
}

func paths(call, answer node) node {
	get := func(id, summary string, responses node, parameters ...any) node {
		op := node{"operationId": id, "summary": summary, "responses": responses}
		if len(parameters) > 0 {
			op["parameters"] = parameters
		}
		return node{"get": op}
	}
	open := func(path node) node {
		for _, op := range path {
			op.(node)["security"] = []any{}
		}
		return path
	}
	text := func(description string) node {
		return node{"200": content(description, "text/plain", node{"type": "string"})}
	}
	responses := failures()
	responses["200"] = content("The call's answer.", "application/json", answer)
	return node{
		"/v1/call": node{"post": node{
			"operationId": "call", "summary": "Call a method",
			"requestBody": node{"required": true, "content": node{"application/json": node{"schema": call}}},
			"responses":   responses,
		}},
		"/v1/ws": get("socket", "Speak envelopes over a WebSocket, with events", node{"101": node{"description": "Envelopes, one a text frame, both ways."}}),
		"/v1/events": get("events", "Stream what happens in the caller's sessions", withFailures(node{
			"200": content("Server-sent events; data is an envelope with event and payload.", "text/event-stream", node{"type": "string"}),
		}, 400, 404),
			queryList("types", "Event types; all when left out.", node{"type": "string", "enum": broker.EventTypes()}),
			queryList("session_ids", "Sessions; all of the caller's when left out.", node{"type": "string"})),
		"/v1/artifacts/{ref}": get("artifact", "Read a picture or file that a call left behind", withFailures(node{
			"200": node{"description": "The bytes, as an attachment.", "content": node{"*/*": node{"schema": node{}}}},
		}, 400, 404),
			node{"name": "ref", "in": "path", "required": true, "description": "The reference, which may have slashes.", "schema": node{"type": "string"}},
			node{"name": "session_id", "in": "query", "required": true, "schema": node{"type": "string"}}),
		"/v1/openapi.json": get("openapi", "This document", node{"200": content("OpenAPI 3.1.", "application/json", node{"type": "object"})}),
		"/metrics":         get("metrics", "Counters for Prometheus", text("The text format of Prometheus.")),
		"/livez":           open(get("livez", "Whether the daemon runs", text("It does."))),
		"/readyz": open(get("readyz", "Whether a provider may take a session", node{
			"200": text("One may.")["200"], "503": content("None is ready.", "text/plain", node{"type": "string"}),
		})),
	}
}

func ref(schema string) node { return node{"$ref": "#/components/schemas/" + schema} }

func content(description, kind string, schema node) node {
	return node{"description": description, "content": node{kind: node{"schema": schema}}}
}

func queryList(name, description string, items node) node {
	return node{
		"name": name, "in": "query", "description": description, "style": "form", "explode": false,
		"schema": node{"type": "array", "items": items},
	}
}

func idSchema() node { return node{"type": []string{"string", "number"}} }

// envelopeSchema is an answer with these members beside those that all have.
func envelopeSchema(description string, members node, required ...string) node {
	members["protocol_version"] = node{"const": catalog.Version}
	members["id"] = node{"type": []string{"string", "number", "null"}}
	return node{"type": "object", "description": description, "properties": members, "required": append([]string{"protocol_version", "id"}, required...)}
}

func errorSchema() node {
	words := make([]string, 0, len(statuses))
	for code := range statuses {
		words = append(words, fault.Word(code))
	}
	slices.Sort(words)
	return node{
		"type": "object", "required": []string{"code", "message", "retryable", "details"},
		"properties": node{
			"code": node{"type": "string", "enum": words}, "message": node{"type": "string"}, "retryable": node{"type": "boolean"},
			"details": node{"type": "object", "description": "reason says more than the code; retry, retry_after_ms, field, provider_id and method where they apply."},
		},
	}
}

func warningSchema() node {
	return node{
		"type": "object", "required": []string{"code", "message"},
		"properties": node{"code": node{"type": "string"}, "message": node{"type": "string"}, "details": node{"type": "object"}},
	}
}

// failures are the answers to calls that fail, by status, each with the codes that it stands for.
func failures() node {
	codes := map[int][]string{
		http.StatusUnauthorized: {"permission_denied"}, http.StatusRequestEntityTooLarge: {"invalid_request"},
		http.StatusUnsupportedMediaType: {"invalid_request"}, http.StatusTooManyRequests: {"not_ready"},
	}
	for code, status := range statuses {
		codes[status] = append(codes[status], fault.Word(code))
	}
	out := node{}
	for status, words := range codes {
		slices.Sort(words)
		out[strconv.Itoa(status)] = content(strings.Join(words, ", "), "application/json", ref("failure"))
	}
	return out
}

// withFailures adds those of these statuses, and those of the door.
func withFailures(responses node, statuses ...int) node {
	all := failures()
	for _, status := range append(statuses, http.StatusUnauthorized, http.StatusForbidden) {
		responses[strconv.Itoa(status)] = maps.Clone(all[strconv.Itoa(status)].(node))
	}
	return responses
}
