// Package catalog knows every normalized method of the protocol from its one declaration, the rpc with its options in
// proto/browser/v1. Names, checks, session ids, deadlines, JSON Schema, documentation and gRPC services are derived from it;
// there is no other list of methods anywhere.
package catalog

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// Version is the version of the protocol that this catalog declares.
const Version = "0.1"

// Method is one normalized method. Methods are made once, at start, and never change.
type Method struct {
	// Name is the name on the wire, such as page.open.
	Name string
	// Spec is what the rpc was declared with.
	Spec *browserv1.MethodSpec
	// Doc is the rpc's comment: a sentence or two for people and models.
	Doc string
	// Path is the full gRPC method, such as /browser.v1.PageService/Open.
	Path string
	// Request and Response are its message types.
	Request, Response protoreflect.MessageType

	rpc     protoreflect.MethodDescriptor
	session protoreflect.FieldDescriptor // of the request, or nil
	page    protoreflect.FieldDescriptor
	timeout protoreflect.FieldDescriptor
}

var (
	methods   []*Method
	byName    = map[string]*Method{}
	byRequest = map[protoreflect.FullName]*Method{}
	byPath    = map[string]*Method{}
)

func init() {
	for _, fd := range files() {
		for i := range fd.Services().Len() {
			sd := fd.Services().Get(i)
			for j := range sd.Methods().Len() {
				if m := newMethod(sd.Methods().Get(j)); m != nil {
					add(m)
				}
			}
		}
	}
}

func add(m *Method) {
	if _, twice := byName[m.Name]; twice {
		panic(fmt.Sprintf("catalog: two rpcs are named %s", m.Name))
	}
	req := m.Request.Descriptor().FullName()
	if _, twice := byRequest[req]; twice {
		panic(fmt.Sprintf("catalog: two rpcs take %s", req))
	}
	methods = append(methods, m)
	byName[m.Name], byRequest[req], byPath[m.Path] = m, m, m
}

// newMethod reads one rpc; nil for an rpc that is no normalized method.
func newMethod(rpc protoreflect.MethodDescriptor) *Method {
	spec, _ := proto.GetExtension(rpc.Options(), browserv1.E_Method).(*browserv1.MethodSpec)
	if spec.GetName() == "" {
		return nil
	}
	m := &Method{
		Name: spec.GetName(), Spec: spec, rpc: rpc, Doc: Comment(rpc),
		Path:    fmt.Sprintf("/%s/%s", rpc.Parent().FullName(), rpc.Name()),
		Request: messageType(rpc.Input()), Response: messageType(rpc.Output()),
	}
	fields := m.Request.Descriptor().Fields()
	m.session = fields.ByName("session_id")
	m.page = fields.ByName("page_id")
	m.timeout = fields.ByName("timeout_ms")
	return m
}

func messageType(md protoreflect.MessageDescriptor) protoreflect.MessageType {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
	if err != nil {
		panic(fmt.Sprintf("catalog: %v", err)) // only when the generated code and the descriptors disagree
	}
	return mt
}

// All lists every method in the order of declaration. The slice is shared: do not change it.
func All() []*Method { return methods }

// Lookup finds a method by its name on the wire.
func Lookup(name string) (*Method, bool) {
	m, ok := byName[name]
	return m, ok
}

// ByRequest finds the method that takes a message.
func ByRequest(req proto.Message) (*Method, bool) {
	m, ok := byRequest[req.ProtoReflect().Descriptor().FullName()]
	return m, ok
}

// ByPath finds a method by its full gRPC method.
func ByPath(path string) (*Method, bool) {
	m, ok := byPath[path]
	return m, ok
}

// Nearest gives the method name that a mistyped one was most likely meant to be; "" when none is close.
func Nearest(name string) string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Name
	}
	return wire.Nearest(name, names)
}

// NewRequest makes an empty request.
func (m *Method) NewRequest() proto.Message { return m.Request.New().Interface() }

// NewResponse makes an empty response.
func (m *Method) NewResponse() proto.Message { return m.Response.New().Interface() }

// Noun is the part of the name before the dot, such as page.
func (m *Method) Noun() string {
	noun, _, _ := strings.Cut(m.Name, ".")
	return noun
}

// NeedsSession says that the method is about a session, so that its request must name one.
func (m *Method) NeedsSession() bool {
	return m.session != nil && wire.SpecOf(m.session).GetRequired()
}

// Core says that a certified provider must have the method.
func (m *Method) Core() bool { return m.Spec.GetTier() == browserv1.Tier_TIER_CORE }

// Routed says that a provider answers the method.
func (m *Method) Routed() bool {
	return m.Spec.GetAnswerer() == browserv1.Answerer_ANSWERER_UNSPECIFIED
}
