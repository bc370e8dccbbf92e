package catalog

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/droverhq/drover/proto/wire"
)

// Schema gives JSON Schema (draft 2020-12) of a method's params and result, with the names and words of the wire. A
// target's fields are flat, and that only one of them may be given is told in words: model APIs refuse oneOf at the top.
func Schema(m *Method) (input, output map[string]any) {
	return messageSchema(m.Request.Descriptor(), true, nil), messageSchema(m.Response.Descriptor(), false, nil)
}

func messageSchema(md protoreflect.MessageDescriptor, input bool, within []protoreflect.FullName) map[string]any {
	props := map[string]any{}
	required := []string{}
	addProps(md, input, props, &required, within)
	s := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func addProps(md protoreflect.MessageDescriptor, input bool, props map[string]any, required *[]string, within []protoreflect.FullName) {
	within = append(slices.Clone(within), md.FullName())
	fds := md.Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		spec := wire.SpecOf(fd)
		if !input && fd.Name() == "warnings" {
			continue
		}
		if spec.GetInline() {
			addProps(fd.Message(), input, props, required, within)
			continue
		}
		props[string(fd.Name())] = fieldSchema(fd, input, within)
		always := !fd.HasPresence() && (fd.Kind() != protoreflect.EnumKind || fd.IsList()) && !wire.OwnKind(fd)
		if input && spec.GetRequired() || !input && always {
			*required = append(*required, string(fd.Name()))
		}
	}
}

func fieldSchema(fd protoreflect.FieldDescriptor, input bool, within []protoreflect.FullName) map[string]any {
	var s map[string]any
	switch {
	case fd.IsMap():
		s = map[string]any{"type": "object", "additionalProperties": valueSchema(fd.MapValue(), input, within)}
	case fd.IsList():
		s = map[string]any{"type": "array", "items": valueSchema(fd, input, within)}
	default:
		s = valueSchema(fd, input, within)
	}
	if doc := Comment(fd); doc != "" {
		s["description"] = doc
	}
	spec := wire.SpecOf(fd)
	if spec.GetHasMin() {
		s["minimum"] = spec.GetMin()
	}
	if spec.GetHasMax() {
		s["maximum"] = spec.GetMax()
	}
	if spec.GetNullable() {
		if t, ok := s["type"].(string); ok {
			s["type"] = []string{t, "null"}
		}
	}
	return s
}

func valueSchema(fd protoreflect.FieldDescriptor, input bool, within []protoreflect.FullName) map[string]any {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return map[string]any{"type": "boolean"}
	case protoreflect.StringKind:
		s := map[string]any{"type": "string"}
		if spec := wire.SpecOf(fd); spec.GetFeature() {
			s["enum"] = Features()
		} else if len(spec.GetWords()) > 0 {
			s["enum"] = spec.GetWords()
		}
		return s
	case protoreflect.BytesKind:
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case protoreflect.EnumKind:
		return map[string]any{"type": "string", "enum": wire.Words(fd.Enum())}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return map[string]any{"type": "number"}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		switch fd.Message().FullName() {
		case "google.protobuf.Timestamp":
			return map[string]any{"type": "string", "format": "date-time"}
		case "google.protobuf.Struct":
			return map[string]any{"type": "object"}
		case "google.protobuf.Value":
			return map[string]any{}
		}
		if slices.Contains(within, fd.Message().FullName()) { // a message that holds itself is told once
			return map[string]any{"type": "object"}
		}
		return messageSchema(fd.Message(), input, within)
	default:
		return map[string]any{"type": "integer"}
	}
}
