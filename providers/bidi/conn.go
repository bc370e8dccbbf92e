package bidi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// errLinkDown is why calls fail when the connection to the browser is gone.
var errLinkDown = errors.New("there is no connection to the browser")

// refusal is an error that the remote end answered with (WebDriver BiDi, 3.4 "Errors").
type refusal struct {
	Code    string
	Message string
}

func (e *refusal) Error() string { return e.Code + ": " + e.Message }

// refused says whether err is a refusal with one of the codes.
func refused(err error, codes ...string) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	for _, c := range codes {
		if r.Code == c {
			return true
		}
	}
	return false
}

// message is one frame of the protocol, in either direction.
type message struct {
	Type    string          `json:"type,omitempty"`
	ID      int64           `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Message string          `json:"message,omitempty"`
}

// conn is one BiDi connection. Commands may be sent from many goroutines; events come one at a time and in the order in
// which the remote end sent them, before the answers that follow them.
type conn struct {
	ws     *websocket.Conn
	handle func(method string, params json.RawMessage) // on the reader's goroutine; it must not block

	mu      sync.Mutex
	next    int64
	waiting map[int64]chan *message
	queue   [][]byte
	wake    chan struct{}
	down    chan struct{} // closed when the connection is gone
	once    sync.Once
	wg      sync.WaitGroup
}

// dialTime is how long connecting may take.
const dialTime = 10 * time.Second

// dial connects to a BiDi endpoint and starts its reader and writer, which close waits for.
func dial(ctx context.Context, url string, handle func(string, json.RawMessage)) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled}) //nolint:bodyclose // The library closes it.
	if err != nil {
		return nil, fmt.Errorf("connecting to the browser: %w", err)
	}
	ws.SetReadLimit(-1) // Pictures and page text are as large as they are.
	c := &conn{ws: ws, handle: handle, waiting: map[int64]chan *message{}, wake: make(chan struct{}, 1), down: make(chan struct{})}
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	return c, nil
}

// call sends a command and decodes its result. It ends with the cause of ctx, with errLinkDown, or with a *refusal.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	reply, forget, err := c.send(method, params)
	if err != nil {
		return err
	}
	defer forget()
	select {
	case m := <-reply:
		return m.into(result)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.down:
		select {
		case m := <-reply:
			return m.into(result)
		default:
			return errLinkDown
		}
	}
}

// send queues a command. The answer comes on the channel; forget must be called when nobody waits for it any more.
func (c *conn) send(method string, params any) (<-chan *message, func(), error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the params of %s: %w", method, err)
	}
	reply := make(chan *message, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.down:
		return nil, nil, errLinkDown
	default:
	}
	c.next++
	id := c.next
	frame, err := json.Marshal(&message{ID: id, Method: method, Params: data})
	if err != nil {
		return nil, nil, fmt.Errorf("writing %s: %w", method, err)
	}
	c.waiting[id] = reply
	c.queue = append(c.queue, frame)
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return reply, func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}, nil
}

// into decodes an answer.
func (m *message) into(result any) error {
	if m.Type == "error" || m.Error != "" {
		return &refusal{Code: m.Error, Message: m.Message}
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("reading the browser's answer: %w", err)
	}
	return nil
}

func (c *conn) read() {
	defer c.lose()
	for {
		_, r, err := c.ws.Reader(context.Background()) // Ends with the connection, which close closes.
		if err != nil {
			return
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return
		}
		m := &message{}
		if json.Unmarshal(data, m) != nil {
			continue
		}
		if m.ID == 0 && m.Method != "" {
			c.handle(m.Method, m.Params)
			continue
		}
		c.mu.Lock()
		reply := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if reply != nil {
			reply <- m
		}
	}
}

// writeTime is how long one frame may take to go out before the browser counts as gone.
const writeTime = 30 * time.Second

func (c *conn) write() {
	defer c.lose()
	for {
		c.mu.Lock()
		batch := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, frame := range batch {
			ctx, cancel := context.WithTimeout(context.Background(), writeTime)
			err := c.ws.Write(ctx, websocket.MessageText, frame)
			cancel()
			if err != nil {
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-c.wake:
		case <-c.down:
			return
		}
	}
}

func (c *conn) lose() {
	c.once.Do(func() {
		c.mu.Lock()
		close(c.down)
		c.mu.Unlock()
		_ = c.ws.CloseNow()
	})
}

// close ends the connection and waits for its goroutines. It must not be called by handle.
func (c *conn) close() {
	c.lose()
	c.wg.Wait()
}
