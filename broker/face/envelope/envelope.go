// Package envelope is the face that speaks the protocol's JSON envelope: one message a line on stdio and the unix socket,
// one a frame on the WebSocket, one a body over HTTP.
//
// A request is {"protocol_version","id","method","params"}; it is answered, in the order that calls end, by
// {"protocol_version","id","ok":true,"result","warnings"} or {"protocol_version","id","ok":false,"error"}. Events are
// {"protocol_version","event","payload"} and come only after events.subscribe.
package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// MaxMessage is the size of the largest message that is read, in bytes.
const MaxMessage = 64 << 20

// request is one message as it came.
type request struct {
	id     json.RawMessage // as it came; nil when there was none that could be read
	method string
	params json.RawMessage
}

// fields are the members of a request.
var fields = []string{"protocol_version", "id", "method", "params"}

// parse reads a request. When it returns an error, the id is still set if it could be read.
func parse(msg []byte) (request, error) {
	var r request
	members, err := object(msg)
	if err != nil {
		return r, err
	}
	id, hasID := members["id"]
	if hasID && isID(id) {
		r.id = id
	}
	if err := checkMembers(members); err != nil {
		return r, err
	}
	switch {
	case !hasID:
		return r, fault.New(fault.InvalidRequest, "id is missing").Field("id").Hint("give every request an id, a string or a number")
	case r.id == nil:
		return r, fault.New(fault.InvalidRequest, "id must be a string or a number, not %s", clip(id)).Field("id")
	}
	if raw := members["method"]; json.Unmarshal(raw, &r.method) != nil || raw[0] != '"' || r.method == "" {
		return r, fault.New(fault.InvalidRequest, "method must be a string, not %s", clip(raw)).Field("method")
	}
	r.params = json.RawMessage("{}")
	if raw, ok := members["params"]; ok {
		if raw[0] != '{' {
			return r, fault.New(fault.InvalidRequest, "params must be an object, not %s", clip(raw)).Field("params")
		}
		r.params = raw
	}
	return r, nil
}

// object reads the members of a JSON object, and refuses one that has a member twice.
func object(msg []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(msg) {
		return nil, notJSON("it is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(msg))
	switch t, err := dec.Token(); {
	case err != nil:
		return nil, notJSON(err.Error())
	case t != json.Delim('{'):
		return nil, fault.New(fault.InvalidRequest, "a request must be a JSON object, not %s", clip(msg))
	}
	members := map[string]json.RawMessage{}
	twice := ""
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, notJSON(err.Error())
		}
		name, _ := key.(string)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, notJSON(err.Error())
		}
		if _, ok := members[name]; ok {
			twice = name
		}
		members[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, notJSON("something follows the object")
	}
	if twice != "" {
		return nil, fault.New(fault.InvalidRequest, "%q stands twice", twice).Field(twice)
	}
	return members, nil
}

func notJSON(why string) error {
	return fault.New(fault.InvalidRequest, "the message is not JSON: %s", why).Hint("send one JSON object a line")
}

// checkMembers tests the version and that nothing is there that the protocol does not know.
func checkMembers(members map[string]json.RawMessage) error {
	raw, ok := members["protocol_version"]
	var version string
	switch {
	case !ok:
		return fault.New(fault.InvalidRequest, "protocol_version is missing; this broker speaks %q", catalog.Version).Field("protocol_version")
	case json.Unmarshal(raw, &version) != nil || version != catalog.Version:
		return fault.New(fault.InvalidRequest, "protocol_version %s is not spoken here; this broker speaks %q", clip(raw), catalog.Version).Field("protocol_version")
	}
	unknown := ""
	for name := range members {
		if !isField(name) && (unknown == "" || name < unknown) {
			unknown = name
		}
	}
	if unknown == "" {
		if _, ok := members["method"]; !ok {
			return fault.New(fault.InvalidRequest, "method is missing").Field("method")
		}
		return nil
	}
	e := fault.New(fault.InvalidRequest, "a request has no member %q", unknown).Field(unknown)
	if n := wire.Nearest(unknown, fields); n != "" {
		return e.Hint("did you mean %q?", n).With("nearest", n)
	}
	return e.Hint("what a method takes stands in params")
}

func isField(name string) bool {
	for _, f := range fields {
		if f == name {
			return true
		}
	}
	return false
}

// isID says whether raw JSON is a string or a number.
func isID(raw json.RawMessage) bool {
	return raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
}

// sameID gives ids that mean the same the same key: text by what it says, numbers as they are written.
func sameID(raw json.RawMessage) string {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return `"` + s
	}
	return string(raw)
}

// clip shows the beginning of what was sent.
func clip(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= 40 {
		return string(raw)
	}
	cut := 37
	for cut > 0 && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return string(raw[:cut]) + "..."
}

// read finds the method of a request and reads its params.
func (r request) read() (*catalog.Method, proto.Message, error) {
	m, ok := catalog.Lookup(r.method)
	if !ok {
		e := fault.New(fault.UnsupportedMethod, "there is no method %q", clip([]byte(r.method))).Method(clip([]byte(r.method)))
		if n := catalog.Nearest(r.method); n != "" {
			e.Hint("did you mean %s?", n).With("nearest", n)
		}
		return nil, nil, e
	}
	req := m.NewRequest()
	if err := wire.Unmarshal(r.params, req); err != nil {
		return nil, nil, fault.From(err).Clone().Method(m.Name)
	}
	return m, req, nil
}

const head = `{"protocol_version":"` + catalog.Version + `"`

// answer gives the response to a request; a nil id is null.
func answer(id json.RawMessage, resp proto.Message, err error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if err == nil {
		result, warnings, merr := wire.MarshalResponse(resp)
		if merr == nil {
			b := make([]byte, 0, len(head)+len(id)+len(result)+len(warnings)+48)
			b = append(append(append(b, head...), `,"id":`...), id...)
			b = append(append(b, `,"ok":true,"result":`...), result...)
			b = append(append(b, `,"warnings":`...), warnings...)
			return append(b, '}')
		}
		err = fmt.Errorf("write the response: %w", merr)
	}
	e, merr := wire.Marshal(fault.From(err).Proto())
	if merr != nil {
		e = []byte(`{"code":"internal_error","message":` + strconv.Quote("the error cannot be written") + `,"retryable":false,"details":{}}`)
	}
	b := make([]byte, 0, len(head)+len(id)+len(e)+32)
	b = append(append(append(b, head...), `,"id":`...), id...)
	b = append(append(b, `,"ok":false,"error":`...), e...)
	return append(b, '}')
}

// announce gives an event; nil for one that cannot be written.
func announce(ev *browserv1.Event) []byte {
	name, err := json.Marshal(ev.GetType())
	if err != nil {
		return nil
	}
	payload, err := wire.Marshal(ev.GetPayload())
	if err != nil {
		return nil
	}
	b := append(append([]byte(head), `,"event":`...), name...)
	b = append(append(b, `,"payload":`...), payload...)
	return append(b, '}')
}
