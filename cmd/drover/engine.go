package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/conformance"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// engine is a broker together with the provider processes that it routes to: what `drover stdio` and `drover serve` have
// inside. Nothing of it outlives close.
type engine struct {
	broker  *broker.Broker
	log     hclog.Logger
	places  places
	uploads []string
	staging string // where commands put what is uploaded; empty where files are taken where they lie
	run     *host.Run
	digests *host.Digests
	reports *conformance.Store

	telemetry *spans // nil where nothing is traced
	processes *processMeter
	audit     *auditLog

	mu      sync.Mutex // over supervisors, during a reload
	sources map[string]*source
	work    sync.WaitGroup
	leaving context.Context // ends when the processes of sources that a reload took away end whatever sessions they have
	leave   context.CancelFunc
}

// engineOptions make an engine.
type engineOptions struct {
	config *policy.Config
	log    hclog.Logger
	// uploads are the folders that files may be uploaded from where the config names none.
	uploads []string
	// stage gives the engine a folder of its own for them: a daemon's callers were started in many folders.
	stage bool
}

// newEngine finds the providers that the config names, or all there are, and puts a broker before them. No provider runs
// yet, but for one that was never seen: that is asked what it is.
func newEngine(o engineOptions) (*engine, error) {
	leaving, leave := context.WithCancel(context.Background())
	e := &engine{leaving: leaving, leave: leave, log: o.log, places: findPlaces(), uploads: o.uploads, sources: map[string]*source{}}
	if err := private(e.places.run); err != nil {
		return nil, err
	}
	root := e.places.runs()
	run, err := host.OpenRun(root)
	if err != nil {
		return nil, err
	}
	e.run = run
	if o.stage {
		if err := e.makeStaging(root); err != nil {
			return nil, errors.Join(err, run.Close())
		}
	}
	e.digests = &host.Digests{File: filepath.Join(e.places.cache, "digests.json")}
	e.reports = e.places.reports()
	e.audit = &auditLog{log: o.log}
	e.telemetry = openTelemetry(o.log)
	e.processes = newProcessMeter()
	e.broker = broker.New(broker.Options{
		Collectors: e.processes.collectors(),
		Tracer:     e.telemetry.tracer(),
		Policy:     policy.New(o.config), Logger: o.log.Named("broker"), Version: programVersion(), Audit: e.audit.write,
	})
	e.apply(o.config)
	e.work.Go(func() { e.sweep(root) })
	return e, nil
}

// sweep removes what killed brokers left behind. The start does not wait for it.
func (e *engine) sweep(root string) {
	swept, err := host.Sweep(root)
	e.processes.swept(swept)
	if err != nil {
		e.log.Warn("leftovers cannot be removed", "error", err)
	}
	if len(swept.Dirs)+len(swept.PIDs) > 0 {
		e.log.Info("removed leftovers", "folders", len(swept.Dirs), "processes", len(swept.PIDs))
	}
}

// apply puts a config in force: providers that it adds are looked after, and the rest keep their processes. Those that it
// drops or changes get no new sessions, and end when their last one has.
func (e *engine) apply(cfg *policy.Config) {
	e.mu.Lock()
	var old []*source
	kept := map[string]*source{}
	var list []broker.Source
	for i, w := range wanted(cfg) {
		w.uploads, w.downloads = e.uploads, cfg.Files.Download
		if len(cfg.Files.Upload) > 0 {
			w.uploads = cfg.Files.Upload
		}
		s := e.sources[w.id]
		if s == nil || !s.want.same(w) {
			if s != nil {
				old = append(old, s)
			}
			s = e.supervise(cfg, w, lookAfter(i))
		}
		kept[w.id] = s
		list = append(list, s)
	}
	for id, s := range e.sources {
		if kept[id] == nil {
			old = append(old, s)
		}
	}
	e.sources = kept
	e.mu.Unlock()

	e.audit.apply(cfg.Audit)
	e.broker.Apply(policy.New(cfg), list)
	for _, s := range old {
		e.work.Go(func() {
			if err := s.super.Drain(e.leaving); err != nil {
				e.log.Debug("provider did not run dry", "provider", s.want.id, "error", err)
			}
			s.super.Close()
		})
	}
}

func closeSources(list []*source) {
	var wg sync.WaitGroup
	for _, s := range list {
		wg.Go(s.super.Close)
	}
	wg.Wait()
}

// lookAfter is when the nth provider is asked what it is, if nobody knows yet: the first at once, the rest one after another
// once the first session is likely to have its browser.
func lookAfter(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return 1500*time.Millisecond + time.Duration(n)*300*time.Millisecond
}

// supervise starts to look after a provider.
func (e *engine) supervise(cfg *policy.Config, w want, lookAfter time.Duration) *source {
	s, count := &source{want: w, tier: e.reports.Tier}, e.processes.follow(w.id)
	s.super = host.Supervise(host.Options{
		Spec: host.Spec{
			ID: w.id, Path: w.path, Env: w.env, NoMTLS: w.noMTLS, Config: w.body, Run: e.run, Digests: e.digests, Tier: e.reports.Tier,
			Settings: &browserv1.HostSettings{StateDir: filepath.Join(e.places.state, "providers", w.id), UploadDirs: w.uploads, DownloadDir: w.downloads},
			Logger:   e.log.Named(w.id),
		},
		CacheDir: e.places.describe(), Idle: cfg.Sessions.ProviderIdle, LookAfter: lookAfter,
		OnChange: func(c host.Change) {
			e.log.Debug("provider changed", "provider", w.id, "from", c.From, "to", c.To)
			count(c)
			e.broker.Changed(w.id)
		},
	})
	return s
}

// warm starts the provider that a session most likely gets, so that its process is up when the first request comes.
func (e *engine) warm(ctx context.Context) {
	ids := e.enabled()
	if len(ids) == 0 {
		return
	}
	super, err := e.supervisor(ids[0])
	if err != nil {
		return
	}
	e.work.Go(func() {
		if _, err := super.Acquire(ctx); err != nil && ctx.Err() == nil {
			e.log.Debug("provider did not start early", "provider", ids[0], "error", err)
		}
	})
}

// supervisor finds a provider for drain and restart.
func (e *engine) supervisor(id string) (*host.Supervisor, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.sources[id]; s != nil {
		return s.super, nil
	}
	ids := make([]string, 0, len(e.sources))
	for id := range e.sources {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return nil, fault.New(fault.InvalidRequest, "there is no provider %q", id).Field("provider_id").Hint("the providers are %v", ids)
}

// close ends sessions, providers and everything that was made for them. Sessions have until ctx ends.
func (e *engine) close(ctx context.Context) error {
	e.broker.Close(ctx)
	e.leave()
	e.telemetry.close(e.log)
	e.mu.Lock()
	var all []*source
	for _, s := range e.sources {
		all = append(all, s)
	}
	e.mu.Unlock()
	if !e.log.IsInfo() {
		// A process that is ended while it starts is killed, which its host calls an error. It is what is asked for here.
		e.log.SetLevel(hclog.Off)
	}
	closeSources(all)
	e.work.Wait()
	e.run.KillMarked() // what got away from its provider's process group
	e.audit.close()
	if e.staging != "" {
		_ = os.RemoveAll(e.staging)
	}
	return e.run.Close()
}

// sessions counts the live sessions of all callers.
func (e *engine) sessions(ctx context.Context) int {
	m := must("provider.status")
	resp, err := e.broker.Connect(localUser(), broker.Unbound).Call(ctx, m, m.NewRequest())
	if err != nil {
		return 1 // it is on its way out: nobody may take it for idle
	}
	s, _ := resp.(*browserv1.StatusResponse)
	return int(s.GetSessions())
}

// runs is where the run folders lie: a unix socket's path has at most 107 bytes (unix(7)), of which a provider needs 60.
func (p places) runs() string {
	if root := filepath.Join(p.run, "r"); len(root) <= 46 {
		return root
	}
	return filepath.Join(temporary(), "r")
}

// workingFolder gives the caller's own folder for the default of what may be uploaded.
func workingFolder() ([]string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fault.New(fault.InternalError, "the working folder: %v", err).Cause(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fault.New(fault.InternalError, "the working folder: %v", err).Cause(err)
	}
	if real == dir {
		return []string{dir}, nil
	}
	return []string{dir, real}, nil
}

// engine makes an engine for a command that uses no daemon.
func (a *app) engine() (*engine, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	folders, err := workingFolder()
	if err != nil {
		return nil, err
	}
	return newEngine(engineOptions{config: cfg, log: log, uploads: folders})
}

// closeAfter ends an engine that served one command, and gives the command's error or its own.
func (e *engine) closeAfter(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), endWait)
	defer cancel()
	if cerr := e.close(ctx); err == nil && cerr != nil {
		return fault.New(fault.InternalError, "the run folder cannot be removed: %v", cerr).Cause(cerr)
	}
	return err
}

// enabled lists the providers that are not switched off, in the order they are tried.
func (e *engine) enabled() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	cfg := e.broker.Policy().Config()
	var list []want
	for _, s := range e.sources {
		if p := cfg.Provider(s.want.id); p == nil || !p.Disabled {
			list = append(list, s.want)
		}
	}
	slices.SortFunc(list, func(a, b want) int {
		return cmp.Or(cmp.Compare(cfg.Rank(a.id, a.plugin), cfg.Rank(b.id, b.plugin)), strings.Compare(a.id, b.id))
	})
	ids := make([]string, len(list))
	for i, w := range list {
		ids[i] = w.id
	}
	return ids
}

// localUser is the principal of this user on this machine.
func localUser() broker.Principal {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return broker.Principal{ID: "uid:" + strconv.Itoa(os.Getuid()), Name: name}
}
