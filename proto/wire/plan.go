// Package wire is the one JSON codec of Drover: the protocol's JSON, word for word, for every message. Names are
// snake_case, enum values the protocol's lower-case words, numbers JSON numbers, bytes base64, times RFC 3339 in UTC.
// Fields without presence are always written, unset optional and message fields are left out unless they are declared
// nullable, and a field that is declared inline has its own fields in its place.
package wire

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// plan is what is known of a message type before any message is seen.
type plan struct {
	fields []*fieldPlan
	byName map[string]*fieldPlan // the inlined ones too
	names  []string
}

type fieldPlan struct {
	fd       protoreflect.FieldDescriptor
	name     string
	key      []byte // "name":
	inline   bool
	nullable bool
	presence bool
	required bool // and no value of it says that it was left out
	enum     *enumPlan
	via      protoreflect.FieldDescriptor // the inline field that holds it, or nil
}

type enumPlan struct {
	words  map[protoreflect.EnumNumber]string
	values map[string]protoreflect.EnumNumber
	list   []string
}

var (
	plans sync.Map // protoreflect.FullName → *plan
	enums sync.Map // protoreflect.FullName → *enumPlan
)

func planOf(md protoreflect.MessageDescriptor) *plan {
	if p, ok := plans.Load(md.FullName()); ok {
		return p.(*plan)
	}
	p := &plan{byName: map[string]*fieldPlan{}}
	fds := md.Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		spec := SpecOf(fd)
		f := &fieldPlan{
			fd: fd, name: string(fd.Name()), inline: spec.GetInline(), nullable: spec.GetNullable(),
			presence: fd.HasPresence(), required: spec.GetRequired() && spec.GetAllowEmpty(),
		}
		f.key = append(appendString(nil, f.name), ':')
		if fd.Kind() == protoreflect.EnumKind {
			f.enum = enumOf(fd.Enum())
		}
		p.fields = append(p.fields, f)
		if !f.inline {
			p.byName[f.name] = f
			p.names = append(p.names, f.name)
			continue
		}
		for _, in := range planOf(fd.Message()).fields {
			c := *in
			c.via = fd
			p.byName[c.name] = &c
			p.names = append(p.names, c.name)
		}
	}
	actual, _ := plans.LoadOrStore(md.FullName(), p)
	return actual.(*plan)
}

func enumOf(ed protoreflect.EnumDescriptor) *enumPlan {
	if p, ok := enums.Load(ed.FullName()); ok {
		return p.(*enumPlan)
	}
	p := &enumPlan{words: map[protoreflect.EnumNumber]string{}, values: map[string]protoreflect.EnumNumber{}}
	vs := ed.Values()
	// The zero value of an enum is PREFIX_UNSPECIFIED (buf lint ENUM_ZERO_VALUE_SUFFIX), which tells the prefix.
	prefix := strings.TrimSuffix(string(vs.Get(0).Name()), "UNSPECIFIED")
	for i := range vs.Len() {
		v := vs.Get(i)
		if v.Number() == 0 {
			continue
		}
		word, _ := proto.GetExtension(v.Options(), browserv1.E_Word).(string)
		if word == "" {
			word = strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
		}
		p.words[v.Number()] = word
		p.values[word] = v.Number()
		p.list = append(p.list, word)
	}
	actual, _ := enums.LoadOrStore(ed.FullName(), p)
	return actual.(*enumPlan)
}

// SpecOf gives what a field was declared with; an empty spec where nothing was.
func SpecOf(fd protoreflect.FieldDescriptor) *browserv1.FieldSpec {
	s, _ := proto.GetExtension(fd.Options(), browserv1.E_Field).(*browserv1.FieldSpec)
	return s
}

// OwnKind says that a field is a list of messages of the kind that it stands in, such as the providers in the broker's own
// description. Such a list is left out when it is empty: one of its members would otherwise look like the whole.
func OwnKind(fd protoreflect.FieldDescriptor) bool {
	return fd.IsList() && fd.Message() != nil && fd.Message() == fd.ContainingMessage()
}

// Words lists how the values of an enum are written, in the order of declaration.
func Words(ed protoreflect.EnumDescriptor) []string { return enumOf(ed).list }

// Word gives how one value of an enum is written; "" for its zero value.
func Word(e protoreflect.Enum) string { return enumOf(e.Descriptor()).words[e.Number()] }
