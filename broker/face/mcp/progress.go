package mcp

import (
	"context"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
)

// stages tells a client how far its calls are, where it asked for that. What providers report comes as call.progress
// events of the connection, under the id that the call was given.
type stages struct {
	mu     sync.Mutex
	last   int
	calls  map[string]func(message string)
	sub    *broker.Subscription
	cancel context.CancelFunc
	work   sync.WaitGroup
}

type stageKey struct{}

// report makes a context in which stages are told to the client of a request that wants them; done ends it.
func (p *stages) report(ctx context.Context, caller *broker.Caller, req *mcp.CallToolRequest) (told context.Context, done func()) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return ctx, func() {}
	}
	var mu sync.Mutex
	step, over := 0.0, false
	say := func(message string) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return // the result is on its way, and nothing may follow it
		}
		step++
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: message})
	}
	id := p.add(caller, say)
	told = context.WithValue(broker.WithRequestID(ctx, structpb.NewStringValue(id)), stageKey{}, say)
	return told, func() {
		p.mu.Lock()
		delete(p.calls, id)
		p.mu.Unlock()
		mu.Lock()
		over = true
		mu.Unlock()
	}
}

// say tells a stage of the face's own.
func (p *stages) say(ctx context.Context, message string) {
	if say, ok := ctx.Value(stageKey{}).(func(string)); ok {
		say(message)
	}
}

// add notes a call, and starts to listen at the first one.
func (p *stages) add(caller *broker.Caller, say func(string)) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	id := strconv.Itoa(p.last)
	if p.calls == nil {
		p.calls = map[string]func(string){}
	}
	p.calls[id] = say
	if p.sub != nil {
		return id
	}
	sub, err := caller.Subscribe([]string{"call.progress"}, nil)
	if err != nil {
		return id // the stages of providers are missed, those of the face are not
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.sub, p.cancel = sub, cancel
	p.work.Go(func() { p.listen(ctx, sub) })
	return id
}

func (p *stages) listen(ctx context.Context, sub *broker.Subscription) {
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			return
		}
		f := ev.GetPayload().GetFields()
		p.mu.Lock()
		say := p.calls[f["id"].GetStringValue()]
		p.mu.Unlock()
		if say != nil {
			say(f["message"].GetStringValue())
		}
	}
}

func (p *stages) close() {
	p.mu.Lock()
	sub, cancel := p.sub, p.cancel
	p.mu.Unlock()
	if sub == nil {
		return
	}
	cancel()
	sub.Close()
	p.work.Wait()
}
