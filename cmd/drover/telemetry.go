package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/droverhq/drover/broker/trace"
)

// flushWait bounds how long the end of a program waits for a collector to take the last spans.
const flushWait = 2 * time.Second

// telemetry sends spans to a collector by OTLP over HTTP.
type telemetry struct{ provider *sdktrace.TracerProvider }

// openTelemetry reads the variables of OpenTelemetry: spans are sent where OTEL_EXPORTER_OTLP_ENDPOINT, or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, names a collector; the other OTEL variables say how. Without one nothing is made,
// and nil is given.
func openTelemetry(log hclog.Logger) *telemetry {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil
	}
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx) // which connects when there is something to send
	if err != nil {
		log.Warn("traces are not sent", "error", err)
		return nil
	}
	attrs := []attribute.KeyValue{attribute.String("service.name", "drover"), attribute.String("service.version", programVersion())}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES is not taken whole", "error", err)
	}
	return &telemetry{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from))}
}

// tracer gives what the broker makes its spans with.
func (t *telemetry) tracer() *trace.Tracer {
	if t == nil {
		return nil
	}
	return trace.New(t.provider)
}

// close sends what is left, for a moment.
func (t *telemetry) close(log hclog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWait)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Debug("the last traces were not sent", "error", err)
	}
}
