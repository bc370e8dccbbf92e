package conformance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins/host"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// stopTime is how long a process may take to be gone.
const stopTime = 10 * time.Second

// JudgeBinary runs the suite against a provider's binary, which it starts as the host does, in a run folder of its own below
// root. A provider that knows no certificates is judged without mutual TLS, and the report says so. Options.Connect, Whole
// and Uploads are filled in.
func JudgeBinary(ctx context.Context, root string, spec host.Spec, o Options) (_ *Report, err error) {
	work, err := os.MkdirTemp("", "drover-conform-")
	if err != nil {
		return nil, fault.New(fault.InternalError, "the suite's folder: %v", err).Cause(err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if real, rerr := filepath.EvalSymlinks(work); rerr == nil {
		work = real
	}
	run, err := host.OpenRun(root)
	if err != nil {
		return nil, err
	}
	defer func() {
		run.KillMarked() // a broken provider leaves things
		if cerr := run.Close(); err == nil {
			err = cerr
		}
	}()
	o.Uploads = filepath.Join(work, "uploads")
	if err := os.Mkdir(o.Uploads, 0o700); err != nil {
		return nil, fault.New(fault.InternalError, "the suite's folder: %v", err).Cause(err)
	}
	spec.Run = run
	settings := &browserv1.HostSettings{}
	if spec.Settings != nil {
		settings = proto.CloneOf(spec.Settings)
	}
	settings.StateDir, settings.UploadDirs = filepath.Join(work, "state"), []string{o.Uploads}
	spec.Settings = settings
	if spec.Digests == nil {
		spec.Digests = &host.Digests{}
	}
	whole := &Process{Spec: spec, Run: run}
	o.Whole = whole
	o.Connect = func(ctx context.Context) (Connection, func(), error) {
		i, err := host.Launch(ctx, whole.Spec)
		if err != nil && !whole.Spec.NoMTLS && strings.Contains(err.Error(), "mtls = false") {
			without := whole.Spec
			without.NoMTLS = true
			if j, again := host.Launch(ctx, without); again == nil {
				whole.Spec.NoMTLS, i, err = true, j, nil
			}
		}
		if err != nil {
			return nil, nil, err
		}
		return i, func() {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			_ = i.Stop(stop) // how it ends is judged by checks of its own
		}, nil
	}
	r, err := Judge(ctx, o)
	if err != nil {
		return nil, err
	}
	r.MTLS = !whole.Spec.NoMTLS
	if r.SHA256, err = spec.Digests.Of(spec.Path); err != nil {
		return nil, fault.New(fault.SetupRequired, "the binary cannot be read: %v", err).Cause(err)
	}
	return r, nil
}

// Names lists the checks in the order they run, for documentation and tests.
func Names() ([]string, error) {
	list, err := allChecks()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range list {
		out = append(out, c.id)
	}
	slices.Sort(out)
	return out, nil
}
