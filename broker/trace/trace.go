// Package trace tells OpenTelemetry the way of a call: face, broker, provider. It carries the W3C trace context in from HTTP
// headers, gRPC metadata and MCP's _meta, and out to providers as gRPC metadata. What it tells has no page text, no typed
// text and no URL: the attributes are those of Call, and nothing else.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/droverhq/drover/proto/fault"
)

// Tracer makes spans; nil makes none.
type Tracer struct{ tracer otel.Tracer }

// New makes a tracer; nil for no provider.
func New(p otel.TracerProvider) *Tracer {
	if p == nil {
		return nil
	}
	return &Tracer{p.Tracer("github.com/droverhq/drover")}
}

// Span is a part of a call's way; nil tells nothing.
type Span struct{ span otel.Span }

// Serve starts the span of a call that came in by a face.
func (t *Tracer) Serve(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return t.start(ctx, name, otel.SpanKindServer, attrs)
}

// Inner starts the span of what the broker does itself.
func (t *Tracer) Inner(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	return t.start(ctx, name, otel.SpanKindInternal, attrs)
}

// Ask starts the span of a call to a provider, and has the provider told of it.
func (t *Tracer) Ask(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, *Span) {
	ctx, span := t.start(ctx, name, otel.SpanKindClient, attrs)
	return inject(ctx), span
}

func (t *Tracer) start(ctx context.Context, name string, kind otel.SpanKind, attrs []attribute.KeyValue) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, name, otel.WithSpanKind(kind), otel.WithAttributes(attrs...))
	return ctx, &Span{span}
}

// Set adds attributes.
func (s *Span) Set(attrs ...attribute.KeyValue) {
	if s != nil {
		s.span.SetAttributes(attrs...)
	}
}

// End ends the span. Of an error its code and reason are told; its message may name what a page says.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		e := fault.From(err)
		word := fault.Word(e.Code)
		s.span.SetAttributes(attribute.String("error.type", word))
		if reason := e.ReasonWord(); reason != "" {
			s.span.SetAttributes(attribute.String("drover.reason", reason))
		}
		s.span.SetStatus(codes.Error, word)
	}
	s.span.End()
}

// Call are the attributes of a call. Empty ones are left out; the session is told by a hash, since its id opens it.
func Call(method, provider, family, session, rule string, fallbacks int) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, kv := range [][2]string{
		{"drover.method", method}, {"browser.provider", provider}, {"browser.family", family}, {"session.id", hashed(session)}, {"route.rule", rule},
	} {
		if kv[1] != "" {
			out = append(out, attribute.String(kv[0], kv[1]))
		}
	}
	if fallbacks > 0 {
		out = append(out, attribute.Int("fallback.count", fallbacks))
	}
	return out
}

func hashed(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// ID is the trace that a call belongs to, where that is kept; empty otherwise.
func ID(ctx context.Context) string {
	if s := otel.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String()
	}
	return ""
}

// wire is the W3C trace context; baggage is not passed on, for nobody here reads it.
var wire = propagation.TraceContext{}

// FromHeader gives a context that goes on with the trace that the headers of a request name.
func FromHeader(ctx context.Context, h http.Header) context.Context {
	return wire.Extract(ctx, propagation.HeaderCarrier(h))
}

// FromMetadata gives a context that goes on with the trace that the metadata of a gRPC call name.
func FromMetadata(ctx context.Context) context.Context {
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	return wire.Extract(ctx, carrier(md))
}

// FromMeta gives a context that goes on with the trace that the _meta of an MCP request names.
func FromMeta(ctx context.Context, meta map[string]any) context.Context {
	m := propagation.MapCarrier{}
	for _, key := range wire.Fields() {
		if v, ok := meta[key].(string); ok {
			m[key] = v
		}
	}
	if len(m) == 0 {
		return ctx
	}
	return wire.Extract(ctx, m)
}

// inject has the next gRPC call carry the trace.
func inject(ctx context.Context) context.Context {
	if !otel.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	m := propagation.MapCarrier{}
	wire.Inject(ctx, m)
	for key, value := range m {
		ctx = metadata.AppendToOutgoingContext(ctx, key, value)
	}
	return ctx
}

// carrier reads gRPC metadata, whose keys are lower case.
type carrier metadata.MD

func (c carrier) Get(key string) string {
	if v := metadata.MD(c).Get(key); len(v) == 1 {
		return v[0]
	}
	return ""
}

func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c carrier) Keys() []string {
	out := make([]string, 0, len(c))
	for k := range c {
		out = append(out, k)
	}
	return out
}
