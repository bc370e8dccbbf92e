package grpc

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// events streams the events of a caller's sessions.
type events struct {
	browserv1.UnimplementedEventServiceServer
	broker *broker.Broker
}

// WatchEvents sends a first, empty response when events are heard, and then one for each event until the caller goes.
func (e *events) WatchEvents(r *browserv1.WatchEventsRequest, stream grpc.ServerStreamingServer[browserv1.WatchEventsResponse]) error {
	ctx := stream.Context()
	who, _ := ctx.Value(principalKey{}).(broker.Principal)
	sub, err := e.broker.Connect(who, broker.Unbound).Subscribe(r.GetTypes(), r.GetSessionIds())
	if err != nil {
		return statusOf(err)
	}
	defer sub.Close()
	if err := stream.Send(&browserv1.WatchEventsResponse{}); err != nil {
		return err
	}
	for {
		ev, err := sub.Next(ctx)
		if ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
		if err != nil {
			return statusOf(err)
		}
		if err := stream.Send(&browserv1.WatchEventsResponse{Event: ev}); err != nil {
			return err
		}
	}
}

func statusOf(err error) error { return fault.Status(err).Err() }
