package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// fieldFlags are the flags of one method's fields.
type fieldFlags struct {
	cmd   *cobra.Command
	flags []*fieldFlag
}

// fieldFlag is a flag that sets one field, or adds to it.
type fieldFlag struct {
	fd   protoreflect.FieldDescriptor
	path []string // where the value goes in the params
	text string
	vals []any
}

// Set reads one value.
func (f *fieldFlag) Set(text string) error {
	f.text = text
	if f.fd.IsMap() {
		return f.setMap(text)
	}
	if f.fd.IsList() {
		vs, err := parseList(f.fd, []string{text})
		f.vals = append(f.vals, vs...)
		return err
	}
	v, err := parseOne(f.fd, text)
	f.vals = []any{v}
	return err
}

// setMap takes an object, or one KEY=VALUE.
func (f *fieldFlag) setMap(text string) error {
	obj := map[string]any{}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		if err := parseJSON(text, &obj); err != nil {
			return err
		}
	} else {
		k, v, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("must be KEY=VALUE or an object")
		}
		obj[k] = v
	}
	if len(f.vals) == 0 {
		f.vals = []any{map[string]any{}}
	}
	for k, v := range obj {
		f.vals[0].(map[string]any)[k] = v
	}
	return nil
}

// String gives the value as it was written; flags print it as the default, and these have none.
func (f *fieldFlag) String() string {
	if f == nil {
		return ""
	}
	return f.text
}

// Type is the word that stands for the value in the help.
func (f *fieldFlag) Type() string {
	switch f.fd.Kind() {
	case protoreflect.BoolKind:
		return "bool"
	case protoreflect.EnumKind:
		return "WORD"
	case protoreflect.StringKind:
		if f.fd.IsMap() {
			return "KEY=VALUE"
		}
		return "TEXT"
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.DoubleKind:
		return "NUMBER"
	case protoreflect.BytesKind:
		return "BASE64"
	case protoreflect.MessageKind:
		if f.fd.IsMap() {
			return "KEY=VALUE"
		}
		if f.fd.Message().FullName() == "google.protobuf.Timestamp" {
			return "TIME"
		}
		return "JSON"
	default:
		return "VALUE"
	}
}

func newFieldFlags(cmd *cobra.Command) *fieldFlags { return &fieldFlags{cmd: cmd} }

// elsewhere are fields that have a flag which every command takes.
var elsewhere = map[protoreflect.Name]bool{
	"session_id": true, "timeout_ms": true, "provider_id": true, "browser_preference": true, "client_session_id": true,
}

// add adds a flag for every field that no positional argument sets.
func (ff *fieldFlags) add(md protoreflect.MessageDescriptor, taken map[string]bool) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		switch {
		case taken[string(fd.Name())] || elsewhere[fd.Name()]:
		case wire.SpecOf(fd).GetInline():
			ff.addTarget(fd.Message(), taken)
		default:
			ff.addField(fd, nil)
		}
	}
	// A message can be written whole as JSON or field by field.
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if fd.Kind() == protoreflect.MessageKind && !fd.IsList() && !fd.IsMap() && ours(fd.Message()) && !wire.SpecOf(fd).GetInline() {
			for j := range fd.Message().Fields().Len() {
				in := fd.Message().Fields().Get(j)
				if taken[string(fd.Name())] && in.Name() == "element_ref" {
					continue
				}
				ff.addNested(in, string(fd.Name()))
			}
		}
	}
}

func ours(md protoreflect.MessageDescriptor) bool {
	return md.ParentFile().Package() == browserv1.File_browser_v1_common_proto.Package()
}

func (ff *fieldFlags) addField(fd protoreflect.FieldDescriptor, above []string) {
	path := append(append([]string{}, above...), string(fd.Name()))
	ff.put(strings.ReplaceAll(strings.Join(path, "."), "_", "-"), describeField(fd), &fieldFlag{fd: fd, path: path})
}

// addNested adds a flag for a field of a message: --clip.width, and --from.text for a target.
func (ff *fieldFlags) addNested(fd protoreflect.FieldDescriptor, above string) {
	if t, ok := targetFlags[fd.Name()]; ok && fd.ContainingMessage().FullName() == targetName {
		ff.put(above+"."+t[0], above+": "+strings.TrimPrefix(t[1], "target: "), &fieldFlag{fd: fd, path: []string{above, string(fd.Name())}})
		return
	}
	ff.addField(fd, []string{above})
}

// targetName is the message that names an element or a point.
var targetName = (*browserv1.Target)(nil).ProtoReflect().Descriptor().FullName()

// targetFlags are the short names of a target's fields: they stand on every command that takes a target.
var targetFlags = map[protoreflect.Name][2]string{
	"selector":   {"selector", "target: a `CSS` selector; the first match, open shadow roots included"},
	"text_query": {"text", "target: the `WORDS` that a person sees or hears"},
	"position":   {"xy", "target: a point `X,Y` in CSS pixels of the viewport"},
	"frame_ref":  {"frame", "look selector and text up in the iframe with this `REF`"},
	"element_ref": {
		"ref", "target: a `REF` of a snapshot",
	},
}

func (ff *fieldFlags) addTarget(md protoreflect.MessageDescriptor, taken map[string]bool) {
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		if t, ok := targetFlags[fd.Name()]; ok && !taken[string(fd.Name())] {
			ff.put(t[0], t[1], &fieldFlag{fd: fd, path: []string{string(fd.Name())}})
		}
	}
}

func (ff *fieldFlags) put(name, usage string, f *fieldFlag) {
	flag := ff.cmd.Flags().VarPF(f, name, "", usage)
	if f.fd.Kind() == protoreflect.BoolKind {
		flag.NoOptDefVal = "true"
	}
	if f.fd.Kind() == protoreflect.EnumKind {
		complete(ff.cmd, name, words(wire.Words(f.fd.Enum())...))
	} else if spec := wire.SpecOf(f.fd); spec.GetFeature() {
		complete(ff.cmd, name, words(catalog.Features()...))
	} else if len(spec.GetWords()) > 0 {
		complete(ff.cmd, name, words(spec.GetWords()...))
	}
	ff.flags = append(ff.flags, f)
}

// describeField gives a flag's help from the field's comment and declaration.
func describeField(fd protoreflect.FieldDescriptor) string {
	text := strings.ReplaceAll(short(catalog.Comment(fd)), "`", "'")
	spec := wire.SpecOf(fd)
	var of []string
	switch {
	case fd.Kind() == protoreflect.EnumKind:
		of = wire.Words(fd.Enum())
	case len(spec.GetWords()) > 0:
		of = spec.GetWords()
	}
	if len(of) > 0 {
		text += ": " + strings.Join(of, ", ")
	}
	if d := spec.GetDefault(); d != "" {
		text += " (default " + d + ")"
	}
	if fd.IsList() {
		text += "; may be repeated"
	}
	return text
}

// chosen says that a flag was given for a part of a field, or for another field of the group of which exactly one is: then
// no argument stands for this one.
func (ff *fieldFlags) chosen(fd protoreflect.FieldDescriptor) bool {
	if fd == nil {
		return false
	}
	group := wire.SpecOf(fd).GetOneOf()
	for _, f := range ff.flags {
		if len(f.vals) > 0 && len(f.path) > 1 && f.path[0] == string(fd.Name()) {
			return true // a part of it
		}
		if group != "" && len(f.vals) > 0 && f.fd.ContainingMessage() == fd.ContainingMessage() && wire.SpecOf(f.fd).GetOneOf() == group {
			return true
		}
	}
	return false
}

// collect puts what the flags say into the params.
func (ff *fieldFlags) collect(params map[string]any) error {
	for _, f := range ff.flags {
		if len(f.vals) == 0 {
			continue
		}
		at := params
		for _, k := range f.path[:len(f.path)-1] {
			switch in := at[k].(type) {
			case map[string]any:
				at = in
			case nil:
				next := map[string]any{}
				at[k], at = next, next
			default:
				return usage("--%s cannot be joined with what was given for %s already", strings.Join(f.path, "."), k)
			}
		}
		key := f.path[len(f.path)-1]
		switch {
		case f.fd.IsList():
			at[key] = f.vals
		default:
			at[key] = f.vals[0]
		}
	}
	return nil
}

// parseList reads the values of a repeated field; a JSON list gives several at once where an element is no plain text.
func parseList(fd protoreflect.FieldDescriptor, words []string) ([]any, error) {
	var out []any
	for _, w := range words {
		if fd.Kind() == protoreflect.MessageKind && strings.HasPrefix(strings.TrimSpace(w), "[") {
			var vs []any
			if err := parseJSON(w, &vs); err != nil {
				return nil, err
			}
			out = append(out, vs...)
			continue
		}
		v, err := parseOne(fd, w)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parseOne reads one value of a field. Whether it is within its range or one of the known words is the broker's to say.
func parseOne(fd protoreflect.FieldDescriptor, word string) (any, error) {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(word)
		if err != nil {
			return nil, fmt.Errorf("must be true or false")
		}
		return b, nil
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.DoubleKind:
		if _, err := strconv.ParseFloat(word, 64); err != nil {
			return nil, fmt.Errorf("must be a number")
		}
		return json.Number(word), nil
	case protoreflect.MessageKind:
		return parseMessage(fd.Message(), word)
	case protoreflect.StringKind:
		if strings.HasSuffix(string(fd.Name()), "ref") || strings.Contains(string(fd.Name()), "_ref_") {
			return strings.TrimPrefix(word, "@"), nil
		}
		return word, nil
	default:
		return word, nil
	}
}

func parseMessage(md protoreflect.MessageDescriptor, word string) (any, error) {
	switch md.FullName() {
	case "google.protobuf.Timestamp":
		return word, nil
	case "google.protobuf.Value": // JSON, or else a plain text
		var v any
		if parseJSON(word, &v) != nil {
			return word, nil
		}
		return v, nil
	case targetName: // a ref where one is expected
		if !strings.HasPrefix(word, "{") {
			return map[string]any{"element_ref": strings.TrimPrefix(word, "@")}, nil
		}
	case "browser.v1.Position":
		if !strings.HasPrefix(word, "{") {
			x, y, _ := strings.Cut(word, ",")
			px, errX := strconv.ParseFloat(strings.TrimSpace(x), 64)
			py, errY := strconv.ParseFloat(strings.TrimSpace(y), 64)
			if errX != nil || errY != nil {
				return nil, fmt.Errorf("must be two numbers X,Y, not %q", word)
			}
			return map[string]any{"x": px, "y": py}, nil
		}
	}
	obj := map[string]any{}
	if err := parseJSON(word, &obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func parseJSON(text string, v any) error {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("not JSON of the right kind: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows the JSON value")
	}
	return nil
}
