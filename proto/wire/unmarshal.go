package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/droverhq/drover/proto/fault"
)

// Unmarshal reads the protocol's JSON into a message. What does not fit is invalid_request: the message names the field
// and, for an unknown one, the nearest that is known. A null is a field that is not set.
func Unmarshal(data []byte, m proto.Message) error {
	v, err := parse(data)
	if err != nil {
		return err
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return fault.New(fault.InvalidRequest, "must be an object, not %s", kindOf(v))
	}
	return setFields(m.ProtoReflect(), obj, "")
}

func setFields(m protoreflect.Message, obj map[string]any, path string) error {
	p := planOf(m.Descriptor())
	keys := make([]string, 0, len(obj))
	for k := range obj {
		keys = append(keys, k)
	}
	slices.Sort(keys) // so that the first error is always the same one
	for _, k := range keys {
		f, ok := p.byName[k]
		if !ok {
			return unknownField(join(path, k), k, p.names)
		}
		if obj[k] == nil && !isValue(f.fd) {
			continue
		}
		in := m
		if f.via != nil {
			in = m.Mutable(f.via).Message()
		}
		if err := setField(in, f, obj[k], join(path, k)); err != nil {
			return err
		}
	}
	return whole(p, obj, path)
}

// whole refuses an object within a request that lacks a field which it must have, and of which the message cannot tell
// whether it was given: a position is none without its x.
func whole(p *plan, obj map[string]any, path string) error {
	if path == "" {
		return nil // the catalog tells what a method needs
	}
	for _, f := range p.fields {
		if f.required && !f.presence && obj[f.name] == nil {
			return fault.New(fault.InvalidRequest, "%s is required", join(path, f.name)).Field(join(path, f.name))
		}
	}
	return nil
}

func setField(m protoreflect.Message, f *fieldPlan, v any, path string) error {
	switch {
	case f.fd.IsMap():
		obj, ok := v.(map[string]any)
		if !ok {
			return wrongType(path, "an object", v)
		}
		mp := m.Mutable(f.fd).Map()
		for k, x := range obj {
			val, err := singular(func() protoreflect.Value { return mp.NewValue() }, f.fd.MapValue(), x, join(path, k))
			if err != nil {
				return err
			}
			mp.Set(protoreflect.ValueOfString(k).MapKey(), val)
		}
		return nil
	case f.fd.IsList():
		arr, ok := v.([]any)
		if !ok {
			return wrongType(path, "a list", v)
		}
		l := m.Mutable(f.fd).List()
		for i, x := range arr {
			val, err := singular(func() protoreflect.Value { return l.NewElement() }, f.fd, x, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return err
			}
			l.Append(val)
		}
		return nil
	}
	val, err := singular(func() protoreflect.Value { return m.NewField(f.fd) }, f.fd, v, path)
	if err != nil {
		return err
	}
	m.Set(f.fd, val)
	return nil
}

// singular reads one value; fresh makes an empty message where the field holds one.
func singular(fresh func() protoreflect.Value, fd protoreflect.FieldDescriptor, v any, path string) (protoreflect.Value, error) {
	none := protoreflect.Value{}
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		msg := fresh()
		return msg, setMessage(msg.Message(), v, path)
	case protoreflect.StringKind:
		s, ok := v.(string)
		if !ok {
			return none, wrongType(path, "a string", v)
		}
		return protoreflect.ValueOfString(s), nil
	case protoreflect.BoolKind:
		b, ok := v.(bool)
		if !ok {
			return none, wrongType(path, "true or false", v)
		}
		return protoreflect.ValueOfBool(b), nil
	case protoreflect.EnumKind:
		s, ok := v.(string)
		e := enumOf(fd.Enum())
		if !ok {
			return none, wrongType(path, "one of "+strings.Join(e.list, ", "), v)
		}
		n, ok := e.values[s]
		if !ok {
			return none, fault.New(fault.InvalidRequest, "%s must be one of %s, not %q", path, strings.Join(e.list, ", "), s).Field(path)
		}
		return protoreflect.ValueOfEnum(n), nil
	case protoreflect.BytesKind:
		s, ok := v.(string)
		if !ok {
			return none, wrongType(path, "base64", v)
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return none, fault.New(fault.InvalidRequest, "%s is not base64", path).Field(path).Cause(err)
		}
		return protoreflect.ValueOfBytes(b), nil
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		n, ok := v.(json.Number)
		if !ok {
			return none, wrongType(path, "a number", v)
		}
		x, err := n.Float64()
		if err != nil || math.IsInf(x, 0) {
			return none, fault.New(fault.InvalidRequest, "%s is out of range", path).Field(path)
		}
		return protoreflect.ValueOfFloat64(x), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := integer(v, 32, path)
		return protoreflect.ValueOfInt32(int32(n)), err //nolint:gosec // integer kept it within 32 bits
	default:
		n, err := integer(v, 64, path)
		return protoreflect.ValueOfInt64(n), err
	}
}

func setMessage(m protoreflect.Message, v any, path string) error {
	switch x := m.Interface().(type) {
	case *timestamppb.Timestamp:
		s, ok := v.(string)
		if !ok {
			return wrongType(path, "an RFC 3339 time", v)
		}
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return fault.New(fault.InvalidRequest, "%s must be an RFC 3339 time such as 2031-02-09T18:45:00Z, not %q", path, s).Field(path).Cause(err)
		}
		x.Seconds, x.Nanos = t.Unix(), int32(t.Nanosecond()) //nolint:gosec // below 1e9
		return nil
	case *structpb.Value:
		x.Kind = jsonValue(v).Kind
		return nil
	case *structpb.Struct:
		obj, ok := v.(map[string]any)
		if !ok {
			return wrongType(path, "an object", v)
		}
		x.Fields = jsonValue(obj).GetStructValue().Fields
		return nil
	case *structpb.ListValue:
		arr, ok := v.([]any)
		if !ok {
			return wrongType(path, "a list", v)
		}
		x.Values = jsonValue(arr).GetListValue().Values
		return nil
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return wrongType(path, "an object", v)
	}
	return setFields(m, obj, path)
}

func integer(v any, bits int, path string) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, wrongType(path, "a whole number", v)
	}
	if i, err := strconv.ParseInt(n.String(), 10, bits); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	limit := math.Ldexp(1, bits-1)
	if err != nil || f != math.Trunc(f) || f >= limit || f < -limit {
		return 0, fault.New(fault.InvalidRequest, "%s must be a whole number that fits in %d bits, not %s", path, bits, n).Field(path)
	}
	return int64(f), nil
}

func isValue(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.MessageKind && !fd.IsList() && !fd.IsMap() && fd.Message().FullName() == "google.protobuf.Value"
}

func wrongType(path, want string, got any) *fault.Error {
	return fault.New(fault.InvalidRequest, "%s must be %s, not %s", path, want, kindOf(got)).Field(path)
}

func unknownField(path, name string, known []string) *fault.Error {
	e := fault.New(fault.InvalidRequest, "there is no field %q", path).Field(path)
	if n := Nearest(name, known); n != "" {
		return e.Hint("did you mean %q?", n).With("nearest", n)
	}
	sorted := slices.Clone(known)
	slices.Sort(sorted)
	return e.Hint("the fields are %s", strings.Join(sorted, ", "))
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
