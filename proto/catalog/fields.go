package catalog

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// DefaultTimeout is how long a method may take whose declaration does not say.
const DefaultTimeout = 30 * time.Second

// Timeout gives how long a call may take: the request's timeout_ms, or the method's default.
func Timeout(m *Method, req proto.Message) time.Duration {
	if m.timeout != nil {
		if r := req.ProtoReflect(); r.Has(m.timeout) {
			return time.Duration(r.Get(m.timeout).Int()) * time.Millisecond
		}
	}
	if ms := m.Spec.GetTimeoutMs(); ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return DefaultTimeout
}

// SessionID gives the session_id of a request or response; "" where it has none.
func SessionID(msg proto.Message) string { return text(msg, "session_id") }

// SetSessionID sets the session_id where the message has one.
func SetSessionID(msg proto.Message, id string) { setText(msg, "session_id", id) }

// PageID gives the page_id of a request or response; "" where it has none.
func PageID(msg proto.Message) string { return text(msg, "page_id") }

// ProviderID gives the provider_id of a request or response; "" where it has none.
func ProviderID(msg proto.Message) string { return text(msg, "provider_id") }

// SetProviderID sets the provider_id where the message has one; "" clears it.
func SetProviderID(msg proto.Message, id string) { setText(msg, "provider_id", id) }

// Texts gives the values of the request's fields of these names, in order; unset ones are left out.
func Texts(msg proto.Message, names ...string) []string {
	var out []string
	for _, n := range names {
		if s := text(msg, protoreflect.Name(n)); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Warn adds warnings to a response.
func Warn(resp proto.Message, warnings ...*browserv1.Warning) {
	r := resp.ProtoReflect()
	fd := r.Descriptor().Fields().ByName("warnings")
	if fd == nil || len(warnings) == 0 {
		return
	}
	l := r.Mutable(fd).List()
	for _, w := range warnings {
		l.Append(protoreflect.ValueOfMessage(w.ProtoReflect()))
	}
}

func text(msg proto.Message, name protoreflect.Name) string {
	r := msg.ProtoReflect()
	fd := r.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return ""
	}
	return r.Get(fd).String()
}

func setText(msg proto.Message, name protoreflect.Name, value string) {
	r := msg.ProtoReflect()
	fd := r.Descriptor().Fields().ByName(name)
	if fd == nil || fd.Kind() != protoreflect.StringKind || fd.IsList() {
		return
	}
	if value == "" {
		r.Clear(fd)
		return
	}
	r.Set(fd, protoreflect.ValueOfString(value))
}
