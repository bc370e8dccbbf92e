package broker

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// hopGrace is how much longer the broker waits than the provider was told to, so that the provider's own answer wins.
const hopGrace = time.Second

// call is one call under way.
type call struct {
	who    *Caller
	method *catalog.Method
	req    proto.Message
	until  time.Time // the caller's deadline
	id     string    // the broker's own, where the caller gave one; progress reports carry it
	theirs *structpb.Value

	provider string   // who answered
	rule     string   // file and line of what the policy decided by, where something was written
	ruleName string   // its name
	outcome  string   // what the policy decided: allowed, denied, routed, no_provider; empty where it was not asked
	url      string   // the first URL of the request, without query and fragment
	custom   string   // the custom method that provider.command names
	without  []string // providers that a question leaves out
	sent     bool     // it left for the provider
}

// Call answers one method for a caller. The request belongs to the broker from then on: ids in it are replaced. An error is
// a fault, and names the provider that had a part in it.
func (b *Broker) Call(ctx context.Context, who *Caller, m *catalog.Method, req proto.Message) (proto.Message, error) {
	start := time.Now()
	c := &call{who: who, method: m, req: req, until: start.Add(catalog.Timeout(m, req))}
	if d, ok := ctx.Deadline(); ok && d.Before(c.until) {
		c.until = d
	}
	ctx, cancel := context.WithDeadline(ctx, c.until.Add(hopGrace))
	defer cancel()
	ctx, forget := b.calls.note(ctx, c)
	defer forget()
	ctx, leave, err := b.halt.enter(ctx)
	defer leave()

	var resp proto.Message
	if err == nil {
		resp, err = b.traced(ctx, c, b.answer)
	}
	if err != nil {
		err = b.placeFiles(c, c.fail(ctx, err))
	}
	b.quotas.spend(who.Principal.ID, b.policy.Load().Config().LimitsOf(who.Principal.Name), resp)
	b.record(ctx, c, err, time.Since(start))
	return resp, err
}

// answer is the way of a call, from top to bottom.
func (b *Broker) answer(ctx context.Context, c *call) (proto.Message, error) {
	if err := c.method.Check(c.req); err != nil {
		return nil, err
	}
	if err := b.quotas.admit(c.who.Principal.ID, b.policy.Load().Config().LimitsOf(c.who.Principal.Name)); err != nil {
		return nil, err
	}
	if !c.method.NeedsSession() {
		return b.own(ctx, c)
	}
	if r, ok := c.req.(*browserv1.CloseSessionRequest); ok {
		return b.close(ctx, c, r)
	}
	s, err := b.sessions.find(c.who, catalog.SessionID(c.req))
	if err != nil {
		return nil, err
	}
	c.provider = s.life.ID()
	if err := b.allow(c, s, nil, ""); err != nil {
		return nil, err
	}
	if slices.Contains(s.lacks, c.method.Name) {
		return nil, fault.New(fault.UnsupportedMethod, "%s cannot do %s with %s", c.provider, c.method.Name, s.answer.GetBrowserLabel())
	}
	return b.inLane(ctx, c, s, func(ctx context.Context) (proto.Message, error) {
		catalog.SetSessionID(c.req, s.native)
		catalog.SetProviderID(c.req, "")
		setTimeout(c.req, c.until)
		return b.pass(ctx, s.life, c.method, c.req)
	})
}

// own answers the methods that are not about a session, or not only.
func (b *Broker) own(ctx context.Context, c *call) (proto.Message, error) {
	switch r := c.req.(type) {
	case *browserv1.EnsureSessionRequest: // which has its place when it waits for others of its name
		return b.ensure(ctx, c, r)
	case *browserv1.ListSessionsRequest:
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.list(c, r)
	case *browserv1.DescribeRequest:
		placed(ctx)
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.describe(ctx, r)
	case *browserv1.StatusRequest:
		placed(ctx)
		if err := b.allow(c, nil, nil, ""); err != nil {
			return nil, err
		}
		return b.status(ctx, r)
	case *browserv1.CommandRequest:
		return b.command(ctx, c, r)
	case *browserv1.DrainRequest:
		return b.drain(ctx, c, r)
	case *browserv1.RestartRequest:
		return b.restart(ctx, c, r)
	}
	switch c.method.Spec.GetAnswerer() {
	case browserv1.Answerer_ANSWERER_FACE:
		return nil, fault.New(fault.UnsupportedMethod, "%s belongs to a connection", c.method.Name).
			Hint("call it over stdio, the unix socket or the WebSocket")
	case browserv1.Answerer_ANSWERER_UNSPECIFIED:
		return b.forward(ctx, c)
	default:
		return nil, fault.New(fault.UnsupportedMethod, "%s cannot be called", c.method.Name)
	}
}

// inLane makes a call to a session's provider when its turn comes, and learns from the answer.
func (b *Broker) inLane(ctx context.Context, c *call, s *session, send func(context.Context) (proto.Message, error)) (proto.Message, error) {
	done := s.enter(c.who)
	defer done()
	ctx, unbind := s.bind(ctx)
	defer unbind()
	turn := s.lane.enter(c.method, c.req)
	defer s.lane.leave(turn)
	placed(ctx)
	if err := b.await(ctx, c, turn); err != nil {
		return nil, err
	}
	page := catalog.PageID(c.req)
	c.sent = true
	began := time.Now()
	resp, err := send(ctx)
	if refusal := s.refused(c, began, resp, err); refusal != nil {
		return nil, refusal
	}
	if err != nil {
		return nil, b.sessionFault(ctx, s, err)
	}
	b.meter.answered(resp)
	if active, ok := activePage(c.req, page, resp); ok {
		s.lane.learn(active)
	}
	return resp, nil
}

// await waits for a call's turn.
func (b *Broker) await(ctx context.Context, c *call, t *turn) error {
	if t.free() {
		return nil
	}
	defer b.meter.waiting()()
	return t.wait(ctx, c.until)
}
