package host

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// Events gives what happens in the provider, with its own session ids, until ctx ends or the loop is left. It ends without
// an error then, and for a provider that has no events; when the process ends the last pair is nil and the fault. What the
// provider emitted before the first loop is given to that, within a bound; a loop that is too slow gets events.lagged.
func (i *Instance) Events(ctx context.Context) iter.Seq2[*browserv1.Event, error] {
	return func(yield func(*browserv1.Event, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer i.untilGone(cancel)()
		stream, err := i.service.Events(inner, &browserv1.EventsRequest{})
		if err != nil {
			i.lastEvent(ctx, err, yield)
			return
		}
		for {
			resp, err := stream.Recv()
			if err != nil {
				i.lastEvent(ctx, err, yield)
				return
			}
			if e := resp.GetEvent(); e != nil && !yield(e, nil) {
				return
			}
		}
	}
}

// lastEvent ends a loop over events as its doc comment says.
func (i *Instance) lastEvent(ctx context.Context, err error, yield func(*browserv1.Event, error) bool) {
	if ctx.Err() != nil || status.Code(err) == codes.Unimplemented {
		return
	}
	i.awaitEnd(ctx)
	switch {
	case i.Err() != nil:
		yield(nil, i.Err())
	case ctx.Err() != nil:
	case errors.Is(err, io.EOF):
	default:
		yield(nil, i.label(fault.FromStatus(err), "events"))
	}
}
