package main

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/droverhq/drover/broker/trace"
	"github.com/droverhq/drover/plugins/telemetry"
)

// flushWait bounds how long the end of a program waits for a collector to take the last spans.
const flushWait = 2 * time.Second

// spans sends the broker's spans to a collector; nil sends none.
type spans struct{ provider *sdktrace.TracerProvider }

// openTelemetry has spans sent where the variables of OpenTelemetry name a collector.
func openTelemetry(log hclog.Logger) *spans {
	p, err := telemetry.Open("drover", programVersion())
	if err != nil {
		log.Warn("the variables of OpenTelemetry are not taken whole", "error", err)
	}
	if p == nil {
		return nil
	}
	return &spans{p}
}

// tracer gives what the broker makes its spans with.
func (t *spans) tracer() *trace.Tracer {
	if t == nil {
		return nil
	}
	return trace.New(t.provider)
}

// close sends what is left, for a moment.
func (t *spans) close(log hclog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWait)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Debug("the last traces were not sent", "error", err)
	}
}
