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
)

// finishWait is how long calls that were read may go on after the end of the input.
const finishWait = 15 * time.Second

// finishing is a transport whose end is told only when the calls that were read before it are answered, or finishWait is
// over: a script may write its requests, close its end and read the answers.
type finishing struct{ mcp.Transport }

func (t finishing) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &finishingConn{Connection: c, open: map[any]struct{}{}, answered: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type finishingConn struct {
	mcp.Connection
	mu       sync.Mutex
	open     map[any]struct{} // calls that were read and not answered, by id
	answered chan struct{}    // holds one token when open became empty
	closed   chan struct{}
	once     sync.Once
}

// Read gives the next message, and the end of the input late.
func (c *finishingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.finish(ctx)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.Method == "notifications/cancelled":
		var p struct {
			ID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.ID); err == nil {
				delete(c.open, id.Raw())
			}
		}
	case req.IsCall() && req.Method != "subscriptions/listen":
		c.open[req.ID.Raw()] = struct{}{}
	}
}

// Write sends a message.
func (c *finishingConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.open, resp.ID.Raw())
		empty := len(c.open) == 0
		c.mu.Unlock()
		if empty {
			select {
			case c.answered <- struct{}{}:
			default:
			}
		}
	}
	return err
}

// Close ends the connection, and the wait for what is still open.
func (c *finishingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}

// finish waits until every call is answered.
func (c *finishingConn) finish(ctx context.Context) {
	late := time.NewTimer(finishWait)
	defer late.Stop()
	for {
		c.mu.Lock()
		left := len(c.open)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
