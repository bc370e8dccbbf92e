package plugins

import (
	"context"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/droverhq/drover/plugins/telemetry"
	"github.com/droverhq/drover/proto/fault"
)

// scope is whose spans they are.
const scope = "github.com/droverhq/drover/plugins"

// flushWait bounds how long the end of a provider waits for a collector to take the last spans: less than its host waits.
const flushWait = 500 * time.Millisecond

// TraceWith has every call told as a span, within the trace that the caller's metadata names. Serve calls it where the
// variables of OpenTelemetry name a collector. Spans have no page text, no typed text and no URL.
func (s *Server) TraceWith(p trace.TracerProvider) {
	s.mustBeOpen("TraceWith")
	s.tracer = p.Tracer(scope)
}

// Trace tells a part of a call as a span of its own, such as the start of a browser. ctx is the context that the function was
// called with, or one made of it; end is called once, with the part's error or nil. Where nothing is traced it costs
// nothing. The name is constant: no URL, no text of a page.
func Trace(ctx context.Context, name string) (inner context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, func(err error) { endSpan(span, err) }
}

// span starts the span of a call.
func (s *Server) span(ctx context.Context, method string) (context.Context, func(error)) {
	if s.tracer == nil {
		return ctx, func(error) {}
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = propagation.TraceContext{}.Extract(ctx, carrier(md))
	}
	ctx, span := s.tracer.Start(ctx, "browser "+method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("drover.method", method), attribute.String("browser.provider", s.info.ID)))
	return ctx, func(err error) { endSpan(span, err) }
}

// endSpan ends a span. Of an error its code and reason are told; its message may name what a page says.
func endSpan(span trace.Span, err error) {
	if err != nil {
		e := fault.From(err)
		word := fault.Word(e.Code)
		span.SetAttributes(attribute.String("error.type", word))
		if reason := e.ReasonWord(); reason != "" {
			span.SetAttributes(attribute.String("drover.reason", reason))
		}
		span.SetStatus(codes.Error, word)
	}
	span.End()
}

// openTelemetry has a provider process send its spans, where the variables that its host passes on name a collector. They
// are removed from the environment, so that no browser gets them. The function sends what is left.
func (s *Server) openTelemetry() (flush func()) {
	p, err := telemetry.Open("drover-provider-"+s.info.ID, s.info.Version)
	if err != nil {
		s.logger.Warn("the variables of OpenTelemetry are not taken whole", "error", err)
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name)
		}
	}
	if p == nil {
		return func() {}
	}
	s.TraceWith(p)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushWait)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			s.logger.Debug("the last traces were not sent", "error", err)
		}
	}
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
