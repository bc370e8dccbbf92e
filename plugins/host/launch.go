package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/internal/peer"
	"github.com/droverhq/drover/proto/fault"
)

// Launch starts a provider, asks it what it is and gives it its configuration. The instance is ready when Launch returns.
// When ctx ends, or the start takes longer than spec.StartTimeout, the process is killed. Errors are faults: setup_required
// for a binary that cannot be run, browser_not_running with reason provider_start_failed and the end of its stderr for one
// that does not come up, invalid_request with reason config_invalid for a configuration that it refuses.
func Launch(ctx context.Context, spec Spec) (*Instance, error) {
	spec = spec.complete()
	if err := spec.binary(); err != nil {
		return nil, err
	}
	digest, err := spec.Digests.Of(spec.Path)
	if err != nil {
		return nil, fault.New(fault.SetupRequired, "the binary of provider %s cannot be read: %v", spec.ID, err).
			Reason("provider_missing").Provider(spec.ID).Cause(err)
	}
	ctx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()

	l, err := newLaunch(spec)
	if err != nil {
		return nil, err
	}
	// Nothing in go-plugin's start heeds a context, but all of it ends when the process does.
	defer context.AfterFunc(ctx, l.process.kill)()
	conn, err := l.connect()
	if err != nil {
		return nil, l.fail(ctx, err)
	}
	i := newInstance(spec, conn)
	i.digest, i.process, i.dir = digest, l.process, l.dir
	i.own(l)
	if err := i.introduce(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		alive := i.Err() == nil
		_ = i.Stop(stop)
		if ctx.Err() != nil || (alive && notAnswered(err)) || !alive {
			return nil, l.explain(ctx, err)
		}
		return nil, err
	}
	return i, nil
}

// notAnswered says that an error came of the connection and not of the provider.
func notAnswered(err error) bool { return fault.ReasonOf(err) == "provider_exited" }

// launch is what a start has in hand before it is an instance.
type launch struct {
	spec    Spec
	dir     string
	sockets string
	process *process
	client  *plugin.Client
	stderr  *tail
}

func newLaunch(spec Spec) (*launch, error) {
	l := &launch{spec: spec, process: newProcess(spec.ID, spec.Path, spec.Args), stderr: &tail{}}
	var err error
	if spec.Run != nil {
		l.dir, err = spec.Run.sub(spec.ID)
	} else {
		l.dir, err = os.MkdirTemp("", "drover-")
	}
	if err != nil {
		return nil, fault.New(fault.InternalError, "the run folder of provider %s cannot be made: %v", spec.ID, err).Provider(spec.ID).Cause(err)
	}
	l.sockets = filepath.Join(l.dir, "s")
	if err := os.Mkdir(l.sockets, 0o700); err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	// go-plugin adds "/plugin-dir" and "/plugin", each with up to ten digits, and the kernel takes 107 bytes (unix(7)).
	if longest := len(l.sockets) + len("/plugin-dir0123456789/plugin0123456789"); longest > 107 {
		err := fault.New(fault.InternalError, "the run folder %s is too deep for a socket", l.dir).
			Hint("set XDG_RUNTIME_DIR to a shorter folder").Provider(spec.ID)
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	if spec.NoMTLS {
		l.process.sockets = l.sockets
	}
	l.client = plugin.NewClient(l.config())
	return l, nil
}

func (l *launch) config() *plugin.ClientConfig {
	log := l.spec.Logger
	dial := []grpc.DialOption{grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(plugins.MaxMessageBytes), grpc.MaxCallSendMsgSize(plugins.MaxMessageBytes))}
	if l.spec.NoMTLS {
		dial = append(dial, grpc.WithTransportCredentials(peer.SameUser()))
	}
	return &plugin.ClientConfig{
		HandshakeConfig:  plugins.Handshake,
		Plugins:          plugin.PluginSet{plugins.PluginName: &plugin.NetRPCUnsupportedPlugin{}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         !l.spec.NoMTLS,
		SkipHostEnv:      true,
		StartTimeout:     l.spec.StartTimeout,
		Logger:           log,
		Stderr:           l.stderr,
		SyncStdout:       &lines{log: log, stream: "stdout"},
		SyncStderr:       &lines{log: log, stream: "stderr"},
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: l.sockets},
		GRPCDialOptions:  dial,
		// Not Cmd: go-plugin would give it the host's stdin, which in drover stdio is the caller's.
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			l.process.cmd.Env = hostEnviron(l.spec, append(cmd.Env, l.environ()...))
			return l.process, nil
		},
	}
}

// environ gives the host's own variables.
func (l *launch) environ() []string {
	env := []string{plugins.EnvLifeline + "=stdin", plugins.EnvLogLevel + "=" + strings.ToLower(l.spec.Logger.GetLevel().String())}
	if l.spec.Run != nil {
		env = append(env, EnvRun+"="+l.spec.Run.Mark())
	}
	return env
}

func (l *launch) connect() (*grpc.ClientConn, error) {
	if _, err := l.client.Start(); err != nil {
		return nil, err
	}
	rpc, err := l.client.Client()
	if err != nil {
		return nil, err
	}
	c, ok := rpc.(*plugin.GRPCClient)
	if !ok {
		return nil, fmt.Errorf("a %T is no gRPC client", rpc)
	}
	return c.Conn, nil
}

// fail cleans up after a start that gave no connection and says why.
func (l *launch) fail(ctx context.Context, err error) error {
	l.process.kill()
	if l.process.ID() != "" {
		<-l.process.reaped
	}
	l.release()
	return l.explain(ctx, err)
}

// release frees what go-plugin holds and removes the folder. The process must be gone: only then does Kill return, for it
// waits without a bound for a process that is merely frozen.
func (l *launch) release() {
	l.client.Kill()
	_ = removeAll(l.dir)
}

// explain makes the fault of a start that failed. What the process wrote to stderr is all there is to go by.
func (l *launch) explain(ctx context.Context, err error) error {
	id, text := l.spec.ID, strings.TrimSpace(err.Error())
	var own *fault.Error
	if errors.As(err, &own) {
		text = own.Message
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		text = fmt.Sprintf("it did not come up within %s", l.spec.StartTimeout.Round(time.Millisecond))
	case ctx.Err() != nil:
		return fault.From(context.Cause(ctx))
	}
	e := fault.New(fault.BrowserNotRunning, "the provider %s did not start: %s", id, text).Reason("provider_start_failed").
		Retry("new_session").Provider(id).With("path", l.spec.Path).With("process", l.process.how()).Cause(err)
	if stderr := l.stderr.String(); stderr != "" {
		e.With("stderr", stderr)
		e.Message += "; it said: " + lastLine(stderr)
	}
	if strings.Contains(err.Error(), "authentication handshake failed") {
		return e.Hint("if its author has no X.509 library, set mtls = false in its block of the config")
	}
	return e.Hint("drover provider describe %s shows the log", id)
}

func lastLine(s string) string {
	return s[strings.LastIndexByte(s, '\n')+1:]
}
