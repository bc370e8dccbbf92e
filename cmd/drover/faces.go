package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/door"
	grpcface "github.com/droverhq/drover/broker/face/grpc"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/proto/fault"
)

// faces are what a daemon serves beside envelopes: MCP and gRPC. Each has a socket of its own beside the daemon's; MCP is
// served over HTTP too, at /mcp, and gRPC on TCP where that is asked for.
type faces struct {
	mcp  *mcp.Face
	grpc *grpcface.Server

	mcpSocket, grpcSocket, grpcTCP net.Listener // nil for those that are not served

	conns *connections // of MCP streams
}

// grpcSocket is where a daemon serves gRPC to this user's programs.
func grpcSocket(socket string) string { return socket + ".grpc" }

// openFaces makes the faces and opens their listeners. A socket whose path is too long is done without.
func (d *daemon) openFaces() (*faces, error) {
	conf, err := d.certificate()
	if err != nil {
		return nil, err
	}
	f := &faces{
		conns: newConnections(),
		mcp: mcp.New(mcp.Options{
			Broker: d.engine.broker, Version: programVersion(), Idle: d.conf.Sessions.Idle, Origins: d.conf.Listen.Origins, Logger: d.log.Named("mcp"),
		}),
		grpc: grpcface.New(grpcface.Options{
			Broker: d.engine.broker, Tokens: d.tokens, TLS: conf, Busy: d.use.enter, Logger: d.log.Named("grpc"),
		}),
	}
	for path, l := range map[string]*net.Listener{mcpSocket(d.target.socket): &f.mcpSocket, grpcSocket(d.target.socket): &f.grpcSocket} {
		if *l, err = listen(path); err != nil {
			d.log.Warn("a socket is not served", "path", path, "error", fault.From(err).Message)
			*l = nil
		}
	}
	if addr := d.opts.grpc; addr != "" && addr != "off" {
		if f.grpcTCP, err = openGRPC(addr, conf); err != nil {
			f.close(context.Background())
			return nil, err
		}
	}
	return f, nil
}

// certificate is what TCP is served with; nil for none.
func (d *daemon) certificate() (*tls.Config, error) {
	if d.opts.cert == "" && d.opts.key == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(d.opts.cert, d.opts.key)
	if err != nil {
		return nil, usage("--tls-cert and --tls-key: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func openGRPC(addr string, conf *tls.Config) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usage("--grpc must be ADDR:PORT, :0 or off, not %q", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !loopback(host) && conf == nil {
		return nil, fault.New(fault.PermissionDenied, "%s can be reached by other machines, and gRPC would show them the tokens", addr).
			Reason("policy_denied").Hint("listen on 127.0.0.1, or give --tls-cert and --tls-key")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fault.New(fault.NotReady, "gRPC on %s: %v", addr, err).Reason("in_use").
			Hint("choose another address with --grpc ADDR, :0 for any free port, or off").Cause(err)
	}
	return l, nil
}

// addresses tells where the faces are reached, by name.
func (f *faces) addresses() [][2]string {
	var out [][2]string
	if f.mcpSocket != nil {
		out = append(out, [2]string{"mcp", f.mcpSocket.Addr().String()})
	}
	if f.grpcSocket != nil {
		out = append(out, [2]string{"grpc", "unix://" + f.grpcSocket.Addr().String()})
	}
	if f.grpcTCP != nil {
		out = append(out, [2]string{"grpc", f.grpcTCP.Addr().String()})
	}
	return out
}

// serve answers until close; fail hears of a listener that breaks.
func (f *faces) serve(ctx context.Context, d *daemon, fail func(error)) {
	var work sync.WaitGroup
	defer work.Wait()
	run := func(serve func() error) {
		work.Go(func() {
			if err := serve(); err != nil && ctx.Err() == nil {
				fail(err)
			}
		})
	}
	if f.mcpSocket != nil {
		run(func() error {
			return door.AcceptAll(ctx, f.mcpSocket, func(ctx context.Context, c net.Conn) { f.serveMCP(ctx, d, c) })
		})
	}
	if f.grpcSocket != nil {
		run(func() error { return f.grpc.ServeUnix(f.grpcSocket) })
	}
	if f.grpcTCP != nil {
		run(func() error { return f.grpc.ServeTCP(f.grpcTCP) })
	}
}

// serveMCP serves one MCP client on a connection.
func (f *faces) serveMCP(ctx context.Context, d *daemon, c net.Conn) {
	defer d.use.enter()()
	who, err := door.Peer(c)
	if err != nil {
		d.log.Warn("connection refused", "error", err)
		return
	}
	leave, ok := f.conns.enter(c)
	if !ok {
		return
	}
	defer leave()
	if err := f.mcp.ServeConn(ctx, d.engine.broker.Connect(who, broker.Bound), c); err != nil && ctx.Err() == nil {
		d.log.Debug("MCP connection ended", "error", err)
	}
}

// close ends the faces, at most until ctx ends.
func (f *faces) close(ctx context.Context) {
	if f == nil {
		return
	}
	f.grpc.Close(ctx)
	f.mcp.Close(ctx)
	for _, l := range []net.Listener{f.mcpSocket, f.grpcSocket, f.grpcTCP} {
		if l != nil {
			_ = l.Close()
		}
	}
}
