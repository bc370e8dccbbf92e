package wire_test

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fill sets every field of a message to something that is not its zero value.
func fill(m protoreflect.Message, depth int) {
	fds := m.Descriptor().Fields()
	switch m.Descriptor().FullName() {
	case "google.protobuf.Value":
		m.Set(fds.ByName("string_value"), protoreflect.ValueOfString("v"))
		return
	case "google.protobuf.Timestamp":
		m.Set(fds.ByName("seconds"), protoreflect.ValueOfInt64(1930000000))
		return
	}
	if depth > 3 {
		return
	}
	for i := range fds.Len() {
		fd := fds.Get(i)
		switch {
		case fd.IsMap():
			mp := m.Mutable(fd).Map()
			v := mp.NewValue()
			if fd.MapValue().Kind() == protoreflect.MessageKind {
				fill(v.Message(), depth+1)
			} else {
				v = protoreflect.ValueOfString("x")
			}
			mp.Set(protoreflect.ValueOfString("k").MapKey(), v)
		case fd.IsList():
			l := m.Mutable(fd).List()
			v := l.NewElement()
			if fd.Kind() == protoreflect.MessageKind {
				fill(v.Message(), depth+1)
			} else {
				v = one(fd)
			}
			l.Append(v)
		case fd.Kind() == protoreflect.MessageKind:
			fill(m.Mutable(fd).Message(), depth+1)
		default:
			m.Set(fd, one(fd))
		}
	}
}

func one(fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{1, 2})
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1.25)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1 << 40)
	default:
		return protoreflect.ValueOfString("x")
	}
}
