package catalog

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// Reference gives the method reference as Markdown: a section for every method with its fields, and one for every message
// and set of words that they use. It is written from the declarations alone.
func Reference() []byte {
	r := &reference{}
	r.printf("# Method reference\n\n")
	r.printf("Protocol version %s. Written from `proto/browser/v1` by `make gen`; do not edit.\n\n", Version)
	r.printf("Every result may come with `warnings` in its envelope. `*` marks a field that must be given.\n\n")
	r.overview()
	for _, m := range methods {
		r.method(m)
	}
	r.printf("## Messages\n\n")
	for i := 0; i < len(r.queue); i++ { // the queue grows while messages that use others are told
		r.message(r.queue[i])
	}
	r.printf("## Features\n\n")
	for _, f := range features {
		r.printf("- `%s`\n", f)
	}
	return []byte(strings.TrimRight(r.String(), "\n") + "\n")
}

type reference struct {
	strings.Builder
	queue []protoreflect.MessageDescriptor
}

func (r *reference) printf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

func (r *reference) overview() {
	r.printf("| method | tier | answered by | timeout | command line | MCP tool |\n|---|---|---|---|---|---|\n")
	for _, m := range methods {
		r.printf("| [%s](#%s) | %s | %s | %s | %s | %s |\n", m.Name, anchor(m.Name), tier(m), answerer(m),
			Timeout(m, m.NewRequest()), code(m.Spec.GetCli()), code(m.Spec.GetMcpTool()))
	}
	r.printf("\n")
}

func (r *reference) method(m *Method) {
	r.printf("## %s\n\n%s\n\n", m.Name, m.Doc)
	if fs := m.Spec.GetFeatures(); len(fs) > 0 {
		r.printf("Needs the feature %s.\n\n", code(strings.Join(fs, "`, `")))
	}
	r.fields("Request", m.Request.Descriptor(), true)
	r.fields("Result", m.Response.Descriptor(), false)
}

func (r *reference) message(md protoreflect.MessageDescriptor) {
	r.printf("### %s\n\n%s\n\n", md.Name(), Comment(md))
	r.fields("", md, true)
}

func (r *reference) fields(title string, md protoreflect.MessageDescriptor, input bool) {
	rows := r.rows(md, input)
	if len(rows) == 0 {
		r.printf("%s: nothing.\n\n", title)
		return
	}
	if title != "" {
		r.printf("%s:\n\n", title)
	}
	r.printf("| field | type | |\n|---|---|---|\n%s\n", strings.Join(rows, ""))
}

func (r *reference) rows(md protoreflect.MessageDescriptor, input bool) []string {
	var rows []string
	fds := md.Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		spec := wire.SpecOf(fd)
		switch {
		case fd.Name() == "warnings":
			continue
		case spec.GetInline():
			rows = append(rows, r.rows(fd.Message(), input)...)
			continue
		}
		mark := ""
		if input && spec.GetRequired() {
			mark = "*"
		}
		rows = append(rows, fmt.Sprintf("| `%s`%s | %s | %s |\n", fd.Name(), mark, r.typeOf(fd), r.about(fd, spec)))
	}
	return rows
}

func (r *reference) about(fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec) string {
	parts := []string{Comment(fd)}
	if d := spec.GetDefault(); d != "" {
		parts = append(parts, "Default "+code(d)+".")
	}
	switch {
	case spec.GetHasMin() && spec.GetHasMax():
		parts = append(parts, fmt.Sprintf("%v to %v.", spec.GetMin(), spec.GetMax()))
	case spec.GetHasMin():
		parts = append(parts, fmt.Sprintf("At least %v.", spec.GetMin()))
	}
	if g := spec.GetOneOf(); g != "" {
		parts = append(parts, "Exactly one of the "+g+" fields.")
	}
	return strings.ReplaceAll(strings.Join(parts, " "), "|", "\\|")
}

func (r *reference) typeOf(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return "object of " + r.single(fd.MapValue())
	case fd.IsList():
		return "list of " + r.single(fd)
	}
	return r.single(fd)
}

func (r *reference) single(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.StringKind:
		return "string"
	case protoreflect.BytesKind:
		return "base64"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "number"
	case protoreflect.EnumKind:
		return code(strings.Join(wire.Words(fd.Enum()), "` \\| `"))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return r.link(fd.Message())
	default:
		return "integer"
	}
}

func (r *reference) link(md protoreflect.MessageDescriptor) string {
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		return "time"
	case "google.protobuf.Struct":
		return "object"
	case "google.protobuf.Value":
		return "any"
	}
	if !slices.Contains(r.queue, md) {
		r.queue = append(r.queue, md)
	}
	return fmt.Sprintf("[%s](#%s)", md.Name(), strings.ToLower(string(md.Name())))
}

func tier(m *Method) string {
	if m.Core() {
		return "core"
	}
	return "optional"
}

func answerer(m *Method) string {
	switch m.Spec.GetAnswerer() {
	case browserv1.Answerer_ANSWERER_BROKER:
		return "broker"
	case browserv1.Answerer_ANSWERER_FACE:
		return "face"
	case browserv1.Answerer_ANSWERER_HOST:
		return "provider, asked by the host alone"
	case browserv1.Answerer_ANSWERER_UNSPECIFIED:
	}
	return "provider"
}

func anchor(name string) string { return strings.ReplaceAll(name, ".", "") }

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
