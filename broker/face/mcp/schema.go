package mcp

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// Arguments that the face adds to those of the method.
const (
	argSession  = "session"
	argSnapshot = "snapshot"
	argBudget   = "budget"
	argOffset   = "offset"
)

// inputSchema is the JSON Schema (2020-12) of a tool's arguments: the method's fields without those that the face fills in,
// and the face's own. It is kept short, since a client puts it before its model with every request: names that say what
// they mean have no description, and the rest have the first sentence of their comment. A target's fields are flat; which of
// them exclude each other is told in the tool's description and checked by the broker, since model APIs refuse oneOf.
func (t *tool) inputSchema(whole bool) map[string]any {
	props := map[string]any{argSession: map[string]any{"type": "string"}}
	required := []string{}
	in := inputs{props: props, required: &required, whole: whole}
	in.add(t.method.Request.Descriptor())
	if t.acts() {
		props[argSnapshot] = map[string]any{"type": "string", "enum": snapshotWords}
	}
	if t.reads() {
		props[argOffset] = map[string]any{"type": "integer"}
	}
	if t.reads() || whole && t.budgeted() {
		props[argBudget] = map[string]any{"type": "integer"}
	}
	s := map[string]any{"type": "object", "properties": props}
	if whole {
		s["additionalProperties"] = false
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// bare are fields whose names say it all.
var bare = []string{
	"page_id", "tab_id", "timeout_ms", "url", "x", "y", "dx", "dy", "width", "height", "viewport", "text", "key", "action", "full_page",
	"element_ref", "selector", "text_query", "position", "button", "modifiers", "values", "labels", "to", "from", "submit", "new_page",
	"text_present", "text_absent", "selector_present", "selector_absent", "element_ref_present", "max_nodes", "download_id", "url_contains",
	"navigation_complete", "attach", "interactive_only", "click_count",
}

// inputs collects the properties of an object of arguments.
type inputs struct {
	props    map[string]any
	required *[]string
	whole    bool // rare fields too
}

func (in inputs) add(md protoreflect.MessageDescriptor) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		spec := wire.SpecOf(fd)
		name := string(fd.Name())
		switch {
		case spec.GetOffMcp(), name == "session_id", spec.GetRare() && !in.whole:
			continue
		case spec.GetInline():
			in.add(fd.Message())
			continue
		}
		s := in.kind(fd)
		if doc := brief(catalog.Comment(fd)); doc != "" && !slices.Contains(bare, name) {
			s["description"] = doc
		}
		in.props[name] = s
		if spec.GetRequired() {
			*in.required = append(*in.required, name)
		}
	}
}

func (in inputs) kind(fd protoreflect.FieldDescriptor) map[string]any {
	switch {
	case fd.IsMap():
		return map[string]any{"type": "object", "additionalProperties": in.single(fd.MapValue())}
	case fd.IsList():
		return map[string]any{"type": "array", "items": in.single(fd)}
	}
	return in.single(fd)
}

func (in inputs) single(fd protoreflect.FieldDescriptor) map[string]any {
	s := map[string]any{"type": jsonType(fd)}
	switch {
	case fd.Kind() == protoreflect.EnumKind:
		s["enum"] = wire.Words(fd.Enum())
	case len(wire.SpecOf(fd).GetWords()) > 0:
		s["enum"] = wire.SpecOf(fd).GetWords()
	case anyValue(fd):
		delete(s, "type")
	case fd.Kind() == protoreflect.MessageKind && !wellKnown(fd):
		props, required := map[string]any{}, []string{}
		inputs{props: props, required: &required, whole: in.whole}.add(fd.Message())
		s["properties"] = props
		if len(required) > 0 {
			s["required"] = required
		}
	}
	return s
}

// outputSchema is the JSON Schema of a tool's structured result. Nothing in it is required, so that the error of a call that
// failed fits it too, and nothing is closed, so that a later version may say more.
func (t *tool) outputSchema(whole bool) map[string]any {
	props := map[string]any{}
	addOutputs(t.method.Response.Descriptor(), props, whole, nil)
	return map[string]any{"type": "object", "properties": props}
}

func addOutputs(md protoreflect.MessageDescriptor, props map[string]any, whole bool, within []protoreflect.FullName) {
	within = append(slices.Clone(within), md.FullName())
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if spec := wire.SpecOf(fd); spec.GetOffMcp() || spec.GetRare() && !whole || fd.Name() == "session_id" || fd.Name() == "warnings" {
			continue
		}
		s := outputSingle(fd, whole, within)
		switch {
		case fd.IsMap():
			s = map[string]any{"type": "object"}
		case fd.IsList():
			s = map[string]any{"type": "array", "items": s}
			if !whole {
				delete(s, "items")
			}
		case wire.SpecOf(fd).GetNullable() && s["type"] != nil:
			s["type"] = []any{s["type"], "null"}
		}
		props[string(fd.Name())] = s
	}
}

func outputSingle(fd protoreflect.FieldDescriptor, whole bool, within []protoreflect.FullName) map[string]any {
	if anyValue(fd) {
		return map[string]any{}
	}
	s := map[string]any{"type": jsonType(fd)}
	if whole && fd.Kind() == protoreflect.MessageKind && !wellKnown(fd) && !slices.Contains(within, fd.Message().FullName()) {
		props := map[string]any{}
		addOutputs(fd.Message(), props, whole, within)
		s["properties"] = props
	}
	return s
}

func jsonType(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.EnumKind:
		return "string"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "number"
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if fd.Message().FullName() == "google.protobuf.Timestamp" {
			return "string"
		}
		return "object"
	default:
		return "integer"
	}
}

func anyValue(fd protoreflect.FieldDescriptor) bool {
	return fd.Kind() == protoreflect.MessageKind && fd.Message().FullName() == "google.protobuf.Value"
}

func wellKnown(fd protoreflect.FieldDescriptor) bool {
	return strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf.")
}

// brief is the first sentence of a comment, or what stands before its semicolon.
func brief(doc string) string {
	if i := strings.Index(doc, ". "); i >= 0 {
		doc = doc[:i]
	}
	doc, _, _ = strings.Cut(doc, ";")
	doc, _, _ = strings.Cut(doc, ":")
	return strings.TrimSuffix(doc, ".")
}

// exclusive tells in words which fields of a request exclude each other.
func exclusive(md protoreflect.MessageDescriptor, whole bool) string {
	var order []string
	groups := map[string][]string{}
	var collect func(md protoreflect.MessageDescriptor)
	collect = func(md protoreflect.MessageDescriptor) {
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			spec := wire.SpecOf(fd)
			if spec.GetInline() {
				collect(fd.Message())
				continue
			}
			key := groupOf(spec)
			if key == "" || fd.Name() == "session_id" || spec.GetRare() && !whole && fd.Name() != "position" {
				continue
			}
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], string(fd.Name()))
		}
	}
	collect(md)
	var out strings.Builder
	for _, key := range order {
		if fields := groups[key]; len(fields) > 1 {
			out.WriteString(" One of " + strings.Join(fields, ", ") + ".")
		}
	}
	return out.String()
}

func groupOf(spec *browserv1.FieldSpec) string {
	if g := spec.GetOneOf(); g != "" {
		return g
	}
	return spec.GetAtMostOneOf()
}
