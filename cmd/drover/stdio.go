package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/envelope"
)

func (a *app) stdioCommand() *cobra.Command {
	connect := false
	cmd := &cobra.Command{
		Use: "stdio", Short: "Speak the protocol on stdin and stdout, a JSON object a line", GroupID: groupAdmin, Args: exact(0, 0, ""),
		Long: `Speak the browser provider protocol on stdin and stdout, one JSON object a line. The broker is inside,
the providers are its children, and all of it is gone when stdin closes: calls that were read are
finished first (at most 15 s). SIGTERM and SIGHUP end it at once. Files may be uploaded from the
folder it was started in, unless the config names others.`,
		Example: `  printf '%s\n' '{"protocol_version":"0.1","id":1,"method":"session.ensure","params":{"client_session_id":"a"}}' | drover stdio`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := endedBy(cmd.Context(), syscall.SIGHUP)
			defer stop()
			if connect {
				return a.relay(ctx)
			}
			return a.stdio(ctx)
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "use this user's daemon instead of a broker inside")
	return cmd
}

// stdio serves one parent with a broker of its own.
func (a *app) stdio(ctx context.Context) (err error) {
	e, err := a.engine()
	if err != nil {
		return err
	}
	defer func() { err = e.closeAfter(err) }()
	e.warm(ctx)
	err = envelope.Serve(ctx, e.broker.Connect(broker.Principal{ID: "stdio", Name: "stdio"}, broker.Bound), a.in, a.out)
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // it was told to end, or its parent is gone
	}
	return err
}

// relay carries bytes between this process and the daemon's socket.
func (a *app) relay(ctx context.Context) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	defer context.AfterFunc(ctx, l.close)()
	go func() { // ends with the process: a read of stdin cannot be interrupted
		_, _ = io.Copy(l.conn, a.in)
		if u, ok := l.conn.(*net.UnixConn); ok {
			_ = u.CloseWrite()
		}
	}()
	_, err = io.Copy(a.out, l.conn)
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// endedBy gives a context that ends at one of these signals too. A write to a pipe that nobody reads any more is an error
// from then on, and not the end of the process before it has put its things away.
func endedBy(ctx context.Context, also ...os.Signal) (context.Context, context.CancelFunc) {
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ctx, stop := context.WithCancel(ctx)
	if len(also) > 0 { // none would mean all
		ctx, stop = signal.NotifyContext(ctx, also...)
	}
	return ctx, func() {
		stop()
		signal.Stop(pipe)
	}
}
