package host

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Caller answers normalized methods: an Instance, a plugins.Server, a broker.
type Caller interface {
	Call(context.Context, *catalog.Method, proto.Message) (proto.Message, error)
}

// Ask calls the method that takes this request and gives the response with its type:
//
//	resp, err := host.Ask[*browserv1.OpenResponse](ctx, instance, &browserv1.OpenRequest{…})
func Ask[Resp proto.Message](ctx context.Context, c Caller, req proto.Message) (Resp, error) {
	var none Resp
	m, ok := catalog.ByRequest(req)
	if !ok {
		return none, fault.New(fault.InternalError, "%T is no request of a method", req)
	}
	resp, err := c.Call(ctx, m, req)
	if err != nil {
		return none, err
	}
	typed, ok := resp.(Resp)
	if !ok {
		return none, fault.New(fault.InternalError, "%s answers with a %T", m.Name, resp)
	}
	return typed, nil
}
