package grpc

import (
	"context"
	"net"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/trace"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// identify finds the principal of a call.
type identify func(context.Context) (broker.Principal, error)

type principalKey struct{}

// open says which services answer without a principal: whoever looks after the process asks for its health.
func open(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

func (who identify) context(ctx context.Context, method string) (context.Context, error) {
	if open(method) {
		return ctx, nil
	}
	p, err := who(ctx)
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, principalKey{}, p), nil
}

func (who identify) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := who.context(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (who identify) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := who.context(ss.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return next(srv, &identified{ss, ctx})
}

// identified is a stream whose context knows the principal.
type identified struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a gRPC stream carries its context
}

func (s *identified) Context() context.Context { return s.ctx }

// fromToken takes the principal from `authorization: Bearer TOKEN`.
func (s *Server) fromToken(ctx context.Context) (broker.Principal, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	all := md.Get("authorization")
	if len(all) == 1 && s.o.Tokens != nil {
		if scheme, plain, ok := strings.Cut(all[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			if t, ok := s.o.Tokens.Lookup(strings.TrimSpace(plain)); ok {
				return broker.Principal{ID: "token:" + t.ID, Name: t.Name, Labels: t.Labels}, nil
			}
		}
	}
	return broker.Principal{}, status.Error(codes.Unauthenticated, "a valid token is wanted: send the metadata authorization: Bearer TOKEN")
}

// fromPeer takes the principal that the socket's handshake found.
func fromPeer(ctx context.Context) (broker.Principal, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(peerInfo); ok {
			return info.principal, nil
		}
	}
	return broker.Principal{}, status.Error(codes.Unauthenticated, "the socket's peer is not known")
}

// peerCredentials ask the kernel who is at the other end of a unix socket. Another user's connection is closed.
type peerCredentials struct{}

type peerInfo struct {
	credentials.CommonAuthInfo
	principal broker.Principal
}

func (peerInfo) AuthType() string { return "peer" }

func (peerCredentials) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p, err := door.Peer(c)
	if err != nil {
		return nil, nil, err
	}
	return c, peerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, p}, nil
}

func (peerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, fault.New(fault.InternalError, "these credentials are a server's")
}

func (peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "peer"}
}
func (c peerCredentials) Clone() credentials.TransportCredentials { return c }
func (peerCredentials) OverrideServerName(string) error           { return nil }

// call answers one normalized method.
func (s *Server) call(ctx context.Context, m *catalog.Method, req proto.Message) (proto.Message, error) {
	who, ok := ctx.Value(principalKey{}).(broker.Principal)
	if !ok {
		return nil, fault.New(fault.PermissionDenied, "the caller is not known").Reason("policy_denied")
	}
	if m.Spec.GetAnswerer() == browserv1.Answerer_ANSWERER_FACE {
		return nil, fault.New(fault.UnsupportedMethod, "%s is for connections that carry lines", m.Name).
			Hint("gRPC has EventService.WatchEvents, and cancels a call by ending it")
	}
	ctx, span := s.o.Broker.Tracer().Serve(trace.FromMetadata(ctx), strings.TrimPrefix(m.Path, "/"), attribute.String("rpc.system.name", "grpc"))
	resp, err := s.o.Broker.Connect(who, broker.Unbound).Call(ctx, m, req)
	span.End(err)
	return resp, err
}
