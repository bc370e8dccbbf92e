package host_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestLaunchDescribesUnderTheBrokersName(t *testing.T) {
	spec := plugintest.Spec(t, "null")
	spec.ID = "work"
	i := launch(t, spec)
	d := i.Describe()
	if d.GetProviderId() != "work" || d.GetProviderLabel() != "null" || len(i.Digest()) != 64 || i.PID() == 0 {
		t.Errorf("id %q, label %q, digest %q, pid %d", d.GetProviderId(), d.GetProviderLabel(), i.Digest(), i.PID())
	}
	resp, err := call(t.Context(), i, &browserv1.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if st := resp.(*browserv1.StatusResponse); st.GetProviderId() != "work" || int(st.GetPid()) != i.PID() {
		t.Errorf("status %v", st)
	}
}

// Binaries that do not come up fail with what they said, in bounded time, and leave nothing behind.
func TestBadBinaries(t *testing.T) {
	script := func(body string) string { return "#!/bin/sh\n" + body + "\n" }
	cases := map[string]struct {
		body   string
		mode   os.FileMode
		code   fault.Code
		reason string
		want   string
	}{
		"exit 1":         {script("echo no browser here >&2; exit 1"), 0o755, fault.BrowserNotRunning, "provider_start_failed", "no browser here"},
		"garbage":        {script("echo hello; sleep 60"), 0o755, fault.BrowserNotRunning, "provider_start_failed", "hello"},
		"half a line":    {script("printf 'x|y|z|w\n'; sleep 60"), 0o755, fault.BrowserNotRunning, "provider_start_failed", "protocol"},
		"silence":        {script("exec sleep 60"), 0o755, fault.BrowserNotRunning, "provider_start_failed", "did not come up within"},
		"bad socket":     {script("echo '1|1|unix|/nonexistent/sock|grpc|'; sleep 60"), 0o755, fault.BrowserNotRunning, "provider_start_failed", ""},
		"not executable": {script("exit 0"), 0o644, fault.SetupRequired, "provider_not_executable", "chmod +x"},
		"missing":        {"", 0, fault.SetupRequired, "provider_missing", "is missing"},
		"no program":     {"\x7fELFrubbish", 0o755, fault.BrowserNotRunning, "provider_start_failed", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "drover-provider-bad")
			if c.mode != 0 {
				if err := os.WriteFile(path, []byte(c.body), c.mode); err != nil {
					t.Fatal(err)
				}
			}
			r := run(t)
			began := time.Now()
			_, err := host.Launch(t.Context(), host.Spec{ID: "bad", Path: path, Run: r, StartTimeout: 2 * time.Second})
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("took %s", took)
			}
			e := wantFault(t, err, c.code, c.reason)
			if !strings.Contains(e.Message, c.want) || e.Details["provider_id"] != "bad" {
				t.Errorf("message %q, want %q; details %v", e.Message, c.want, e.Details)
			}
			if left, _ := filepath.Glob(filepath.Join(r.Dir(), "bad-*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestLaunchEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover-provider-slow")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := host.Launch(ctx, host.Spec{ID: "slow", Path: path})
	if err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// A provider gets the variables on the list and those that its spec names, and nothing else.
func TestEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "s3cret")
	t.Setenv("WANTED_ONE", "1")
	t.Setenv("LC_TIME", "C")
	spec := plugintest.Spec(t, "null")
	spec.Run = run(t)
	spec.Env = []string{"WANTED_*"}
	spec.SetEnv["GIVEN"] = "2"
	seen := map[string]string{}
	for _, v := range custom(t, launch(t, spec), "null.env").GetListValue().GetValues() {
		name, value, _ := strings.Cut(v.GetStringValue(), "=")
		seen[name] = value
	}
	for name, want := range map[string]string{"WANTED_ONE": "1", "GIVEN": "2", "LC_TIME": "C", "PATH": os.Getenv("PATH"), host.EnvRun: spec.Run.Mark()} {
		if seen[name] != want {
			t.Errorf("%s is %q, want %q", name, seen[name], want)
		}
	}
	// Nor does what is for the provider itself go on to what it starts.
	for _, name := range []string{"SECRET_TOKEN", "DROVER_PLUGIN", "DROVER_LIFELINE", "PLUGIN_CLIENT_CERT"} {
		if _, ok := seen[name]; ok {
			t.Errorf("%s was passed on", name)
		}
	}
}

// In drover stdio the host's stdin is the caller's: no provider may read from it.
func TestStdinIsNotTheHosts(t *testing.T) {
	own, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		t.Fatal(err)
	}
	got := custom(t, launch(t, plugintest.Spec(t, "null")), "null.stdin").GetStringValue()
	if got == own || !strings.HasPrefix(got, "pipe:") {
		t.Errorf("stdin is %q, the host's %q", got, own)
	}
}

// What a provider prints and logs comes out of the host's logger.
func TestOutputIsLogged(t *testing.T) {
	var out syncBuffer
	spec := plugintest.Spec(t, "null")
	spec.Logger = hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug})
	i := launch(t, spec)
	custom(t, i, "null.print")
	stop(t, i)
	for _, want := range []string{"printed to stdout", "null: logged by the provider", "answer=42"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, out.String())
		}
	}
}

func TestRunDirGoesWithTheProcess(t *testing.T) {
	spec := plugintest.Spec(t, "null")
	spec.Run = run(t)
	i := launch(t, spec)
	dir := custom(t, i, "null.settings").GetStringValue()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 || !strings.HasPrefix(dir, spec.Run.Dir()) {
		t.Fatalf("%s: %v", dir, err)
	}
	stop(t, i)
	if left, _ := filepath.Glob(filepath.Join(spec.Run.Dir(), "null-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Nobody but the host may call a provider, though the socket be found.
func TestIntruderIsRefused(t *testing.T) {
	spec := plugintest.Spec(t, "null")
	spec.Run = run(t)
	i := launch(t, spec)
	socks, err := filepath.Glob(filepath.Join(spec.Run.Dir(), "*", "s", "*", "plugin*"))
	if err != nil || len(socks) != 1 {
		t.Fatalf("sockets %v, %v", socks, err)
	}
	for name, creds := range map[string]credentials.TransportCredentials{
		"plain":          insecure.NewCredentials(),
		"no certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}),
	} {
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(creds),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socks[0])
			}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = browserv1.NewProviderServiceClient(conn).Status(t.Context(), &browserv1.StatusRequest{})
		if err == nil {
			t.Errorf("%s: the intruder was answered", name)
		}
		_ = conn.Close()
	}
	if _, err := call(t.Context(), i, &browserv1.StatusRequest{}); err != nil {
		t.Errorf("the host: %v", err)
	}
}

// Without mTLS the socket's folder and the peer's user are what guards it.
func TestWithoutMTLS(t *testing.T) {
	spec := plugintest.Spec(t, "null")
	spec.Run = run(t)
	spec.NoMTLS = true
	i := launch(t, spec)
	if _, err := call(t.Context(), i, &browserv1.StatusRequest{}); err != nil {
		t.Fatal(err)
	}
	socks, err := filepath.Glob(filepath.Join(spec.Run.Dir(), "*", "s", "*", "plugin*"))
	if err != nil || len(socks) != 1 {
		t.Fatalf("sockets %v, %v", socks, err)
	}
	for dir := filepath.Dir(socks[0]); dir != filepath.Dir(spec.Run.Dir()); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}

// A provider that listens where others can reach it is refused when there is no certificate.
func TestWithoutMTLSOnlyThePrivateFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drover-provider-tcp")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '1|1|tcp|127.0.0.1:9|grpc|'\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := host.Launch(t.Context(), host.Spec{ID: "tcp", Path: path, NoMTLS: true})
	if e := wantFault(t, err, fault.BrowserNotRunning, "provider_start_failed"); !strings.Contains(e.Message, "without mTLS") {
		t.Error(e.Message)
	}
}

func TestConfigIsRefusedWithItsPath(t *testing.T) {
	spec := plugintest.Spec(t, "picky")
	var err error
	if spec.Config, err = structpb.NewStruct(map[string]any{"headles": true}); err != nil {
		t.Fatal(err)
	}
	_, err = host.Launch(t.Context(), spec)
	if e := wantFault(t, err, fault.InvalidRequest, "config_invalid"); !strings.Contains(e.Message, `headles: there is no setting "headles"`) {
		t.Error(e.Message)
	}
	if spec.Config, err = structpb.NewStruct(map[string]any{"headless": true}); err != nil {
		t.Fatal(err)
	}
	launch(t, spec)
}

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
