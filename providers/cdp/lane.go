package cdp

import (
	"context"
	"slices"
	"sync"
)

// lane lets calls through one at a time, in the order in which they came. The zero value is free.
type lane struct {
	mu    sync.Mutex
	held  bool
	queue []chan struct{}
}

// take waits for the turn; release passes it on, once however often it is called.
func (l *lane) take(ctx context.Context) (release func(), err error) {
	release = sync.OnceFunc(l.pass)
	l.mu.Lock()
	if !l.held {
		l.held = true
		l.mu.Unlock()
		return release, nil
	}
	turn := make(chan struct{})
	l.queue = append(l.queue, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.queue, turn)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // The turn came at the same moment.
		release()
	}
	return nil, context.Cause(ctx)
}

func (l *lane) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.held = false
		return
	}
	close(l.queue[0])
	l.queue = l.queue[1:]
}
