package envelope

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// How long things may take at the end of a connection.
const (
	drainWait = 15 * time.Second // calls that were read are finished
	abortWait = time.Second      // calls that were cancelled return
	closeWait = 5 * time.Second  // sessions are closed
)

// conn is one connection that messages come and go on, side by side.
type conn struct {
	caller *broker.Caller
	limit  int // of a message, in bytes

	writing sync.Mutex
	send    func(msg []byte) error // writes one message whole; never called twice at once

	ctx   context.Context // of every call; ends with the connection
	abort context.CancelCauseFunc
	room  chan struct{} // holds a token per call under way; full means that reading waits

	mu     sync.Mutex
	flying map[string]context.CancelCauseFunc // by id
	sub    *broker.Subscription
	calls  sync.WaitGroup
	events sync.WaitGroup
}

func newConn(ctx context.Context, caller *broker.Caller, send func([]byte) error) *conn {
	c := &conn{caller: caller, limit: MaxMessage, send: send, flying: map[string]context.CancelCauseFunc{}}
	c.ctx, c.abort = context.WithCancelCause(ctx)
	c.room = make(chan struct{}, caller.Broker().Policy().Config().Limits.Calls)
	return c
}

// serve answers messages until next gives an error. io.EOF is the end of the input: the calls that were read are finished.
// When ctx ends, or a message cannot be written, everything ends at once. The caller is closed at the end.
func (c *conn) serve(next func() ([]byte, error)) error {
	err := c.read(next)
	if errors.Is(err, io.EOF) {
		err = nil
		c.drain()
	}
	c.end(err)
	return err
}

func (c *conn) read(next func() ([]byte, error)) error {
	for {
		msg, err := next()
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case errors.Is(err, errTooLarge):
			c.write(answer(nil, nil, tooLarge(c.limit)))
		case errors.Is(err, errBinary):
			c.write(answer(nil, nil, notText()))
		case err != nil:
			return err
		default:
			c.handle(msg)
		}
	}
}

// drain waits for the calls under way, at most for drainWait.
func (c *conn) drain() {
	done := make(chan struct{})
	c.events.Go(func() {
		c.calls.Wait()
		close(done)
	})
	timer := time.NewTimer(drainWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-c.ctx.Done():
	}
}

// end cancels what is left, and closes the caller. A call or a write that does not return is left behind: its process is
// about to end.
func (c *conn) end(why error) {
	c.abort(fault.New(fault.NotReady, "the connection ended").Reason("cancelled").Cause(why))
	c.subscribe(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeWait)
	defer cancel()
	c.caller.Close(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.calls.Wait()
		c.events.Wait()
	}()
	timer := time.NewTimer(abortWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// write sends one message whole. When that fails, the connection is of no use any more.
func (c *conn) write(msg []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.send(msg); err != nil {
		c.abort(fault.New(fault.NotReady, "the connection is gone").Reason("cancelled").Cause(err))
	}
}

// handle takes one message, and returns when the next may be taken: a call has its place in its session's lane by then.
func (c *conn) handle(msg []byte) {
	r, err := parse(msg)
	if err != nil {
		c.write(answer(r.id, nil, err))
		return
	}
	m, req, err := r.read()
	if err != nil {
		c.write(answer(r.id, nil, err))
		return
	}
	if m.Spec.GetAnswerer() == browserv1.Answerer_ANSWERER_FACE {
		c.own(r, m, req)
		return
	}
	c.call(r, m, req)
}

// call has the broker answer a call, beside the others.
func (c *conn) call(r request, m *catalog.Method, req proto.Message) {
	select {
	case c.room <- struct{}{}:
	case <-c.ctx.Done():
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	id, key := append(json.RawMessage(nil), r.id...), sameID(r.id)
	c.mu.Lock()
	_, twice := c.flying[key]
	if !twice {
		c.flying[key] = cancel
	}
	c.mu.Unlock()
	if twice {
		cancel(nil)
		<-c.room
		c.write(answer(id, nil, fault.New(fault.InvalidRequest, "a call with the id %s is under way", clip(id)).Field("id")))
		return
	}
	hasPlace := make(chan struct{})
	tell := sync.OnceFunc(func() { close(hasPlace) })
	ctx = broker.WithPlaced(ctx, tell)
	if v, err := wire.ParseValue(id); err == nil {
		ctx = broker.WithRequestID(ctx, v)
	}
	c.calls.Go(func() {
		defer tell()
		resp, err := c.caller.Call(ctx, m, req)
		cancel(nil)
		c.mu.Lock()
		delete(c.flying, key)
		c.mu.Unlock()
		<-c.room
		c.write(answer(id, resp, err))
	})
	<-hasPlace
}

// own answers the methods of the connection itself.
func (c *conn) own(r request, m *catalog.Method, req proto.Message) {
	if err := m.Check(req); err != nil {
		c.write(answer(r.id, nil, err))
		return
	}
	switch q := req.(type) {
	case *browserv1.CancelRequest:
		c.write(answer(r.id, &browserv1.CancelResponse{Cancelled: c.cancel(r, q.GetId())}, nil))
	case *browserv1.SubscribeRequest:
		sub, err := c.caller.Subscribe(q.GetTypes(), q.GetSessionIds())
		if err != nil {
			c.write(answer(r.id, nil, err))
			return
		}
		c.write(answer(r.id, &browserv1.SubscribeResponse{Subscribed: true, Types: q.GetTypes()}, nil))
		c.subscribe(sub)
	case *browserv1.UnsubscribeRequest:
		c.subscribe(nil)
		c.write(answer(r.id, &browserv1.UnsubscribeResponse{Unsubscribed: true}, nil))
	default:
		c.write(answer(r.id, nil, fault.New(fault.UnsupportedMethod, "%s cannot be called here", m.Name).Method(m.Name)))
	}
}

// cancel ends the call of an id. The id is compared as it was written, for a number may be longer than a float holds.
func (c *conn) cancel(r request, id *structpb.Value) bool {
	var params struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(r.params, &params) != nil || id == nil {
		return false
	}
	c.mu.Lock()
	end := c.flying[sameID(params.ID)]
	c.mu.Unlock()
	if end == nil {
		return false
	}
	end(fault.New(fault.NotReady, "the call was cancelled").Reason("cancelled"))
	return true
}

// subscribe makes a subscription the connection's only one; nil for none.
func (c *conn) subscribe(sub *broker.Subscription) {
	c.mu.Lock()
	old := c.sub
	c.sub = sub
	c.mu.Unlock()
	if old != nil {
		old.Close()
	}
	if sub == nil {
		return
	}
	c.events.Go(func() {
		defer sub.Close()
		for {
			ev, err := sub.Next(c.ctx)
			if err != nil {
				return
			}
			if msg := announce(ev); msg != nil {
				c.write(msg)
			}
		}
	})
}
