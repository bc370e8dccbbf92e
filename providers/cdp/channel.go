package cdp

import (
	"context"
	"errors"
	"sync"

	"github.com/chromedp/cdproto"
	protocol "github.com/chromedp/cdproto/cdp"
	jsonv2 "github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

var (
	errLinkDown = errors.New("there is no connection to the browser")
	errDetached = errors.New("the browser detached the target")
)

// channel is one flat session with a target: commands down, events up. It is safe for concurrent use.
type channel struct {
	link   *link
	id     target.SessionID
	handle func(*channel, *cdproto.Message)

	mu      sync.Mutex
	next    int64
	waiting map[int64]func(*cdproto.Message, error)
	err     error
	done    chan struct{}
}

var _ protocol.Session = (*channel)(nil)

// Call sends a command and decodes its result. It ends with the cause of ctx, with errDetached when the target goes,
// with errLinkDown's kin when the browser goes, or with the browser's own *cdproto.Error.
func (c *channel) Call(ctx context.Context, method string, params, result any) error {
	return c.start(method, params).wait(ctx, result)
}

// Subscribe is part of the protocol package's interface. Events go to the channel's handler instead, which sees them
// in order, so there is nothing to subscribe to.
func (c *channel) Subscribe(string) (<-chan jsonv2.Value, func()) {
	none := make(chan jsonv2.Value)
	close(none)
	return none, func() {}
}

// call is a command on its way.
type call struct {
	reply chan *cdproto.Message
	err   error
	done  chan struct{}
}

// start sends a command without waiting for its answer, so that several can be under way at once.
func (c *channel) start(method string, params any) *call {
	k := &call{reply: make(chan *cdproto.Message, 1), done: make(chan struct{})}
	c.send(method, params, func(m *cdproto.Message, err error) {
		if err != nil {
			k.err = err
		} else {
			k.reply <- m
		}
		close(k.done)
	})
	return k
}

// wait waits for the answer and decodes its result, where one is wanted.
func (k *call) wait(ctx context.Context, result any) error {
	select {
	case <-k.done:
	case <-ctx.Done():
		select {
		case <-k.done:
		default:
			return context.Cause(ctx)
		}
	}
	if k.err != nil {
		return k.err
	}
	m := <-k.reply
	if m.Error != nil {
		return m.Error
	}
	if result == nil {
		return nil
	}
	return jsonv2.Unmarshal(m.Result, result, chromedp.DefaultUnmarshalOptions)
}

// post sends a command whose answer nobody waits for.
func (c *channel) post(method string, params any) { c.send(method, params, nil) }

// send sends a command; then gets its answer on the reader's goroutine, or the error that stands for it, exactly once.
func (c *channel) send(method string, params any, then func(*cdproto.Message, error)) {
	fail := func(err error) {
		if then != nil {
			then(nil, err)
		}
	}
	buf, err := jsonv2.Marshal(params, chromedp.DefaultMarshalOptions)
	if err != nil {
		fail(err)
		return
	}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		fail(err)
		return
	}
	c.next++
	id := c.next
	if then != nil {
		c.waiting[id] = then
	}
	c.mu.Unlock()
	msg := &cdproto.Message{ID: id, SessionID: c.id, Method: cdproto.MethodType(method), Params: buf}
	if err := c.link.enqueue(msg); err != nil {
		c.mu.Lock()
		_, open := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if open {
			fail(err)
		}
	}
}

func (c *channel) receive(m *cdproto.Message) {
	if m.ID == 0 {
		c.handle(c, m)
		return
	}
	c.mu.Lock()
	then := c.waiting[m.ID]
	delete(c.waiting, m.ID)
	c.mu.Unlock()
	if then != nil {
		then(m, nil)
	}
}

func (c *channel) close(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	waiting := c.waiting
	c.waiting = nil
	close(c.done)
	c.mu.Unlock()
	for _, then := range waiting {
		then(nil, err)
	}
}

// decode reads the params of an event; false when they are not what the protocol says.
func decode[E any](m *cdproto.Message) (*E, bool) {
	e := new(E)
	return e, jsonv2.Unmarshal(m.Params, e, chromedp.DefaultUnmarshalOptions) == nil
}
