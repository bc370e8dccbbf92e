package broker

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// callIDKey is the gRPC metadata in which a provider gets the id that its progress reports carry.
const callIDKey = "drover-call-id"

// calls finds a call by the id that its progress reports carry.
type calls struct {
	last atomic.Uint64
	mu   sync.Mutex
	byID map[string]*call
}

// note gives a call an id, where its caller gave it one that progress could be told under.
func (t *calls) note(ctx context.Context, c *call) (context.Context, func()) {
	theirs, ok := ctx.Value(requestKey{}).(*structpb.Value)
	if !ok {
		return ctx, func() {}
	}
	c.theirs = theirs
	c.id = strconv.FormatUint(t.last.Add(1), 36)
	t.mu.Lock()
	t.byID[c.id] = c
	t.mu.Unlock()
	return metadata.AppendToOutgoingContext(ctx, callIDKey, c.id), func() {
		t.mu.Lock()
		delete(t.byID, c.id)
		t.mu.Unlock()
	}
}
