package cdp

import (
	"context"
	"fmt"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// link stands between chromedp's connection (pipe or WebSocket) and chromedp's Browser. Messages of the flat sessions
// that it knows go to their channels; everything else goes on to the Browser. chromedp's own targets switch on domains
// and walk the DOM at every navigation, which costs more than all the rest of a call; channels do not.
//
// The Browser's reader calls Read, so channels and the hook see messages one at a time and in the order they came.
type link struct {
	inner chromedp.Transport
	// hook is shown every browser-level event before the Browser is. It must not block.
	hook func(*cdproto.Message)

	mu       sync.Mutex
	channels map[target.SessionID]*channel
	queue    []*cdproto.Message
	wake     chan struct{}
	down     chan struct{}
	once     sync.Once
	writer   sync.WaitGroup
}

var _ chromedp.Transport = (*link)(nil)

// newLink takes over a connection and starts its writer, which Close waits for.
func newLink(inner chromedp.Transport, hook func(*cdproto.Message)) *link {
	l := &link{
		inner: inner, hook: hook, channels: map[target.SessionID]*channel{},
		wake: make(chan struct{}, 1), down: make(chan struct{}),
	}
	l.writer.Go(l.write)
	return l
}

// Read gives the next message that belongs to no channel.
func (l *link) Read(ctx context.Context, msg *cdproto.Message) error {
	for {
		var m cdproto.Message
		if err := l.inner.Read(ctx, &m); err != nil {
			l.lose(fmt.Errorf("%w: %w", errLinkDown, err))
			return err
		}
		if m.SessionID != "" {
			l.mu.Lock()
			c := l.channels[m.SessionID]
			l.mu.Unlock()
			if c != nil {
				c.receive(&m)
			}
			continue
		}
		if m.Method != "" && l.hook != nil {
			l.hook(&m)
		}
		*msg = m
		return nil
	}
}

// Write queues a message.
func (l *link) Write(_ context.Context, msg *cdproto.Message) error { return l.enqueue(msg) }

// enqueue queues a message. It never blocks, so that a browser that stopped reading delays nobody past a deadline.
func (l *link) enqueue(msg *cdproto.Message) error {
	select {
	case <-l.down:
		return errLinkDown
	default:
	}
	l.mu.Lock()
	l.queue = append(l.queue, msg)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// Close ends the connection, which makes a browser on a pipe exit, and fails every channel.
func (l *link) Close() error {
	l.lose(errLinkDown)
	err := l.inner.Close()
	l.writer.Wait()
	return err
}

func (l *link) write() {
	for {
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, msg := range batch {
			if err := l.inner.Write(context.Background(), msg); err != nil {
				l.lose(fmt.Errorf("%w: %w", errLinkDown, err))
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-l.wake:
		case <-l.down:
			return
		}
	}
}

// open makes the channel of a flat session. handle gets the session's events, one at a time; it must not block.
func (l *link) open(id target.SessionID, handle func(*channel, *cdproto.Message)) *channel {
	c := &channel{link: l, id: id, handle: handle, waiting: map[int64]func(*cdproto.Message, error){}, done: make(chan struct{})}
	l.mu.Lock()
	l.channels[id] = c
	l.mu.Unlock()
	select {
	case <-l.down:
		c.close(errLinkDown)
	default:
	}
	return c
}

// drop closes a channel whose session is detached.
func (l *link) drop(id target.SessionID) {
	l.mu.Lock()
	c := l.channels[id]
	delete(l.channels, id)
	l.mu.Unlock()
	if c != nil {
		c.close(errDetached)
	}
}

func (l *link) lose(err error) {
	l.once.Do(func() {
		close(l.down)
		l.mu.Lock()
		all := l.channels
		l.channels = map[target.SessionID]*channel{}
		l.mu.Unlock()
		for _, c := range all {
			c.close(err)
		}
	})
}
