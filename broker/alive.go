package broker

import (
	"context"
	"sync"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

var statusMethod = lookup("provider.status")

// lookWait bounds how long provider.status waits for the word of providers that run; one that is busy is told of as it was
// last known.
const lookWait = 500 * time.Millisecond

// look asks the providers that run how they are, side by side; all of them without an id. It starts none.
func (b *Broker) look(ctx context.Context, id string) map[string]*browserv1.StatusResponse {
	b.lives.mu.Lock()
	var asked []Provider
	for p := range b.lives.known {
		if id == "" || id == OwnID || id == p.ID() {
			asked = append(asked, p)
		}
	}
	b.lives.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	told := make([]*browserv1.StatusResponse, len(asked))
	var all sync.WaitGroup
	for i, p := range asked {
		all.Go(func() {
			if resp, err := p.Call(ctx, statusMethod, &browserv1.StatusRequest{}); err == nil {
				told[i], _ = resp.(*browserv1.StatusResponse)
			}
		})
	}
	all.Wait()
	out := map[string]*browserv1.StatusResponse{}
	for i, p := range asked {
		select {
		case <-p.Done():
		default:
			if told[i] != nil {
				out[p.ID()] = told[i]
			}
		}
	}
	return out
}
