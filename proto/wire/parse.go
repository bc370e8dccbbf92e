package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/droverhq/drover/proto/fault"
)

// maxDepth is how deep lists and objects may be nested. Protobuf ends at 10,000 messages within one another, of which a
// level of google.protobuf.Value takes two, and what others do with a value should not end at theirs.
const maxDepth = 1000

// parse reads one JSON value as encoding/json does with UseNumber, but refuses a member that an object has twice, for
// which of the two was meant nobody knows (RFC 8259, section 4), and what is nested deeper than maxDepth.
func parse(data []byte) (any, error) {
	p := parser{dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.InvalidRequest, "something follows the JSON value")
	}
	return v, nil
}

// Check refuses a JSON text that is none, or that nobody can read for certain, as Unmarshal does: for a face that takes some
// members out of it before.
func Check(data []byte) error {
	_, err := parse(data)
	return err
}

type parser struct{ dec *json.Decoder }

func (p parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "not JSON: %v", err).Cause(err)
	}
	return t, nil
}

func (p parser) value(path string, depth int) (any, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		if depth == maxDepth {
			return nil, tooDeep(path)
		}
	}
	switch t {
	case json.Delim('{'):
		return p.object(path, depth+1)
	case json.Delim('['):
		return p.list(path, depth+1)
	}
	return t, nil
}

func (p parser) object(path string, depth int) (any, error) {
	obj := map[string]any{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		at := inside(path, name)
		if _, ok := obj[name]; ok {
			return nil, fault.New(fault.InvalidRequest, "%s stands twice", at).Field(at)
		}
		if obj[name], err = p.value(at, depth); err != nil {
			return nil, err
		}
	}
	_, err := p.token()
	return obj, err
}

func (p parser) list(path string, depth int) (any, error) {
	list := []any{}
	for p.dec.More() {
		v, err := p.value(path, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.token()
	return list, err
}

// inside is the path of a member, as long as it is short enough to be told.
func inside(path, name string) string {
	if len(path) > 200 {
		return path
	}
	return join(path, name)
}

func tooDeep(path string) error {
	e := fault.New(fault.InvalidRequest, "lists and objects are nested deeper than %d levels", maxDepth).With("limit", maxDepth)
	if path == "" {
		return e
	}
	e.Message = fmt.Sprintf("in %s, %s", path, e.Message)
	return e.Field(path)
}

// deep says whether a JSON text nests deeper than maxDepth. It does not test that it is JSON.
func deep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
