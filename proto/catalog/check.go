package catalog

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// Check looks at every field of a request as its declaration says: required ones, ranges, words, groups of which exactly one
// must be set, features and method names. What is wrong is invalid_request and names the field.
func (m *Method) Check(req proto.Message) error {
	if err := checkMessage(req.ProtoReflect(), ""); err != nil {
		return err.Method(m.Name)
	}
	if w, ok := req.(*browserv1.WaitRequest); ok {
		if err := checkWait(w); err != nil {
			return err.Method(m.Name)
		}
	}
	return nil
}

// group is a set of fields of which one, or at most one, may be set.
type group struct {
	fields []string
	set    []string
	need   bool
}

func checkMessage(m protoreflect.Message, path string) *fault.Error {
	groups := map[string]*group{}
	fds := m.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		spec := wire.SpecOf(fd)
		name := path + string(fd.Name())
		has := m.Has(fd)
		note(groups, spec.GetOneOf(), string(fd.Name()), has, true)
		note(groups, spec.GetAtMostOneOf(), string(fd.Name()), has, false)
		if err := checkRequired(m, fd, spec, name); err != nil {
			return err
		}
		if !has {
			continue
		}
		if err := checkValue(m, fd, spec, name); err != nil {
			return err
		}
		if err := checkNested(m, fd, spec, path, name); err != nil {
			return err
		}
	}
	return checkGroups(groups, path)
}

func note(groups map[string]*group, name, field string, set, need bool) {
	if name == "" {
		return
	}
	g := groups[name]
	if g == nil {
		g = &group{need: need}
		groups[name] = g
	}
	g.fields = append(g.fields, field)
	if set {
		g.set = append(g.set, field)
	}
}

func checkGroups(groups map[string]*group, path string) *fault.Error {
	names := make([]string, 0, len(groups))
	for n := range groups {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		g := groups[n]
		all := strings.Join(g.fields, ", ")
		switch {
		case len(g.set) > 1:
			return fault.New(fault.InvalidRequest, "only one of %s may be given, not %s", all, strings.Join(g.set, " and ")).
				Field(path+g.set[1]).With("one_of", g.fields)
		case len(g.set) == 0 && g.need:
			return fault.New(fault.InvalidRequest, "one of %s must be given", all).Field(path+g.fields[0]).With("one_of", g.fields)
		}
	}
	return nil
}

func checkRequired(m protoreflect.Message, fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec, name string) *fault.Error {
	if !spec.GetRequired() || m.Has(fd) {
		return nil
	}
	if spec.GetAllowEmpty() {
		return nil
	}
	if spec.GetInline() { // a target that is required: say which fields make one
		if err := checkMessage(m.Get(fd).Message(), strings.TrimSuffix(name, string(fd.Name()))); err != nil {
			return err
		}
	}
	if fd.Kind() == protoreflect.EnumKind {
		return fault.New(fault.InvalidRequest, "%s is required: one of %s", name, strings.Join(wire.Words(fd.Enum()), ", ")).Field(name)
	}
	return fault.New(fault.InvalidRequest, "%s is required", name).Field(name)
}

func checkNested(m protoreflect.Message, fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec, path, name string) *fault.Error {
	if fd.Kind() != protoreflect.MessageKind || fd.IsMap() || !strings.HasPrefix(string(fd.Message().FullName()), "browser.v1.") {
		return nil
	}
	if fd.IsList() {
		l := m.Get(fd).List()
		for i := range l.Len() {
			if err := checkMessage(l.Get(i).Message(), fmt.Sprintf("%s[%d].", name, i)); err != nil {
				return err
			}
		}
		return nil
	}
	below := name + "."
	if spec.GetInline() {
		below = path
		if t, ok := m.Get(fd).Message().Interface().(*browserv1.Target); ok && onlyFrame(t) && !spec.GetRequired() {
			return nil // frame_ref alone scopes the default target
		}
	}
	return checkMessage(m.Get(fd).Message(), below)
}

func onlyFrame(t *browserv1.Target) bool {
	return t.ElementRef == nil && t.Selector == nil && t.TextQuery == nil && t.Position == nil
}

func checkValue(m protoreflect.Message, fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec, name string) *fault.Error {
	if fd.IsMap() {
		return nil
	}
	if !fd.IsList() {
		return checkOne(m.Get(fd), fd, spec, name)
	}
	l := m.Get(fd).List()
	for i := range l.Len() {
		if err := checkOne(l.Get(i), fd, spec, fmt.Sprintf("%s[%d]", name, i)); err != nil {
			return err
		}
	}
	return nil
}

func checkOne(v protoreflect.Value, fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec, name string) *fault.Error {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return checkText(v.String(), fd, spec, name)
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		return checkRange(float64(v.Int()), spec, name)
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return checkRange(v.Float(), spec, name)
	default:
		return nil
	}
}

func checkRange(n float64, spec *browserv1.FieldSpec, name string) *fault.Error {
	switch {
	case spec.GetHasMin() && n < spec.GetMin():
		return fault.New(fault.InvalidRequest, "%s must be at least %v, not %v", name, spec.GetMin(), n).Field(name)
	case spec.GetHasMax() && n > spec.GetMax():
		return fault.New(fault.InvalidRequest, "%s must be at most %v, not %v", name, spec.GetMax(), n).Field(name)
	}
	return nil
}

func checkText(s string, fd protoreflect.FieldDescriptor, spec *browserv1.FieldSpec, name string) *fault.Error {
	if !utf8.ValidString(s) {
		return fault.New(fault.InvalidRequest, "%s is not valid UTF-8", name).Field(name)
	}
	if len(s) > maxID && isID(string(fd.Name())) {
		return fault.New(fault.InvalidRequest, "%s must have at most %d bytes, not %d", name, maxID, len(s)).Field(name)
	}
	// A presence that says nothing: ids, refs, selectors and queries are never empty.
	if s == "" && (spec.GetRequired() && !spec.GetAllowEmpty() || spec.GetOneOf() != "" || fd.HasPresence() && isID(string(fd.Name()))) {
		return fault.New(fault.InvalidRequest, "%s must not be empty", name).Field(name)
	}
	if len(spec.GetWords()) > 0 && !slices.Contains(spec.GetWords(), s) {
		return fault.New(fault.InvalidRequest, "%s must be one of %s, not %q", name, strings.Join(spec.GetWords(), ", "), s).Field(name)
	}
	if spec.GetFeature() && !IsFeature(s) {
		return unknown("feature", s, wire.Nearest(s, features), name)
	}
	if _, known := byName[s]; spec.GetMethodName() && !known {
		return unknown("method", s, Nearest(s), name)
	}
	return nil
}

// maxID is the length of the longest id or ref, in bytes.
const maxID = 1024

func isID(name string) bool {
	return strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ref")
}

func unknown(kind, word, nearest, name string) *fault.Error {
	e := fault.New(fault.InvalidRequest, "%s: there is no %s %q", name, kind, word).Field(name)
	if nearest != "" {
		e.Hint("did you mean %q?", nearest).With("nearest", nearest)
	}
	return e
}

// checkWait holds the one rule that a single field cannot tell: a wait needs a condition.
func checkWait(w *browserv1.WaitRequest) *fault.Error {
	if w.TextPresent == nil && w.TextAbsent == nil && w.SelectorPresent == nil && w.SelectorAbsent == nil &&
		w.ElementRefPresent == nil && w.UrlMatches == nil && !w.GetNavigationComplete() {
		return fault.New(fault.InvalidRequest, "one of text_present, text_absent, selector_present, selector_absent, "+
			"element_ref_present, url_matches, navigation_complete must be given").Field("text_present")
	}
	return nil
}
