package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker/face/door"
	"github.com/droverhq/drover/broker/token"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
)

// defaultHTTP is where the daemon serves HTTP unless it is told otherwise.
const defaultHTTP = "127.0.0.1:7333"

// drainWait bounds how long calls under way may take when the daemon ends.
const drainWait = 15 * time.Second

// answerWait bounds how long it may then take to answer those that are not done.
const answerWait = 3 * time.Second

// serveOptions are the flags of serve.
type serveOptions struct {
	http      string
	grpc      string
	readyFile string
	cert, key string
	auto      bool
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon: a unix socket, and HTTP on 127.0.0.1", GroupID: groupAdmin, Args: exact(0, 0, ""),
		Long: `Run the daemon. It serves a unix socket for this user and HTTP on 127.0.0.1: POST /v1/call,
GET /v1/ws, GET /v1/events, GET /v1/openapi.json, /mcp, /metrics, /livez and /readyz. gRPC is
served on SOCKET.grpc, and on TCP with --grpc. HTTP wants Authorization: Bearer with a token;
the first start writes one, mode 0600, and the ready file names where.

SIGHUP reads the config again: a wrong one is refused and the old one stays in force. SIGTERM
finishes the calls under way (at most 15 s) and ends; a second one ends at once.`,
		Example: `  drover serve
  drover serve --http :0 --ready-file ready.json     any free port; the file says which
  drover serve --http off                            the unix socket alone`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := endedBy(cmd.Context())
			defer stop()
			if !cmd.Flags().Changed("http") {
				o.http = ""
			}
			return a.serve(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.http, "http", defaultHTTP, "the `ADDR` to serve HTTP on; :0 picks a port, off serves none")
	f.StringVar(&o.grpc, "grpc", "off", "the `ADDR` to serve gRPC on; :0 picks a port; SOCKET.grpc is always served")
	f.StringVar(&o.readyFile, "ready-file", "", "write {\"pid\",\"http\",\"socket\",\"token_file\"} to this `FILE` when ready")
	f.StringVar(&o.cert, "tls-cert", "", "the `FILE` with the certificate of an ADDR that other machines reach")
	f.StringVar(&o.key, "tls-key", "", "the `FILE` with its key")
	f.BoolVar(&o.auto, "auto", false, "end when idle; a command that needs a daemon starts it so")
	_ = f.MarkHidden("auto")
	return cmd
}

// daemon is a running `drover serve`.
type daemon struct {
	app    *app
	opts   serveOptions
	target target
	log    hclog.Logger
	engine *engine
	tokens *token.File
	began  time.Time
	binary binary // as it was at the start: the file may be replaced

	socket, control net.Listener
	http            *web // nil where HTTP is off
	faces           *faces

	use  use
	mu   sync.Mutex // over config
	conf *policy.Config

	reloads sync.Mutex // one after another

	end context.CancelCauseFunc // begins the end
}

func (a *app) serve(ctx context.Context, o serveOptions) (err error) {
	tell := func(readiness) {}
	if o.auto {
		syscall.CloseOnExec(readyFD) // the providers must not hold it open
		pipe := os.NewFile(readyFD, "ready")
		tell = func(r readiness) {
			if data, err := json.Marshal(r); err == nil {
				_, _ = pipe.Write(data)
			}
			_ = pipe.Close()
		}
	}
	d, err := a.newDaemon(o)
	if err != nil {
		tell(readiness{Busy: errors.Is(err, door.ErrInUse), Error: fault.From(err).Message})
		return err
	}
	defer func() { err = d.close(err) }()
	if err := d.ready(); err != nil {
		tell(readiness{Error: err.Error()})
		return err
	}
	tell(readiness{Ready: true})
	return d.run(ctx)
}

// newDaemon opens everything that can fail, the sockets last but the control socket: who reaches that finds a daemon that
// serves.
func (a *app) newDaemon(o serveOptions) (_ *daemon, err error) {
	d := &daemon{app: a, opts: o, began: time.Now(), binary: ownBinary()}
	defer func() {
		if err != nil {
			err = d.close(err)
		}
	}()
	if d.log, err = a.logger(); err != nil {
		return nil, err
	}
	if d.conf, err = a.loadConfig(); err != nil {
		return nil, err
	}
	if d.target, err = a.target(); err != nil {
		return nil, err
	}
	if d.socket, err = listen(d.target.socket); err != nil {
		return nil, err
	}
	if err := d.openTokens(); err != nil {
		return nil, err
	}
	if d.engine, err = newEngine(engineOptions{config: d.conf, log: d.log, stage: true}); err != nil {
		return nil, err
	}
	if d.faces, err = d.openFaces(); err != nil {
		return nil, err
	}
	if addr := d.address(); addr != "off" {
		if d.http, err = d.openWeb(addr); err != nil {
			return nil, err
		}
	}
	d.control, err = listen(controlPath(d.target.socket))
	return d, err
}

// address is where HTTP is served: the flag, the config, or the default. A daemon that a command started serves the
// socket alone unless the config says otherwise: that command needs no more, and the port may be another user's.
func (d *daemon) address() string {
	switch {
	case d.opts.http != "":
		return d.opts.http
	case d.conf.Listen.HTTP != "":
		return d.conf.Listen.HTTP
	case d.opts.auto:
		return "off"
	default:
		return defaultHTTP
	}
}

func listen(path string) (net.Listener, error) {
	if err := private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	l, err := door.Listen(path)
	switch {
	case errors.Is(err, door.ErrInUse):
		return nil, fault.New(fault.NotReady, "another daemon serves %s", path).Reason("in_use").
			Hint("end it, or use another socket with --socket PATH").Cause(err)
	case err != nil:
		return nil, fault.New(fault.InternalError, "%v", err).Hint("choose another socket with --socket PATH").Cause(err)
	}
	return l, nil
}

// ownToken is the name of the token that the first start writes for this user's programs.
const ownToken = "default"

// token is the file with this user's own token.
func (p places) token() string { return filepath.Join(p.state, "token") }

func (d *daemon) openTokens() (err error) {
	p := findPlaces()
	if d.tokens, err = token.Open(p.tokens()); err == nil {
		err = d.tokens.Ensure(ownToken, p.token())
	}
	if err != nil {
		return fault.New(fault.PermissionDenied, "the tokens: %v", err).Reason("path_refused").Cause(err)
	}
	return nil
}

// info is what the daemon says of itself.
func (d *daemon) info(ctx context.Context) *daemonInfo {
	d.mu.Lock()
	conf := d.conf
	d.mu.Unlock()
	return &daemonInfo{
		PID: os.Getpid(), Version: programVersion(), Binary: d.binary, Config: conf.File, ConfigHash: conf.Hash,
		HTTP: d.http.url(), Socket: d.target.socket, TokenFile: findPlaces().token(), Sessions: d.engine.sessions(ctx),
		Uploads: d.engine.staging, UploadDirs: conf.Files.Upload, Started: d.began.UTC(), Auto: d.opts.auto,
	}
}

// ready writes the ready file and says where the daemon is reached.
func (d *daemon) ready() error {
	told := struct {
		PID       int    `json:"pid"`
		HTTP      string `json:"http"`
		Socket    string `json:"socket"`
		TokenFile string `json:"token_file"`
	}{os.Getpid(), d.http.url(), d.target.socket, findPlaces().token()}
	data, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	d.log.Info("serving", "pid", told.PID, "socket", told.Socket, "http", told.HTTP, "config", d.conf.File)
	if d.opts.readyFile != "" {
		if err := replaceFile(d.opts.readyFile, append(data, '\n')); err != nil {
			return fault.New(fault.PermissionDenied, "the ready file cannot be written: %v", err).Reason("path_refused").Cause(err)
		}
	}
	switch {
	case d.opts.auto:
	case d.app.global.json:
		d.app.printJSON(data)
	default:
		fmt.Fprintf(d.app.out, "drover %s serves\n  socket %s\n", programVersion(), told.Socket)
		if told.HTTP != "" {
			fmt.Fprintf(d.app.out, "  http   %s\n  token  in %s\n", told.HTTP, told.TokenFile)
		}
		for _, at := range d.faces.addresses() {
			fmt.Fprintf(d.app.out, "  %-6s %s\n", at[0], at[1])
		}
	}
	return nil
}

// replaceFile writes a file whole: who waits for it never reads half of it.
func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
