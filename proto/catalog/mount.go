package catalog

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/proto/fault"
)

// Call answers one normalized method. The request has the method's type, and so has the response.
type Call func(ctx context.Context, m *Method, req proto.Message) (proto.Message, error)

// Mount registers every normalized service of the protocol with a gRPC server, all answered by one function. Errors become
// gRPC statuses that carry the whole fault.
func Mount(r grpc.ServiceRegistrar, call Call) {
	var order []string
	descs := map[string]*grpc.ServiceDesc{}
	for _, m := range methods {
		sd := m.rpc.Parent()
		name := string(sd.FullName())
		d := descs[name]
		if d == nil {
			d = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil), Metadata: sd.ParentFile().Path()}
			descs[name] = d
			order = append(order, name)
		}
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: string(m.rpc.Name()), Handler: handler(m, call)})
	}
	for _, name := range order {
		r.RegisterService(descs[name], struct{}{})
	}
}

func handler(m *Method, call Call) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := m.NewRequest()
		if err := decode(req); err != nil {
			return nil, err
		}
		run := func(ctx context.Context, req any) (any, error) {
			resp, err := call(ctx, m, req.(proto.Message))
			if err != nil {
				return nil, statusError(err)
			}
			return resp, nil
		}
		if interceptor == nil {
			return run(ctx, req)
		}
		return interceptor(ctx, req, &grpc.UnaryServerInfo{FullMethod: m.Path}, run)
	}
}

func statusError(err error) error {
	st := fault.Status(err)
	return status.ErrorProto(st.Proto())
}

// Invoke calls a method over a gRPC connection. An error is a fault.
func Invoke(ctx context.Context, cc grpc.ClientConnInterface, m *Method, req proto.Message, opts ...grpc.CallOption) (proto.Message, error) {
	resp := m.NewResponse()
	if err := cc.Invoke(ctx, m.Path, req, resp, opts...); err != nil {
		return nil, fault.FromStatus(err)
	}
	return resp, nil
}
