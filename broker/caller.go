package broker

import (
	"context"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/proto/catalog"
)

// Principal is who calls. Sessions, events and files belong to a principal; two that differ in ID never see each other's.
type Principal struct {
	// ID is what ownership is decided by, such as token:ci, uid:1000 or stdio.
	ID string
	// Name and Labels are what the policy sees.
	Name   string
	Labels []string
}

// Binding says what becomes of the sessions of a connection when it ends.
type Binding int

const (
	// Unbound sessions outlive the connection; they end when they are idle.
	Unbound Binding = iota
	// Bound sessions end with the connection.
	Bound
	// Lingering sessions end a grace time after the connection, unless another connection of the same principal uses them.
	Lingering
)

// Caller is one connection of a principal. A face makes one per connection, and closes it at the end.
type Caller struct {
	Principal Principal

	broker  *Broker
	binding Binding
	closed  atomic.Bool
}

// Connect makes a caller.
func (b *Broker) Connect(p Principal, binding Binding) *Caller {
	return &Caller{Principal: p, broker: b, binding: binding}
}

// Call calls the broker as this caller; it has the shape that catalog.Mount wants.
func (c *Caller) Call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	return c.broker.Call(ctx, c, m, req)
}

// Broker gives the broker that is called.
func (c *Caller) Broker() *Broker { return c.broker }

// Close ends the connection: bound sessions are closed before it returns, or when ctx ends; lingering ones get their grace
// time. Calls under way are the face's business.
func (c *Caller) Close(ctx context.Context) {
	if c.closed.Swap(true) {
		return
	}
	c.broker.disconnect(ctx, c)
}

type (
	placedKey  struct{}
	requestKey struct{}
)

// WithPlaced gives a context whose function is called, at most once, as soon as the call has its place among the others of
// its session. A face that reads requests one after another reads the next when it was called or the call has returned:
// then calls run in the order they were read, though they run side by side.
func WithPlaced(ctx context.Context, placed func()) context.Context {
	return context.WithValue(ctx, placedKey{}, placed)
}

func placed(ctx context.Context) {
	if f, ok := ctx.Value(placedKey{}).(func()); ok {
		f()
	}
}

// WithRequestID gives a context that carries the caller's own id of the request, which call.progress events tell.
func WithRequestID(ctx context.Context, id *structpb.Value) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}
