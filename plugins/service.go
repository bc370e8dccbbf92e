package plugins

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// pluginService is what a provider serves beside the normalized methods.
type pluginService struct {
	browserv1.UnimplementedPluginServiceServer
	server *Server
}

// Custom calls a custom method.
func (p *pluginService) Custom(ctx context.Context, req *browserv1.CustomRequest) (*browserv1.CustomResponse, error) {
	resp, err := p.server.Custom(ctx, req)
	if err != nil {
		return nil, fault.Status(err).Err()
	}
	return resp, nil
}

// Events streams until the caller goes or the provider shuts down. The header says that nothing is missed from here on.
func (p *pluginService) Events(_ *browserv1.EventsRequest, stream grpc.ServerStreamingServer[browserv1.EventsResponse]) error {
	ring := p.server.events.subscribe()
	defer p.server.events.unsubscribe(ring)
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(p.server.life, cancel)()
	for {
		e := ring.next(ctx)
		if e == nil {
			return nil
		}
		if err := stream.Send(&browserv1.EventsResponse{Event: e}); err != nil {
			return err
		}
	}
}
