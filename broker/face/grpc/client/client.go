// Package client calls a Drover broker over gRPC from Go: any method of the protocol by its request, events as an iterator,
// errors as faults.
//
//	c, err := client.Dial("unix:///run/user/1000/drover/drover.sock.grpc", client.Options{})
//	s, err := client.Call[*browserv1.EnsureSessionResponse](ctx, c, &browserv1.EnsureSessionRequest{ClientSessionId: "docs"})
package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// maxMessage is the largest message in either direction, in bytes.
const maxMessage = 64 << 20

// Options say how a broker is reached.
type Options struct {
	// Token is shown over TCP; a unix socket needs none.
	Token string
	// TLS is for a broker with a certificate; nil for a unix socket and for loopback.
	TLS *tls.Config
}

// Client is a connection to a broker. Its methods may be called concurrently.
type Client struct{ conn *grpc.ClientConn }

// Dial prepares a connection to a target of gRPC: unix:///path or host:port. It is made at the first call.
func Dial(target string, o Options) (*Client, error) {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	}
	if o.Token != "" {
		opts = append(opts, grpc.WithPerRPCCredentials(bearer{o.Token, o.TLS != nil}))
	}
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the target %q: %v", target, err).Cause(err)
	}
	return &Client{conn: conn}, nil
}

// Conn gives the connection, for the generated stubs of browser.v1.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Call calls the method that takes this request. An error is a fault: fault.CodeOf and fault.ReasonOf say which.
func Call[Resp proto.Message](ctx context.Context, c *Client, req proto.Message) (Resp, error) {
	var none Resp
	m, ok := catalog.ByRequest(req)
	if !ok {
		return none, fault.New(fault.UnsupportedMethod, "no method takes a %T", req)
	}
	resp, ok := m.NewResponse().(Resp)
	if !ok {
		return none, fault.New(fault.InvalidRequest, "%s answers a %T, not a %T", m.Name, m.NewResponse(), none)
	}
	if err := c.conn.Invoke(ctx, m.Path, req, resp); err != nil {
		return none, faultOf(err)
	}
	return resp, nil
}

// faultOf reads a fault from the error of a call; a broker that cannot be reached is not_ready.
func faultOf(err error) error {
	if st, ok := status.FromError(err); ok && st.Code() == codes.Unavailable && len(st.Details()) == 0 {
		return fault.New(fault.NotReady, "the broker cannot be reached: %s", st.Message()).Reason("unreachable").
			Hint("drover serve starts one").Cause(err)
	}
	return fault.FromStatus(err)
}

// Events gives what happens in the caller's sessions until ctx ends or the loop does. Empty lists stand for all types and
// all sessions. ready, when it is not nil, is called when events are heard.
func (c *Client) Events(ctx context.Context, types, sessions []string, ready func()) iter.Seq2[*browserv1.Event, error] {
	return func(yield func(*browserv1.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := browserv1.NewEventServiceClient(c.conn).WatchEvents(ctx, &browserv1.WatchEventsRequest{Types: types, SessionIds: sessions})
		for {
			var resp *browserv1.WatchEventsResponse
			if err == nil {
				resp, err = stream.Recv()
			}
			switch {
			case err != nil:
				yield(nil, fmt.Errorf("events: %w", faultOf(err)))
				return
			case resp.GetEvent() == nil:
				if ready != nil {
					ready()
				}
			case !yield(resp.GetEvent(), nil):
				return
			}
		}
	}
}

// bearer shows a token with every call.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }
