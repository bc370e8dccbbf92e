package broker

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// setText sets a text field of a request by name, where it has one.
func setText(msg proto.Message, field, value string) {
	r := msg.ProtoReflect()
	if fd := r.Descriptor().Fields().ByName(protoreflect.Name(field)); fd != nil && fd.Kind() == protoreflect.StringKind && !fd.IsList() {
		r.Set(fd, protoreflect.ValueOfString(value))
	}
}

// setTimeout tells the provider how long the caller still waits, in whole milliseconds, so that time spent waiting for a
// turn is not given twice.
func setTimeout(msg proto.Message, until time.Time) {
	r := msg.ProtoReflect()
	fd := r.Descriptor().Fields().ByName("timeout_ms")
	if fd == nil {
		return
	}
	left := max((time.Until(until) + time.Millisecond - 1).Milliseconds(), 1)
	r.Set(fd, protoreflect.ValueOfInt32(int32(min(left, 1<<30)))) //nolint:gosec // bounded
}
