package conformance

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// fieldChecks are derived from a method's declaration: which fields it requires, which values they may have.
func fieldChecks(m *catalog.Method) []check {
	if !m.Routed() || m.Noun() == "provider" {
		return nil
	}
	c := func(name, guards string, do func(*T)) check {
		return check{id: m.Name + "/" + name, method: m.Name, guards: guards, do: do}
	}
	out := []check{}
	if m.NeedsSession() {
		out = append(out, c("unknown-session", "A session that does not exist is session_not_found, whatever else the call says.", func(t *T) { unknownSession(t, m) }))
	}
	if fields := requiredFields(m); len(fields) > 0 || hasTimeout(m) {
		out = append(out, c("field-rules", "A required field that is missing, and a value out of its range, are invalid_request.", func(t *T) { fieldRules(t, m, fields) }))
	}
	return out
}

// requiredFields are those that a request must have, but for the session.
func requiredFields(m *catalog.Method) []protoreflect.FieldDescriptor {
	var out []protoreflect.FieldDescriptor
	fds := m.Request.Descriptor().Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		if s := wire.SpecOf(fd); s.GetRequired() && !s.GetAllowEmpty() && fd.Name() != "session_id" {
			out = append(out, fd)
		}
	}
	return out
}

// plausible makes a request that the declaration allows and that does nothing where there is no such session.
func plausible(m *catalog.Method) proto.Message {
	req := m.NewRequest()
	r := req.ProtoReflect()
	fds := r.Descriptor().Fields()
	for i := range fds.Len() {
		fill(r, fds.Get(i))
	}
	if w, ok := req.(*browserv1.WaitRequest); ok {
		w.TextPresent = proto.String("x")
	}
	if m.Check(req) != nil { // one of a group is needed
		for i := range fds.Len() {
			fd := fds.Get(i)
			if wire.SpecOf(fd).GetOneOf() == "" || fd.Kind() != protoreflect.StringKind {
				continue
			}
			if fd.IsList() {
				r.Mutable(fd).List().Append(protoreflect.ValueOfString("x"))
			} else {
				r.Set(fd, protoreflect.ValueOfString("x"))
			}
			break
		}
	}
	return req
}

// fill gives a required field a value.
func fill(r protoreflect.Message, fd protoreflect.FieldDescriptor) {
	s := wire.SpecOf(fd)
	if fd.Message() != nil && fd.Message().FullName() == "browser.v1.Target" && s.GetRequired() {
		r.Set(fd, protoreflect.ValueOfMessage((&browserv1.Target{Selector: proto.String("#none")}).ProtoReflect()))
		return
	}
	if !s.GetRequired() || s.GetAllowEmpty() {
		return
	}
	switch {
	case fd.IsMap():
		r.Mutable(fd).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString("v"))
	case fd.IsList() && fd.Kind() == protoreflect.StringKind:
		r.Mutable(fd).List().Append(protoreflect.ValueOfString("x"))
	case fd.IsList() && fd.Message() != nil:
		e := r.Mutable(fd).List().AppendMutable().Message()
		for i := range e.Descriptor().Fields().Len() {
			fill(e, e.Descriptor().Fields().Get(i))
		}
	case fd.Kind() == protoreflect.EnumKind:
		r.Set(fd, protoreflect.ValueOfEnum(1))
	case fd.Kind() == protoreflect.StringKind:
		word := "x"
		if fd.Name() == "url" {
			word = "about:blank"
		}
		r.Set(fd, protoreflect.ValueOfString(word))
	}
}

func unknownSession(t *T, m *catalog.Method) {
	req := plausible(m)
	catalog.SetSessionID(req, nobody)
	if err := m.Check(req); err != nil {
		t.Skipf("the suite has no plausible request: %v", err)
	}
	a := t.run.ask(t.ctx, t, m, req)
	if m.Name == "upload.set_files" && says(a, "permission_denied") || says(a, "invalid_request") && m.Name == "upload.set_files" {
		return // the path may be looked at first
	}
	if a.Err == nil || a.Err.Code != fault.SessionNotFound {
		t.Errorf("it must answer session_not_found, and it answers %s", a.said())
	}
}

func fieldRules(t *T, m *catalog.Method, fields []protoreflect.FieldDescriptor) {
	session, _ := t.vars["session"].(string)
	try := func(what string, req proto.Message) {
		catalog.SetSessionID(req, session)
		if t.run.opts.Provider != "" && !m.NeedsSession() {
			catalog.SetProviderID(req, t.run.opts.Provider)
		}
		if a := t.run.ask(t.ctx, t, m, req); a.Err == nil || a.Err.Code != fault.InvalidRequest {
			t.Errorf("%s must answer invalid_request, and it answers %s", what, a.said())
		} else if a.Err.Message == "" {
			t.Errorf("%s: the error has no message", what)
		}
	}
	for _, fd := range fields {
		req := plausible(m)
		req.ProtoReflect().Clear(fd)
		if strings.HasPrefix(string(fd.Name()), "client_session") {
			continue // judged by its own checks
		}
		try("a call without "+string(fd.Name()), req)
	}
	if hasTimeout(m) {
		req := plausible(m)
		req.ProtoReflect().Set(m.Request.Descriptor().Fields().ByName("timeout_ms"), protoreflect.ValueOfInt32(0))
		try("timeout_ms 0", req)
	}
}
