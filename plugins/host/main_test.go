package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// envHost makes the test binary a host that starts a provider, says both pids and waits to be killed.
const envHost = "DROVER_TEST_HOST"

func TestMain(m *testing.M) {
	if root := os.Getenv(envHost); root != "" {
		beHost(root)
		return
	}
	plugintest.Main(map[string]func() *plugins.Server{
		"null":    newNull,
		"fake":    newScripted,
		"picky":   newPicky,
		"foreign": serveForeign,
		"absent":  func() *plugins.Server { return newStatus(browserv1.Availability_AVAILABILITY_UNAVAILABLE) },
	})
	goleak.VerifyTestMain(m)
}

// newNull answers what the benchmarks ask, with as much as they ask for.
func newNull() *plugins.Server {
	s := plugins.NewServer(plugins.Info{ID: "null", Families: []string{"chromium"}})
	plugins.Handle(s, func(_ context.Context, r *browserv1.EvalRequest) (*browserv1.EvalResponse, error) {
		return &browserv1.EvalResponse{PageId: "p1", Value: structpb.NewStringValue(r.GetExpression())}, nil
	})
	s.HandleCustom(&browserv1.CustomMethod{Name: "null.env"}, func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error) {
		env := make([]any, 0)
		for _, kv := range os.Environ() {
			env = append(env, kv)
		}
		v, err := structpb.NewValue(env)
		return v, err
	})
	s.HandleCustom(&browserv1.CustomMethod{Name: "null.stdin"}, func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error) {
		link, err := os.Readlink("/proc/self/fd/0")
		return structpb.NewStringValue(link), err
	})
	s.HandleCustom(&browserv1.CustomMethod{Name: "null.print"}, func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error) {
		fmt.Println("printed to stdout")
		s.Logger().Warn("logged by the provider", "answer", 42)
		return nil, nil
	})
	var settings *browserv1.HostSettings
	s.OnConfigure(nil, func(_ context.Context, _ *structpb.Struct, h *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
		settings = h
		return nil, nil
	})
	s.HandleCustom(&browserv1.CustomMethod{Name: "null.settings"}, func(context.Context, *browserv1.CustomRequest) (*structpb.Value, error) {
		return structpb.NewStringValue(settings.GetRunDir()), nil
	})
	return s
}

// newScripted has a method for each way to go wrong.
func newScripted() *plugins.Server {
	f := plugintest.NewSessions(plugins.Info{ID: "fake", Families: []string{"chromium"}})
	f.On("page.click", plugintest.Step{Hang: true})
	f.On("page.type", plugintest.Step{Deaf: true})
	f.On("page.open", plugintest.Step{Exit: 7})
	f.On("page.snapshot", plugintest.Step{Panic: "ouch"})
	return f.Server()
}

// foreign is a provider whose author knows go-plugin and the protocol, but not package plugins: it watches nothing.
type foreign struct {
	plugin.NetRPCUnsupportedPlugin
}

func (foreign) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	newNull().Register(g)
	return nil
}

func (foreign) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the provider")
}

func serveForeign() *plugins.Server {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugins.Handshake, Plugins: plugin.PluginSet{"browser": foreign{}}, GRPCServer: plugin.DefaultGRPCServer,
	})
	os.Exit(0)
	return nil
}

func newPicky() *plugins.Server {
	s := plugins.NewServer(plugins.Info{ID: "picky"})
	s.OnConfigure(nil, func(_ context.Context, c *structpb.Struct, _ *browserv1.HostSettings) ([]*browserv1.Diagnostic, error) {
		var into struct {
			Headless bool `json:"headless"`
		}
		return plugins.DecodeConfig(c, &into), nil
	})
	return s
}

func newStatus(a browserv1.Availability) *plugins.Server {
	s := plugins.NewServer(plugins.Info{ID: "absent"})
	plugins.Handle(s, func(context.Context, *browserv1.StatusRequest) (*browserv1.StatusResponse, error) {
		return &browserv1.StatusResponse{Availability: a, ManualSteps: []string{"install a browser"}}, nil
	})
	return s
}

func launch(t testing.TB, spec host.Spec) *host.Instance {
	t.Helper()
	i, err := host.Launch(t.Context(), spec)
	if err != nil {
		t.Fatalf("launch: %v", err)
	}
	t.Cleanup(func() { stop(t, i) })
	return i
}

func stop(t testing.TB, i *host.Instance) {
	t.Helper()
	if err := i.Stop(context.Background()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// run gives a run folder with a path short enough for sockets.
func run(t testing.TB) *host.Run {
	t.Helper()
	r, err := host.OpenRun(root(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func call(ctx context.Context, i *host.Instance, req proto.Message) (proto.Message, error) {
	m, ok := catalog.ByRequest(req)
	if !ok {
		return nil, fmt.Errorf("%T is no request", req)
	}
	return i.Call(ctx, m, req)
}

func custom(t testing.TB, i *host.Instance, name string) *structpb.Value {
	t.Helper()
	resp, err := i.Custom(t.Context(), &browserv1.CustomRequest{Method: name})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return resp.GetResult()
}

func wantFault(t testing.TB, err error, code fault.Code, reason string) *fault.Error {
	t.Helper()
	if fault.CodeOf(err) != code || fault.ReasonOf(err) != reason || err == nil {
		t.Fatalf("got %v, want %s/%s", err, fault.Word(code), reason)
	}
	return fault.From(err)
}

func click(ms int32) *browserv1.ClickRequest {
	selector := "#b"
	return &browserv1.ClickRequest{SessionId: "s1", TimeoutMs: &ms, Target: &browserv1.Target{Selector: &selector}}
}

// gone says whether a process has ended; a zombie that its parent has not looked at has.
func gone(pid int) bool {
	state, there := stateOf(pid)
	return !there || state == 'Z'
}

// stopped says whether every thread of a process is stopped by a signal.
func stopped(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && !slices.ContainsFunc(tasks, func(task os.DirEntry) bool {
		id, err := strconv.Atoi(task.Name())
		state, there := stateOf(id)
		return err != nil || there && state != 'T'
	})
}

// stateOf gives the state of a process or thread as proc(5) writes it, and whether there is one.
func stateOf(id int) (state byte, there bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return 0, !errors.Is(err, os.ErrNotExist)
	}
	if _, rest, ok := bytes.Cut(data, []byte(") ")); ok && len(rest) > 0 {
		return rest[0], true
	}
	return 0, true
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
