package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
)

// Without a collector nothing is made. With one the spans come to it, under the program's name.
func TestTelemetry(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
		t.Setenv(name, "")
	}
	log := hclog.NewNullLogger()
	if tel := openTelemetry(log); tel != nil || tel.tracer() != nil {
		t.Fatal("spans are made though nobody asked for them")
	}
	var mu sync.Mutex
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var req coltrace.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &req)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range req.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, span := range ss.GetSpans() {
					got = append(got, rs.GetResource().String()+" "+span.GetName())
				}
			}
		}
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	tel := openTelemetry(log)
	if tel == nil {
		t.Fatal("nothing is sent")
	}
	_, span := tel.tracer().Inner(t.Context(), "route")
	span.End(nil)
	tel.close(log)
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || !strings.HasSuffix(got[0], " route") || !strings.Contains(got[0], "drover") {
		t.Errorf("the collector got %q", got)
	}
}
