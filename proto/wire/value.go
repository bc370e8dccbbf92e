package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/proto/fault"
)

// ToValue gives anything that encoding/json can write as a protobuf value with valid UTF-8.
func ToValue(v any) (*structpb.Value, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fault.New(fault.InternalError, "not a JSON value: %v", err).Cause(err)
	}
	return ParseValue(data)
}

// ParseValue reads a JSON text as a protobuf value.
func ParseValue(data []byte) (*structpb.Value, error) {
	if deep(data) {
		return nil, tooDeep("")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return nil, fault.New(fault.InvalidRequest, "not JSON: %v", err).Cause(err)
	}
	return jsonValue(x), nil
}

// ToStruct gives a map or struct that encoding/json can write as a protobuf struct with valid UTF-8.
func ToStruct(v any) (*structpb.Struct, error) {
	val, err := ToValue(v)
	if err != nil {
		return nil, err
	}
	s := val.GetStructValue()
	if s == nil {
		return nil, fault.New(fault.InternalError, "not a JSON object")
	}
	return s, nil
}

// jsonValue turns what encoding/json reads (with UseNumber) into a protobuf value.
func jsonValue(v any) *structpb.Value {
	switch v := v.(type) {
	case string:
		return structpb.NewStringValue(strings.ToValidUTF8(v, "\uFFFD"))
	case bool:
		return structpb.NewBoolValue(v)
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return structpb.NewStringValue(v.String())
		}
		return structpb.NewNumberValue(f)
	case []any:
		l := make([]*structpb.Value, len(v))
		for i, x := range v {
			l[i] = jsonValue(x)
		}
		return structpb.NewListValue(&structpb.ListValue{Values: l})
	case map[string]any:
		s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(v))}
		for k, x := range v {
			s.Fields[strings.ToValidUTF8(k, "\uFFFD")] = jsonValue(x)
		}
		return structpb.NewStructValue(s)
	}
	return structpb.NewNullValue()
}
