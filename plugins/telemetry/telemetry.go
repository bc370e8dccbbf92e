// Package telemetry sends a program's spans to a collector by OTLP over HTTP, where the variables of OpenTelemetry name one.
// The broker and every provider process open it for themselves.
package telemetry

import (
	"context"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Open makes what a program of this name makes its spans with. They are sent where OTEL_EXPORTER_OTLP_ENDPOINT, or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, names a collector; the other OTEL variables say how. Without one nothing is made, and
// nil is given. The error of variables that cannot be read comes with nil, or with what is made in spite of it. Shutdown of
// what it gives sends what is left.
func Open(service, version string) (*sdktrace.TracerProvider, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx) // which connects when there is something to send
	if err != nil {
		return nil, err
	}
	from, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)))
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(from)), err
}
