package catalog_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// Guards the generic gRPC services: every method reaches the one function with its own type, and a fault comes back whole.
func TestMountServesEveryMethod(t *testing.T) {
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	catalog.Mount(srv, func(_ context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
		if req.ProtoReflect().Type() != m.Request {
			t.Errorf("%s got a %T", m.Name, req)
		}
		if m.Name == "page.click" {
			return nil, fault.New(fault.ElementNotFound, "ref %s is from an older document", "d1e2").Reason("stale_ref").
				Hint("take a new page.snapshot").With("candidates", []map[string]any{{"element_ref": "d2e1"}})
		}
		return m.NewResponse(), nil
	})
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	defer func() {
		srv.Stop()
		<-done
	}()
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()

	for _, m := range catalog.All() {
		resp, err := catalog.Invoke(t.Context(), cc, m, m.NewRequest())
		if m.Name == "page.click" {
			e := fault.From(err)
			if e.Code != fault.ElementNotFound || e.ReasonWord() != "stale_ref" || e.Retryable {
				t.Errorf("page.click: %+v", e)
			}
			if c, _ := e.Details["candidates"].([]any); len(c) != 1 {
				t.Errorf("page.click: candidates %v", e.Details["candidates"])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if resp.ProtoReflect().Type() != m.Response {
			t.Errorf("%s answered a %T", m.Name, resp)
		}
	}
	// A generated client reaches the same services.
	if _, err := browserv1.NewPageServiceClient(cc).Open(t.Context(), &browserv1.OpenRequest{}); err != nil {
		t.Error(err)
	}
}
