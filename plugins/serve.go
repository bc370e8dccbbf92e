package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/droverhq/drover/plugins/internal/peer"
)

// Handshake is what host and provider agree on before they talk. The cookie is no secret: it keeps people from running a
// provider by hand. The version is that of the services between host and provider.
var Handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "DROVER_PLUGIN", MagicCookieValue: "browser-provider"}

// PluginName is the name under which go-plugin knows the one thing that a provider serves.
const PluginName = "browser"

// notice is what a person sees who runs a provider by hand.
const notice = `%[1]s is a browser provider for Drover. It does nothing by itself: the broker starts it and talks to it over a private socket.
To see what it can do:    drover provider describe %[2]s
To check that it works:   drover provider conform %[3]s
`

// Serve runs the provider until its host is done with it. It is the last thing that main does.
//
// It writes go-plugin's handshake to stdout, serves gRPC on a unix socket with the host's certificate (or, without one, to
// the same user only), and logs JSON lines to stderr. It returns, after Close, when the host says so, on SIGTERM, when the
// lifeline on stdin closes, and when the parent process is gone; in the last two cases the rest of its process group is
// killed, so that no browser stays behind. SIGINT is ignored: Ctrl-C in a terminal is for the host. Run by hand, it says
// what it is and exits with status 1.
func Serve(s *Server) {
	if !hosted() {
		name := filepath.Base(os.Args[0])
		fmt.Fprintf(os.Stderr, notice, name, s.info.ID, os.Args[0])
		os.Exit(1)
	}
	var grpcServer atomic.Pointer[grpc.Server]
	stop := func() {
		s.Close(context.Background())
		if g := grpcServer.Load(); g != nil {
			g.Stop()
		}
	}
	flush := s.openTelemetry()
	why := watch(stop)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         plugin.PluginSet{PluginName: &served{server: s}},
		Logger:          s.logger.Named("plugin"),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			if os.Getenv("PLUGIN_CLIENT_CERT") == "" {
				opts = append(opts, grpc.Creds(peer.SameUser()))
			}
			forget()
			g := newGRPC(opts)
			grpcServer.Store(g)
			return g
		},
	})
	s.Close(context.Background())
	flush()
	why.leave()
}

// forget removes what is for this process alone from its environment once it was read, so that no browser or helper that
// it starts takes it for its own. The run's mark stays.
func forget() {
	for _, name := range []string{Handshake.MagicCookieKey, EnvLifeline, "PLUGIN_CLIENT_CERT", "PLUGIN_PROTOCOL_VERSIONS"} {
		_ = os.Unsetenv(name)
	}
}

func hosted() bool { return os.Getenv(Handshake.MagicCookieKey) == Handshake.MagicCookieValue }

// served is the go-plugin side of a server.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	server *Server
}

// GRPCServer mounts the provider's services.
func (p *served) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	p.server.Register(g)
	return nil
}

// GRPCClient gives the connection itself; the host calls methods by name.
func (p *served) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
