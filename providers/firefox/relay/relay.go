// Package relay is what the native host does: it carries messages between the add-on that started it and the providers that
// connect to its socket. It knows nothing of browsers. An answer goes to the one connection that asked, and to nobody else.
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/providers/firefox/native"
)

// Protocol is the version of what add-on, host and provider say to each other. Each refuses another one.
const Protocol = 1

// Options make a relay.
type Options struct {
	// In and Out are the add-on's end: the host's stdin and stdout.
	In  io.Reader
	Out io.Writer
	// Listener takes the providers' connections.
	Listener net.Listener
	// Logger gets what went wrong; nil for nowhere.
	Logger hclog.Logger
	// Public says that the add-on is the public bridge's, whose messages have no client and know no pieces.
	Public bool
	// MaxToBrowser is the longest message to the add-on; 0 for native.MaxToBrowser.
	MaxToBrowser int
}

// Relay is one add-on with its providers.
type Relay struct {
	Options
	out sync.Mutex // one frame at a time to the add-on

	mu      sync.Mutex
	clients map[int64]*client
	last    int64
	over    bool
	hello   json.RawMessage
	ready   chan struct{} // closed when the add-on has said what it is
	waiting map[string]asked

	transfers atomic.Int64
	wg        sync.WaitGroup
}

// asked is a request to the public bridge that is not answered yet.
type asked struct {
	client *client
	id     json.RawMessage
}

// client is one connected provider. What is for it waits in its queue, so that one which does not read delays nobody else.
type client struct {
	number int64
	conn   net.Conn
	queue  chan []byte
	gone   chan struct{} // closed when its connection is
}

// queueLength is how many messages may wait for a provider before it is let go of.
const queueLength = 4096

// message is everything that goes over any of the connections. Which fields are there says what it is.
type message struct {
	Type   string          `json:"type,omitempty"`
	Client int64           `json:"client,omitempty"`
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
	Event  string          `json:"event,omitempty"`
}

// piece is a part of a message that is too long for one frame. Data joined in order is the message.
type piece struct {
	Type     string `json:"type"` // piece
	Transfer int64  `json:"transfer"`
	Index    int    `json:"index"`
	Total    int    `json:"total"`
	Data     string `json:"data"`
}

// Run carries messages until the add-on's end closes, which is how Firefox ends a host, or ctx ends. It closes the listener.
func Run(ctx context.Context, o Options) error {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.MaxToBrowser == 0 {
		o.MaxToBrowser = native.MaxToBrowser
	}
	r := &Relay{Options: o, clients: map[int64]*client{}, ready: make(chan struct{}), waiting: map[string]asked{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { o.Listener.Close() })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.readAddon() }() // ends when the process' stdin does; a read from it cannot be broken off
	r.wg.Go(func() { r.accept(ctx) })
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	cancel()
	o.Listener.Close()
	r.mu.Lock()
	r.over = true
	for _, c := range r.clients {
		c.conn.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return err
}

// readAddon takes the add-on's messages in order.
func (r *Relay) readAddon() error {
	for {
		data, err := native.Read(r.In, native.MaxMessage)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe):
			return nil
		case errors.Is(err, native.ErrNotText):
			r.Logger.Warn("the add-on sent what is no text")
			continue
		case err != nil:
			return err
		}
		if r.Public {
			r.fromPublic(data)
		} else {
			r.fromAddon(data)
		}
	}
}

// fromAddon passes a message of our own add-on on.
func (r *Relay) fromAddon(data []byte) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		r.Logger.Warn("the add-on sent what is no message")
		return
	}
	if m.Type == "hello" {
		r.greet(m.Params)
		return
	}
	r.mu.Lock()
	c := r.clients[m.Client]
	r.mu.Unlock()
	if c == nil {
		r.Logger.Debug("an answer came for a connection that is gone")
		return
	}
	m.Client = 0
	r.send(c, m)
}

// greet notes what the add-on said of itself; whoever connects is told.
func (r *Relay) greet(params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hello == nil {
		r.hello = params
		close(r.ready)
	}
}

// send puts a message into a provider's queue. One that does not read is let go of: its connection ends, and it hears of it.
func (r *Relay) send(c *client, m message) {
	data, err := json.Marshal(m)
	if err != nil {
		r.Logger.Warn("a message cannot be written")
		return
	}
	select {
	case c.queue <- data:
	case <-c.gone:
	default:
		r.Logger.Warn("a provider does not read and is let go of")
		c.conn.Close() // Its reader ends it.
	}
}

// write writes what is in the queue until the connection is closed.
func (c *client) write() {
	for {
		select {
		case data := <-c.queue:
			if native.Write(c.conn, data, native.MaxMessage) != nil {
				c.conn.Close()
				return
			}
		case <-c.gone:
			return
		}
	}
}

// accept takes connections until the listener closes.
func (r *Relay) accept(ctx context.Context) {
	for {
		conn, err := r.Listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.over {
			r.mu.Unlock()
			conn.Close()
			return
		}
		r.last++
		c := &client{number: r.last, conn: conn, queue: make(chan []byte, queueLength), gone: make(chan struct{})}
		r.clients[c.number] = c
		r.mu.Unlock()
		r.wg.Go(c.write)
		r.wg.Go(func() { r.serve(ctx, c) })
	}
}

// serve carries one provider's requests to the add-on until it is gone, and then lets the add-on know.
func (r *Relay) serve(ctx context.Context, c *client) {
	defer close(c.gone)
	defer c.conn.Close()
	select {
	case <-r.ready:
	case <-ctx.Done():
		return
	}
	r.mu.Lock()
	hello := r.hello
	r.mu.Unlock()
	r.send(c, message{Event: "hello", Params: hello})
	for {
		data, err := native.Read(c.conn, native.MaxMessage)
		if errors.Is(err, native.ErrNotText) {
			continue
		}
		if err != nil {
			break
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil || m.Method == "" || len(m.ID) == 0 {
			r.Logger.Warn("a provider sent what is no request")
			continue
		}
		if r.Public {
			r.toPublic(c, m)
			continue
		}
		m.Type, m.Client = "request", c.number
		if err := r.toAddon(m); err != nil {
			r.send(c, refusal(m.ID, err))
		}
	}
	r.forget(c)
}

// forget drops a provider with everything that it waits for.
func (r *Relay) forget(c *client) {
	r.mu.Lock()
	delete(r.clients, c.number)
	for id, a := range r.waiting {
		if a.client == c {
			delete(r.waiting, id)
		}
	}
	r.mu.Unlock()
	if !r.Public {
		if err := r.toAddon(message{Type: "gone", Client: c.number}); err != nil {
			r.Logger.Debug("the add-on is gone as well")
		}
	}
}

// refusal is the host's own answer to a request that could not be passed on.
func refusal(id json.RawMessage, err error) message {
	code := "unreachable"
	if errors.Is(err, native.ErrTooLarge) {
		code = "too_large"
	}
	text, _ := json.Marshal(map[string]string{"code": code, "message": err.Error()}) // Two strings cannot fail.
	return message{ID: id, Error: text}
}

// toAddon sends a message to our add-on, in pieces where it is too long for one frame.
func (r *Relay) toAddon(m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(data) > native.MaxMessage {
		return native.ErrTooLarge
	}
	if len(data) <= r.MaxToBrowser {
		return r.write(data)
	}
	// In a JSON string a byte becomes two at the most, for the text is JSON itself and has no control characters.
	parts, transfer := native.Split(data, (r.MaxToBrowser-200)/2), r.transfers.Add(1)
	for i, p := range parts {
		text, err := json.Marshal(piece{Type: "piece", Transfer: transfer, Index: i, Total: len(parts), Data: string(p)})
		if err != nil {
			return err
		}
		if err := r.write(text); err != nil {
			return err
		}
	}
	return nil
}

func (r *Relay) write(data []byte) error {
	r.out.Lock()
	defer r.out.Unlock()
	return native.Write(r.Out, data, r.MaxToBrowser)
}
