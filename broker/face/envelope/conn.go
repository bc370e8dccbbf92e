package envelope

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
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

	unwatch func() bool // of the context that the connection ends with

	room  chan struct{} // holds a token per call under way; full means that calls wait in the queue
	queue chan *flight  // calls that were read, in their order; full means that reading waits

	mu     sync.Mutex
	flying map[string]context.CancelCauseFunc // by id
	sub    *broker.Subscription
	calls  door.Inflight  // from their reading to their answer
	events sync.WaitGroup // everything that runs for the connection
}

// flight is a call that was read and is not answered yet.
type flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	id     json.RawMessage
	key    string
	method *catalog.Method
	req    proto.Message
	leave  func() // it is answered
}

// queueLength is how many calls are read ahead of those that are under way, so that a call.cancel behind them is heard.
const queueLength = 4096

func newConn(ctx context.Context, caller *broker.Caller, send func([]byte) error) *conn {
	c := &conn{caller: caller, limit: MaxMessage, send: send, flying: map[string]context.CancelCauseFunc{}}
	// What ctx carries goes to the calls, but its end is theirs with a reason that they are answered with.
	c.ctx, c.abort = context.WithCancelCause(context.WithoutCancel(ctx))
	c.unwatch = context.AfterFunc(ctx, func() { c.abort(broker.ShuttingDown().Cause(context.Cause(ctx))) })
	c.room = make(chan struct{}, caller.Broker().Policy().Config().Limits.Calls)
	c.queue = make(chan *flight, queueLength)
	c.events.Go(c.dispatch)
	return c
}

// serve answers messages until next gives an error. io.EOF is the end of the input: the calls that were read are finished.
// When ctx ends, or a message cannot be written, everything ends at once. The caller is closed at the end.
func (c *conn) serve(next func() ([]byte, error)) error {
	err := c.read(next)
	if errors.Is(err, io.EOF) {
		err = nil
		c.drain()
		c.abort(broker.ShuttingDown())
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
	timer := time.NewTimer(drainWait)
	defer timer.Stop()
	select {
	case <-c.calls.Idle():
	case <-timer.C:
	case <-c.ctx.Done():
	}
}

// end cancels what is left, and closes the caller. A call or a write that does not return is left behind: its process is
// about to end.
func (c *conn) end(why error) {
	c.unwatch()
	c.abort(fault.New(fault.NotReady, "the connection ended").Reason("cancelled").Cause(why))
	c.subscribe(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeWait)
	defer cancel()
	c.caller.Close(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-c.calls.Idle()
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

// handle takes one message, and returns when the next may be taken: a call has its place in the queue by then.
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

// call puts a call in the queue.
func (c *conn) call(r request, m *catalog.Method, req proto.Message) {
	f := &flight{id: append(json.RawMessage(nil), r.id...), key: sameID(r.id), method: m, req: req}
	f.ctx, f.cancel = context.WithCancelCause(c.ctx)
	c.mu.Lock()
	_, twice := c.flying[f.key]
	if !twice {
		c.flying[f.key] = f.cancel
		f.leave = c.calls.Enter()
	}
	c.mu.Unlock()
	if twice {
		f.cancel(nil)
		c.write(answer(f.id, nil, fault.New(fault.InvalidRequest, "a call with the id %s is under way", clip(f.id)).Field("id")))
		return
	}
	select {
	case c.queue <- f:
		if c.ctx.Err() != nil {
			c.refuseQueued() // nobody may look there any more
		}
	case <-c.ctx.Done():
		c.finish(f, nil, context.Cause(c.ctx))
	}
}

// dispatch has the broker answer the calls of the queue side by side. The next one begins when the one before has its place
// in its session's lane.
func (c *conn) dispatch() {
	for {
		var f *flight
		select {
		case f = <-c.queue:
		case <-c.ctx.Done():
			c.refuseQueued()
			return
		}
		select {
		case c.room <- struct{}{}:
		case <-f.ctx.Done():
			c.finish(f, nil, context.Cause(f.ctx))
			continue
		}
		hasPlace := make(chan struct{})
		tell := sync.OnceFunc(func() { close(hasPlace) })
		ctx := broker.WithPlaced(f.ctx, tell)
		if v, err := wire.ParseValue(f.id); err == nil {
			ctx = broker.WithRequestID(ctx, v)
		}
		c.events.Go(func() {
			defer tell()
			resp, err := c.caller.Call(ctx, f.method, f.req)
			<-c.room
			c.finish(f, resp, err)
		})
		<-hasPlace
	}
}

// refuseQueued answers the calls that never began, when the connection ends.
func (c *conn) refuseQueued() {
	for {
		select {
		case f := <-c.queue:
			c.finish(f, nil, context.Cause(c.ctx))
		default:
			return
		}
	}
}

// finish answers a call.
func (c *conn) finish(f *flight, resp proto.Message, err error) {
	defer f.leave()
	f.cancel(nil)
	c.mu.Lock()
	delete(c.flying, f.key)
	c.mu.Unlock()
	c.write(answer(f.id, resp, err))
}

// own answers the methods of the connection itself.
func (c *conn) own(r request, m *catalog.Method, req proto.Message) {
	if err := m.Check(req); err != nil {
		c.write(answer(r.id, nil, err))
		return
	}
	switch q := req.(type) {
	case *browserv1.CancelRequest:
		done, err := c.cancel(r)
		c.write(answer(r.id, &browserv1.CancelResponse{Cancelled: done}, err))
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
func (c *conn) cancel(r request) (bool, error) {
	var params struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(r.params, &params); err != nil || len(params.ID) == 0 || !isID(params.ID) {
		return false, fault.New(fault.InvalidRequest, "id must be the id of a request, a string or a number").Field("id").Cause(err)
	}
	c.mu.Lock()
	end := c.flying[sameID(params.ID)]
	c.mu.Unlock()
	if end == nil {
		return false, nil
	}
	end(fault.New(fault.NotReady, "the call was cancelled").Reason("cancelled"))
	return true, nil
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
