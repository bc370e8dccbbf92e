package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker/face/door"
)

// How long calls that were read may go on after the end of the input, and how long the answers of those that are then
// ended may take.
const (
	finishWait = 15 * time.Second
	answerWait = 2 * time.Second
)

// finishing is a transport whose end is told only when the calls that were read before it are answered: a script may write
// its requests, close its end and read the answers. After finishWait stop is called, which ends them. It connects once.
type finishing struct {
	mcp.Transport
	stop  func()
	calls door.Inflight // that were read and are not answered
}

func (t *finishing) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &finishingConn{Connection: c, transport: t, open: map[any]func(){}, closed: make(chan struct{})}, nil
}

// settle waits for the answers of calls that were ended.
func (t *finishing) settle() {
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case <-t.calls.Idle():
	case <-late.C:
	}
}

type finishingConn struct {
	mcp.Connection
	transport *finishing
	mu        sync.Mutex
	open      map[any]func() // what says that a call is answered, by the call's id
	closed    chan struct{}
	once      sync.Once
}

// Read gives the next message, and the end of the input late.
func (c *finishingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.finish()
	}
	if err != nil {
		return nil, err
	}
	if req, ok := msg.(*jsonrpc.Request); ok {
		c.note(req)
	}
	return msg, nil
}

func (c *finishingConn) note(req *jsonrpc.Request) {
	switch {
	case req.Method == "notifications/cancelled":
		var p struct {
			ID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.ID); err == nil {
				c.done(id)
			}
		}
	case req.IsCall() && req.Method != "subscriptions/listen":
		c.done(req.ID) // one that is under way: the SDK refuses the second
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[req.ID.Raw()] = c.transport.calls.Enter()
	}
}

// done notes that a call is answered, or not waited for.
func (c *finishingConn) done(id jsonrpc.ID) {
	c.mu.Lock()
	leave := c.open[id.Raw()]
	delete(c.open, id.Raw())
	c.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// Write sends a message.
func (c *finishingConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.done(resp.ID)
	}
	return err
}

// Close ends the connection, and the wait for what is still open.
func (c *finishingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// finish waits until every call is answered.
func (c *finishingConn) finish() {
	late := time.NewTimer(finishWait)
	defer late.Stop()
	select {
	case <-c.transport.calls.Idle():
	case <-c.closed:
	case <-late.C:
		c.transport.stop()
		c.transport.settle()
	}
}
