package grpc

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// providerPrefix is what the health service names of providers begin with: provider.cdp, provider.work-chrome.
const providerPrefix = "provider."

// health answers grpc.health.v1: "" is the broker, which serves when some provider may take a session; provider.ID is one
// provider. Check looks at the moment of the question; Watch tells each change.
type health struct {
	*grpchealth.Server
	broker *broker.Broker
	caller *broker.Caller

	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newHealth(b *broker.Broker) *health {
	h := &health{Server: grpchealth.NewServer(), broker: b, caller: b.Connect(broker.Principal{ID: "health", Name: "health"}, broker.Unbound)}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	sub, err := h.caller.Subscribe([]string{"provider.state_changed"}, nil)
	if err != nil {
		panic("grpc: the broker's own event: " + err.Error())
	}
	h.look(ctx)
	h.work.Go(func() {
		defer sub.Close()
		for {
			if _, err := sub.Next(ctx); err != nil {
				return
			}
			h.look(ctx)
		}
	})
	return h
}

func (h *health) close() {
	h.cancel()
	h.work.Wait()
	h.Shutdown()
}

// Check answers from how the providers are now.
func (h *health) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if s, ok := h.look(ctx)[r.GetService()]; ok {
		return &grpc_health_v1.HealthCheckResponse{Status: s}, nil
	}
	return nil, status.Errorf(codes.NotFound, "there is no service %q; there are \"\" and %sID", r.GetService(), providerPrefix)
}

// List answers for all of them.
func (h *health) List(ctx context.Context, _ *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	out := map[string]*grpc_health_v1.HealthCheckResponse{}
	for name, s := range h.look(ctx) {
		out[name] = &grpc_health_v1.HealthCheckResponse{Status: s}
	}
	return &grpc_health_v1.HealthListResponse{Statuses: out}, nil
}

// look asks the broker how its providers are, and tells those who watch.
func (h *health) look(ctx context.Context) map[string]grpc_health_v1.HealthCheckResponse_ServingStatus {
	out := map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{"": serving(h.broker.Ready())}
	m, ok := catalog.Lookup("provider.status")
	if !ok {
		return out
	}
	if resp, err := h.caller.Call(ctx, m, &browserv1.StatusRequest{}); err == nil {
		if st, ok := resp.(*browserv1.StatusResponse); ok {
			for _, p := range st.GetProviders() {
				out[providerPrefix+p.GetProviderId()] = serving(p.GetAvailability() != browserv1.Availability_AVAILABILITY_UNAVAILABLE)
			}
		}
	}
	for name, s := range out {
		h.SetServingStatus(name, s)
	}
	return out
}

func serving(yes bool) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if yes {
		return grpc_health_v1.HealthCheckResponse_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_NOT_SERVING
}
