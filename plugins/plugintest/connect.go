package plugintest

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
)

// startTime is how long a provider may take to be introduced in a test.
const startTime = 30 * time.Second

// Connect serves a provider in this process over a real gRPC connection and gives the host's side of it, described and
// configured. It satisfies broker.Provider. The test's cleanup stops it; Stop ends it sooner, as the end of a process
// would: Done is closed and calls in flight fail with provider_exited.
func Connect(t testing.TB, s *plugins.Server) *host.Instance {
	t.Helper()
	return ConnectSpec(t, s, host.Spec{ID: s.Info().ID})
}

// ConnectSpec is Connect with a spec of its own: another id, a configuration, settings.
func ConnectSpec(t testing.TB, s *plugins.Server, spec host.Spec) *host.Instance {
	t.Helper()
	i, err := Attach(t.Context(), s, spec)
	if err != nil {
		t.Fatalf("connect provider %s: %v", spec.ID, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := i.Stop(ctx); err != nil {
			t.Errorf("stop provider %s: %v", spec.ID, err)
		}
	})
	return i
}

// Attach is ConnectSpec without a test: the caller stops the instance, and gets the error of an introduction that failed.
func Attach(ctx context.Context, s *plugins.Server, spec host.Spec) (*host.Instance, error) {
	l := bufconn.Listen(1 << 20)
	g := s.NewGRPC()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(l) // ends with Stop, and with nothing else on a listener in memory
	}()
	shut := func() { //nolint:contextcheck // it runs when the instance is stopped, long after ctx
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Close(ctx)
		g.Stop()
		<-served
	}
	conn, err := grpc.NewClient("passthrough:///"+spec.ID,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(plugins.MaxMessageBytes), grpc.MaxCallSendMsgSize(plugins.MaxMessageBytes)))
	if err != nil {
		shut()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	return host.Attach(ctx, spec, conn, shut)
}
