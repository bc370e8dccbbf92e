// Package grpc is the face for platforms: the catalog's services over gRPC, on a unix socket for this user and on TCP for
// who shows a token. The protocol's own errors travel as a detail of the status, with google.rpc.ErrorInfo and RetryInfo
// beside them for clients that know those alone. Events are a server stream, health is grpc.health.v1 for the broker and
// each provider, and reflection tells the services.
package grpc

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// maxMessage is the largest message in either direction, in bytes, as on the other faces.
const maxMessage = 64 << 20

// Options make a server. Broker is needed.
type Options struct {
	Broker *broker.Broker
	// Tokens knows who may come in over TCP; nil lets nobody in.
	Tokens door.Tokens
	// TLS is for TCP; nil serves without, which is for loopback alone.
	TLS *tls.Config
	// Busy, when it is not nil, is called at the begin of every call, and what it gives at its end.
	Busy   func() func()
	Logger hclog.Logger
}

// Server serves gRPC. Its methods may be called concurrently.
type Server struct {
	o      Options
	health *health

	mu    sync.Mutex
	all   []*grpc.Server
	ended bool
}

// New makes a server. Close ends it.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Busy == nil {
		o.Busy = func() func() { return func() {} }
	}
	return &Server{o: o, health: newHealth(o.Broker)}
}

// ServeUnix answers this user's programs on a unix socket until Close.
func (s *Server) ServeUnix(l net.Listener) error {
	return s.serve(l, grpc.Creds(peerCredentials{}), fromPeer)
}

// ServeTCP answers who shows a token, on TCP, until Close.
func (s *Server) ServeTCP(l net.Listener) error {
	creds := grpc.EmptyServerOption{}
	if s.o.TLS == nil {
		return s.serve(l, creds, s.fromToken)
	}
	return s.serve(l, grpc.Creds(credentials.NewTLS(s.o.TLS)), s.fromToken)
}

func (s *Server) serve(l net.Listener, creds grpc.ServerOption, who identify) error {
	g := grpc.NewServer(creds,
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxConcurrentStreams(1024),
		grpc.ConnectionTimeout(10*time.Second), grpc.MaxHeaderListSize(64<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.busyUnary, who.unary, detailUnary), grpc.ChainStreamInterceptor(s.busyStream, who.stream, detailStream))
	catalog.Mount(g, s.call)
	browserv1.RegisterEventServiceServer(g, &events{broker: s.o.Broker})
	grpc_health_v1.RegisterHealthServer(g, s.health)
	reflection.Register(g)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return l.Close()
	}
	s.all = append(s.all, g)
	s.mu.Unlock()
	return g.Serve(l)
}

func (s *Server) busyUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	defer s.o.Busy()()
	return next(ctx, req)
}

func (s *Server) busyStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	defer s.o.Busy()()
	return next(srv, ss)
}

// Close ends the server: calls under way are given until ctx ends, streams of events end at once.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.ended = true
	all := s.all
	s.mu.Unlock()
	s.health.close()
	var wg sync.WaitGroup
	for _, g := range all {
		wg.Go(func() {
			stop := context.AfterFunc(ctx, g.Stop)
			defer stop()
			g.GracefulStop()
		})
	}
	wg.Wait()
}
