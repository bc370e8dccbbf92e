package wire

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// warningsField is the number of `repeated Warning warnings` in every response; the envelope carries it.
const warningsField = 15

// Marshal gives a message as the protocol's JSON.
func Marshal(m proto.Message) ([]byte, error) { return Append(nil, m) }

// Append appends a message as the protocol's JSON.
func Append(b []byte, m proto.Message) ([]byte, error) {
	return appendMessage(b, m.ProtoReflect(), false), nil
}

// MarshalResponse gives a response as the protocol's JSON without its warnings, and the warnings as a JSON array.
func MarshalResponse(m proto.Message) (result, warnings []byte, err error) {
	r := m.ProtoReflect()
	result = appendMessage(nil, r, true)
	warnings = []byte("[]")
	if fd := r.Descriptor().Fields().ByNumber(warningsField); fd != nil && fd.IsList() && r.Has(fd) {
		warnings = appendList(nil, &fieldPlan{fd: fd}, r.Get(fd).List())
	}
	return result, warnings, nil
}

func appendMessage(b []byte, m protoreflect.Message, response bool) []byte {
	switch v := m.Interface().(type) {
	case *timestamppb.Timestamp:
		return appendTime(b, v.AsTime())
	case *structpb.Struct:
		return appendStruct(b, v)
	case *structpb.Value:
		return appendValue(b, v)
	case *structpb.ListValue:
		return appendValues(b, v.GetValues())
	}
	b = append(b, '{')
	b, _ = appendFields(b, m, response, true)
	return append(b, '}')
}

// appendFields writes the fields of a message without braces; first says that nothing was written before.
func appendFields(b []byte, m protoreflect.Message, response, first bool) ([]byte, bool) {
	for _, f := range planOf(m.Descriptor()).fields {
		if response && f.fd.Number() == warningsField && f.fd.IsList() {
			continue
		}
		has := m.Has(f.fd)
		if f.inline {
			if has {
				b, first = appendFields(b, m.Get(f.fd).Message(), false, first)
			}
			continue
		}
		if !has {
			if f.presence && !f.nullable || f.enum != nil && !f.fd.IsList() || OwnKind(f.fd) {
				continue
			}
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, f.key...)
		switch {
		case !has && f.presence:
			b = append(b, "null"...)
		case f.fd.IsMap():
			b = appendMap(b, f, m.Get(f.fd).Map())
		case f.fd.IsList():
			b = appendList(b, f, m.Get(f.fd).List())
		default:
			b = appendSingular(b, f, m.Get(f.fd))
		}
	}
	return b, first
}

func appendList(b []byte, f *fieldPlan, l protoreflect.List) []byte {
	b = append(b, '[')
	for i := range l.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSingular(b, f, l.Get(i))
	}
	return append(b, ']')
}

func appendMap(b []byte, f *fieldPlan, m protoreflect.Map) []byte {
	keys := make([]string, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	value := &fieldPlan{fd: f.fd.MapValue()}
	if value.fd.Kind() == protoreflect.EnumKind {
		value.enum = enumOf(value.fd.Enum())
	}
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendSingular(b, value, m.Get(protoreflect.ValueOfString(k).MapKey()))
	}
	return append(b, '}')
}

func appendSingular(b []byte, f *fieldPlan, v protoreflect.Value) []byte {
	switch f.fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return appendMessage(b, v.Message(), false)
	case protoreflect.StringKind:
		return appendString(b, v.String())
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool())
	case protoreflect.EnumKind:
		return appendString(b, f.enum.words[v.Enum()])
	case protoreflect.BytesKind:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, v.Bytes())
		return append(b, '"')
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return appendFloat(b, v.Float())
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return strconv.AppendUint(b, v.Uint(), 10)
	default:
		return strconv.AppendInt(b, v.Int(), 10)
	}
}

func appendStruct(b []byte, s *structpb.Struct) []byte {
	keys := make([]string, 0, len(s.GetFields()))
	for k := range s.GetFields() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendValue(b, s.Fields[k])
	}
	return append(b, '}')
}

func appendValue(b []byte, v *structpb.Value) []byte {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return appendString(b, k.StringValue)
	case *structpb.Value_NumberValue:
		return appendFloat(b, k.NumberValue)
	case *structpb.Value_BoolValue:
		return strconv.AppendBool(b, k.BoolValue)
	case *structpb.Value_StructValue:
		return appendStruct(b, k.StructValue)
	case *structpb.Value_ListValue:
		return appendValues(b, k.ListValue.GetValues())
	}
	return append(b, "null"...)
}

func appendValues(b []byte, vs []*structpb.Value) []byte {
	b = append(b, '[')
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().Truncate(time.Microsecond).AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendFloat writes a number as JSON does; what JSON cannot hold is null.
func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64)
}

const hex = "0123456789abcdef"

// appendString writes a JSON string; bytes that are not UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
