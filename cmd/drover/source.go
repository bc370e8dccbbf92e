package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// want is one provider of a config: which binary, under which name, with which configuration.
type want struct {
	id, plugin, path string
	env              []string
	noMTLS           bool
	body             *structpb.Struct
	uploads          []string
	downloads        string
}

// same says that nothing about the provider's process differs.
func (w want) same(o want) bool {
	return w.id == o.id && w.plugin == o.plugin && w.path == o.path && slices.Equal(w.env, o.env) && w.noMTLS == o.noMTLS &&
		proto.Equal(w.body, o.body) && slices.Equal(w.uploads, o.uploads) && w.downloads == o.downloads
}

// wanted lists the providers of a config; without any in it, every binary that is found. A binary that is missing is listed
// all the same, at the place where it would be: its provider is then unavailable, with steps.
func wanted(cfg *policy.Config) []want {
	var out []want
	found := host.Find()
	if len(cfg.Providers) == 0 {
		for _, f := range found {
			out = append(out, want{id: f.Name, plugin: f.Name, path: f.Path})
		}
		return out
	}
	for _, p := range cfg.Providers {
		w := want{id: p.ID, plugin: p.Plugin, path: p.Path, env: p.Env, noMTLS: !p.MTLS, body: p.Body}
		for _, f := range found {
			if w.path == "" && f.Name == p.Plugin {
				w.path = f.Path
			}
		}
		if w.path == "" {
			w.path = filepath.Join(pluginDir(), host.Prefix+p.Plugin)
		}
		out = append(out, w)
	}
	return out
}

// pluginDir is where a person puts a binary; the temp folder stands for it where there is no home.
func pluginDir() string {
	if dir := host.PluginDir(); filepath.IsAbs(dir) {
		return dir
	}
	return os.TempDir()
}

// source shows a supervised process to the broker: it is the joint between the two, which do not know each other.
type source struct {
	want  want
	super *host.Supervisor
	tier  func(digest string) browserv1.CertificationTier

	mu   sync.Mutex
	said *browserv1.DescribeResponse // what the provider said last
	told *browserv1.DescribeResponse // the same with its tier
}

var (
	_ broker.Source   = (*source)(nil)
	_ broker.Process  = (*source)(nil)
	_ broker.Provider = (*host.Instance)(nil)
)

// ID is the provider_id.
func (s *source) ID() string { return s.want.id }

// Describe is what the provider said last, with the tier that its binary's report gives it now.
func (s *source) Describe() (*browserv1.DescribeResponse, bool) {
	st := s.super.Status()
	if st.Describe == nil {
		return nil, false
	}
	tier := st.Describe.GetCertificationTier()
	if s.tier != nil {
		tier = s.tier(st.Digest)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said != st.Describe || s.told.GetCertificationTier() != tier {
		s.said, s.told = st.Describe, st.Describe
		if tier != st.Describe.GetCertificationTier() {
			s.told = proto.CloneOf(st.Describe)
			s.told.CertificationTier = tier
		}
	}
	return s.told, true
}

// Status is how the provider is: its own last word, with what the host knows of the process.
func (s *source) Status() *browserv1.StatusResponse {
	st := s.super.Status()
	out := &browserv1.StatusResponse{ProviderId: s.want.id}
	if st.Last != nil {
		out = proto.CloneOf(st.Last)
	}
	out.State, out.Pid = string(st.State), int32(st.PID) //nolint:gosec // a pid fits
	if st.PID == 0 {
		out.BrowserRunning = false
	}
	switch {
	case st.Err != nil:
		unavailable(out, st)
	case st.Drained:
		out.Availability = browserv1.Availability_AVAILABILITY_UNAVAILABLE
		out.Diagnostics = append(out.Diagnostics, &browserv1.Diagnostic{
			Level: browserv1.Level_LEVEL_INFO, Code: "drained", Message: "It was drained and takes no sessions",
			ManualSteps: []string{"drover provider restart " + s.want.id},
		})
	}
	return out
}

func unavailable(out *browserv1.StatusResponse, st host.Status) {
	e := fault.From(st.Err)
	out.Availability = browserv1.Availability_AVAILABILITY_UNAVAILABLE
	out.SetupState = browserv1.SetupState_SETUP_STATE_BROKEN
	if e.Code == fault.SetupRequired {
		out.SetupState, out.RequiresManualSetup = browserv1.SetupState_SETUP_STATE_REQUIRED, true
	}
	code := e.ReasonWord()
	if code == "" {
		code = fault.Word(e.Code)
	}
	out.ManualSteps = append(out.ManualSteps, st.ManualSteps...)
	out.Diagnostics = append(out.Diagnostics, &browserv1.Diagnostic{
		Level: browserv1.Level_LEVEL_ERROR, Code: code, Message: e.Message, ManualSteps: st.ManualSteps,
	})
}

// Acquire gives the running life.
func (s *source) Acquire(ctx context.Context) (broker.Provider, error) {
	i, err := s.super.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// Drain lets the sessions of the process end, and then the process.
func (s *source) Drain(ctx context.Context) error { return s.super.Drain(ctx) }

// Restart starts the process anew.
func (s *source) Restart(ctx context.Context) error {
	_, err := s.super.Restart(ctx)
	return err
}
