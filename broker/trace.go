package broker

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker/trace"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// Tracer is what faces make the spans of their calls with; nil where nothing is traced.
func (b *Broker) Tracer() *trace.Tracer { return b.tracer }

// traced answers a call within a span of its own, which tells what the broker decided.
func (b *Broker) traced(ctx context.Context, c *call, answer func(context.Context, *call) (proto.Message, error)) (proto.Message, error) {
	if b.tracer == nil {
		return answer(ctx, c)
	}
	session := catalog.SessionID(c.req) // the broker replaces it on the way
	ctx, span := b.tracer.Inner(ctx, "route", trace.Call(c.method.Name, "", "", session, "", 0)...)
	resp, err := answer(ctx, c)
	family, fallbacks := "", 0
	if r, ok := resp.(*browserv1.EnsureSessionResponse); ok && err == nil {
		family, session = r.GetBrowserFamily(), r.GetSessionId()
		for _, w := range r.GetWarnings() {
			if w.GetCode() == warnFailover {
				fallbacks++
			}
		}
	}
	span.Set(trace.Call("", c.provider, family, session, c.rule, fallbacks)...)
	span.End(err)
	return resp, err
}

// acquire gives the running life of a provider, and tells the start of one where none runs as a span. The life is watched
// from then on: what it says of its first call is heard too.
func (b *Broker) acquire(ctx context.Context, row *Row) (Provider, error) {
	ctx, span := b.tracer.Inner(ctx, "acquire provider", trace.Call("", row.ID, "", "", "", 0)...)
	life, err := row.source.Acquire(ctx)
	span.End(err)
	if err == nil {
		b.adopt(life) //nolint:contextcheck // a life is watched beyond the call
	}
	return life, err
}

// pass calls a provider within a span of its own, of which the provider is told.
func (b *Broker) pass(ctx context.Context, life Provider, m *catalog.Method, req proto.Message) (proto.Message, error) {
	ctx, span := b.tracer.Ask(ctx, "provider "+m.Name, trace.Call(m.Name, life.ID(), "", "", "", 0)...)
	resp, err := life.Call(ctx, m, req)
	span.End(err)
	return resp, err
}
