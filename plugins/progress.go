package plugins

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// CallIDKey is the gRPC metadata key in which a broker passes the id of the caller's request, for Progress.
const CallIDKey = "drover-call-id"

// EventProgress is the type of the event that Progress sends.
const EventProgress = "call.progress"

type callKey struct{}

type call struct {
	server        *Server
	session, page string
}

func withCall(ctx context.Context, s *Server, session, page string) context.Context {
	return context.WithValue(ctx, callKey{}, call{server: s, session: session, page: page})
}

// Progress tells whoever waits for a long call how far it got: a stage ("starting_browser") and a sentence for a person. It
// becomes the event call.progress with the id of the request. ctx is the context that the function was called with;
// outside of a call, or when the caller passed no id, it does nothing. It never waits.
func Progress(ctx context.Context, stage, message string) {
	c, ok := ctx.Value(callKey{}).(call)
	if !ok {
		return
	}
	ids := metadata.ValueFromIncomingContext(ctx, CallIDKey)
	if len(ids) == 0 {
		return
	}
	payload := map[string]any{"id": ids[0], "stage": stage, "message": message}
	if c.session != "" {
		payload["session_id"] = c.session
	}
	if c.page != "" {
		payload["page_id"] = c.page
	}
	c.server.Emit(EventProgress, payload)
}
