package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/face/envelope"
	"github.com/droverhq/drover/proto/fault"
)

// web is the daemon's HTTP server.
type web struct {
	listener net.Listener
	face     *envelope.Server
	server   *http.Server
	secure   bool
	base     context.Context // of every request; ends with the server
	cut      context.CancelFunc
	requests sync.WaitGroup
}

// openWeb opens the HTTP face on an address. One that other machines reach is refused unless it has a certificate: the
// tokens would be read on the way.
func (d *daemon) openWeb(addr string) (*web, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usage("--http must be ADDR:PORT, :0 or off, not %q", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	w := &web{}
	var conf *tls.Config
	if d.opts.cert != "" || d.opts.key != "" {
		pair, err := tls.LoadX509KeyPair(d.opts.cert, d.opts.key)
		if err != nil {
			return nil, usage("--tls-cert and --tls-key: %v", err)
		}
		conf, w.secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, true
	}
	if !loopback(host) && !w.secure {
		return nil, fault.New(fault.PermissionDenied, "%s can be reached by other machines, and HTTP would show them the tokens", addr).
			Reason("policy_denied").Hint("listen on 127.0.0.1, or give --tls-cert and --tls-key")
	}
	w.listener, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fault.New(fault.NotReady, "HTTP on %s: %v", addr, err).Reason("in_use").
			Hint("choose another address with --http ADDR, :0 for any free port, or off").Cause(err)
	}
	face := &envelope.Server{
		Broker: d.engine.broker, Logger: d.log.Named("http"), Mounts: map[string]http.Handler{"/mcp": d.faces.mcp.Handler()},
		Door: door.Door{Tokens: d.tokens, Hosts: d.conf.Listen.Hosts, Origins: d.conf.Listen.Origins},
	}
	w.face = face
	inner := face.Handler()
	w.base, w.cut = context.WithCancel(context.Background())
	w.server = &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.requests.Add(1)
			defer w.requests.Done()
			defer d.use.enter()()
			inner.ServeHTTP(rw, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return w.base },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: d.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	w.server.RegisterOnShutdown(face.EndStreams)
	if conf != nil {
		w.listener = tls.NewListener(w.listener, conf)
	}
	return w, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// url is where the server is reached; empty where HTTP is off.
func (w *web) url() string {
	if w == nil {
		return ""
	}
	scheme := "http"
	if w.secure {
		scheme = "https"
	}
	return scheme + "://" + w.listener.Addr().String()
}

// serve answers until ctx ends or the server is drained, and then waits for what is left.
func (w *web) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		w.cut()
		_ = w.server.Close()
	})
	defer stop()
	err := w.server.Serve(w.listener)
	<-ctx.Done()
	w.cut()
	w.requests.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve HTTP: %w", err)
}

// drain takes no new connections and waits for the requests under way; WebSockets go on until the end.
func (w *web) drain(ctx context.Context) { _ = w.server.Shutdown(ctx) }

// settle waits until what was called over WebSockets is answered.
func (w *web) settle(ctx context.Context) {
	if w != nil {
		w.face.Settle(ctx)
	}
}

// close frees the server where it never served.
func (w *web) close() {
	if w != nil {
		w.cut()
		_ = w.server.Close()
		_ = w.listener.Close()
	}
}
