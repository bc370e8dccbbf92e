package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/mcp"
)

func (a *app) mcpCommand() *cobra.Command {
	var profile string
	var connect, text bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP on stdin and stdout, for agents", GroupID: groupAdmin, Args: exact(0, 0, ""),
		Long: `Serve the Model Context Protocol on stdin and stdout. The broker is inside, the providers are its
children, and all of it is gone when stdin closes. --browser and --provider choose for every session.

--profile names the tools that the client gets: core (what most tasks need), extra, network, storage,
debug, admin, or all. --text puts results into the text alone, for clients that show their model nothing
else.`,
		Example: `  claude mcp add browser -- drover mcp
  drover mcp --profile core,network --browser firefox
  drover mcp --connect                          use this user's daemon`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			profiles, err := mcp.ParseProfiles(profile)
			if err != nil {
				return err
			}
			ctx, stop := endedBy(cmd.Context(), syscall.SIGHUP)
			defer stop()
			hello := mcp.Hello{Profiles: profiles, Text: text, Browser: a.global.browser, Provider: a.global.provider}
			if cmd.Flags().Changed("session") || os.Getenv("DROVER_SESSION") != "" || !connect {
				hello.Session = a.global.session
			}
			if connect {
				return a.relayMCP(ctx, hello)
			}
			return a.mcp(ctx, hello)
		},
	}
	f := cmd.Flags()
	f.StringVar(&profile, "profile", mcp.DefaultProfile, "the `PROFILES` of tools, separated by commas")
	f.BoolVar(&text, "text", false, "give results as text alone, without structured content")
	f.BoolVar(&connect, "connect", false, "use this user's daemon instead of a broker inside")
	complete(cmd, "profile", words(mcp.Profiles()...))
	return cmd
}

// mcp serves one parent with a broker of its own.
func (a *app) mcp(ctx context.Context, hello mcp.Hello) (err error) {
	e, err := a.engine()
	if err != nil {
		return err
	}
	defer func() { err = e.closeAfter(err) }()
	e.warm(ctx)
	face := mcp.New(mcp.Options{Broker: e.broker, Version: programVersion(), Logger: e.log.Named("mcp")})
	defer face.Close(context.WithoutCancel(ctx))
	caller := e.broker.Connect(broker.Principal{ID: "mcp", Name: "mcp"}, broker.Bound)
	err = face.Serve(ctx, caller, hello, io.NopCloser(a.in), unclosed{a.out})
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // it was told to end, or its parent is gone
	}
	return err
}

// unclosed is a writer whose end is the process's.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// mcpSocket is where a daemon serves MCP on a stream, beside its own socket.
func mcpSocket(socket string) string { return socket + ".mcp" }

// relayMCP carries bytes between this process and the daemon's MCP socket.
func (a *app) relayMCP(ctx context.Context, hello mcp.Hello) error {
	l, err := a.connect(ctx) // starts a daemon where none runs
	if err != nil {
		return err
	}
	l.close()
	t, err := a.target()
	if err != nil {
		return err
	}
	conn, err := dial(ctx, mcpSocket(t.socket))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	line, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return err
	}
	go func() { // ends with the process: a read of stdin cannot be interrupted
		_, _ = io.Copy(conn, a.in)
		if u, ok := conn.(*net.UnixConn); ok {
			_ = u.CloseWrite()
		}
	}()
	_, err = io.Copy(a.out, conn)
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
