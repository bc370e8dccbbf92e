package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/conformance"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
)

// shipped says which provider binaries were built with this program, as "NAME=SHA256,…". The linker sets it (Makefile).
var shipped string

// reports gives the store of what the conformance suite found.
func (p places) reports() *conformance.Store {
	return &conformance.Store{Dir: filepath.Join(p.state, "conformance"), Shipped: conformance.ParseShipped(shipped)}
}

type conformFlags struct {
	methods string
	junit   string
	through bool
	noMTLS  bool
}

func (a *app) conformCommand() *cobra.Command {
	var f conformFlags
	c := &cobra.Command{
		Use: "conform PATH|NAME", Short: "Judge a provider against the protocol", Args: exact(1, 1, "PATH|NAME"),
		Long: `Start a provider, drive it through the protocol on pages of the suite's own, and say what holds:
certified, compatible or experimental, for the provider and for each of its methods.

PATH is a binary, or a folder with one drover-provider-NAME in it; NAME is a provider of the config, or
a binary that is found by its name. The report is kept by the binary's digest in the state folder, and
is what provider list, routing and the policy know as the tier. The exit status is 0 only for certified.
No daemon is used or started.`,
		Example: `  drover provider conform ./drover-provider-mine
  drover provider conform cdp --method 'page.*'
  drover provider conform cdp --junit report.xml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("log-level") {
				a.global.logLevel = "off" // the suite ends processes in every way there is
			}
			return a.conform(cmd.Context(), args[0], f)
		},
		ValidArgsFunction: a.completeProviders,
	}
	c.Flags().StringVar(&f.methods, "method", "", "judge only these methods, such as `page.*,tab.list`; nothing is kept")
	c.Flags().StringVar(&f.junit, "junit", "", "write the report to this `FILE` as JUnit XML too")
	c.Flags().BoolVar(&f.through, "through-broker", false, "judge it through a broker instead of directly; nothing is kept")
	c.Flags().BoolVar(&f.noMTLS, "no-mtls", false, "start it without mutual TLS (it is tried by itself where that fails)")
	return c
}

func (a *app) conform(ctx context.Context, what string, f conformFlags) error {
	w, err := a.resolveProvider(what)
	if err != nil {
		return err
	}
	if f.noMTLS {
		w.noMTLS = true
	}
	var r *conformance.Report
	o := conformance.Options{ID: w.id, Methods: f.methods, Progress: a.conformProgress()}
	if f.through {
		r, err = a.judgeThrough(ctx, w, o)
	} else {
		r, err = a.judgeDirectly(ctx, w, o)
	}
	if err != nil {
		return err
	}
	if f.methods != "" && len(r.Methods) == 0 && len(r.Failures()) == 0 {
		return usage("no method that %s lists matches %q", w.id, f.methods)
	}
	return a.tellReport(r, f)
}

// judgeDirectly runs the suite against the provider's own process and keeps the report.
func (a *app) judgeDirectly(ctx context.Context, w want, o conformance.Options) (*conformance.Report, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	p := findPlaces()
	if err := private(p.run); err != nil {
		return nil, err
	}
	spec := w.spec()
	spec.Logger = log.Named(w.id)
	r, err := conformance.JudgeBinary(ctx, p.runs(), spec, o)
	if err != nil || o.Methods != "" {
		return r, err
	}
	if err := p.reports().Save(r); err != nil {
		return nil, fault.New(fault.InternalError, "the report cannot be kept: %v", err).Cause(err)
	}
	return r, nil
}

// judgeThrough runs the suite through a broker of its own that has this one provider.
func (a *app) judgeThrough(ctx context.Context, w want, o conformance.Options) (_ *conformance.Report, err error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	folders, err := workingFolder()
	if err != nil {
		return nil, err
	}
	cfg := policy.Default()
	cfg.Providers = []*policy.Provider{{ID: w.id, Plugin: w.plugin, Path: w.path, Env: w.env, MTLS: !w.noMTLS, Body: w.body}}
	e, err := newEngine(engineOptions{config: cfg, log: log, uploads: folders})
	if err != nil {
		return nil, err
	}
	defer func() { err = e.closeAfter(err) }()
	who := e.broker.Connect(localUser(), broker.Bound)
	o.Provider = w.id
	o.Uploads = folders[0]
	o.Connect = func(context.Context) (conformance.Connection, func(), error) { return who, func() {}, nil }
	return conformance.Judge(ctx, o)
}

// resolveProvider finds what a person means by a path, a folder, or a name.
func (a *app) resolveProvider(what string) (want, error) {
	if strings.ContainsRune(what, filepath.Separator) {
		return providerAt(what)
	}
	cfg, err := a.loadConfig()
	if err != nil {
		return want{}, err
	}
	list := wanted(cfg)
	if i := slices.IndexFunc(list, func(w want) bool { return w.id == what }); i >= 0 {
		return list[i], nil
	}
	if f, ok := host.FindOne(what); ok {
		return want{id: f.Name, plugin: f.Name, path: f.Path}, nil
	}
	if _, err := os.Stat(what); err == nil {
		return providerAt(what)
	}
	var names []string
	for _, w := range list {
		names = append(names, w.id)
	}
	return want{}, usage("there is no provider %q", what).Hint("give the path of a binary, or one of %s", strings.Join(names, ", "))
}

// providerAt gives the binary at a path, or the one in a folder.
func providerAt(path string) (want, error) {
	path, err := absolute(path)
	if err != nil {
		return want{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return want{}, fault.New(fault.SetupRequired, "there is no binary at %s", path).Reason("provider_missing").Cause(err).
			Hint("give the path of a provider's binary")
	}
	if info.IsDir() {
		found := host.Find(host.Place{Name: "here", Dirs: []string{path}})
		if len(found) != 1 {
			return want{}, usage("%s holds %d binaries named %sNAME, not one", path, len(found), host.Prefix)
		}
		return want{id: found[0].Name, plugin: found[0].Name, path: found[0].Path}, nil
	}
	id := strings.TrimPrefix(filepath.Base(path), host.Prefix)
	return want{id: id, plugin: id, path: path}, nil
}

// spec is how the host starts the provider.
func (w want) spec() host.Spec {
	return host.Spec{ID: w.id, Path: w.path, Env: w.env, NoMTLS: w.noMTLS, Config: w.body}
}

// conformProgress prints a line for every check, for a person.
func (a *app) conformProgress() func(conformance.Result) {
	if a.global.json {
		return nil
	}
	return func(r conformance.Result) {
		switch r.Status {
		case conformance.Pass:
			fmt.Fprintf(a.out, "%s %-32s %5d ms\n", a.paint(a.out, green, "✓"), r.ID, r.DurationMS)
		case conformance.Fail:
			fmt.Fprintf(a.out, "%s %-32s %5d ms\n    %s\n    %s\n", a.paint(a.out, red, "✗"), r.ID, r.DurationMS, r.Message, a.paint(a.out, dim, r.Guards))
		case conformance.Skip:
			fmt.Fprintf(a.out, "%s %-32s %s\n", a.paint(a.out, dim, "-"), r.ID, a.paint(a.out, dim, r.Message))
		}
	}
}

// tellReport prints the report and gives the exit status.
func (a *app) tellReport(r *conformance.Report, f conformFlags) error {
	if f.junit != "" {
		data, err := r.JUnit()
		if err == nil {
			err = os.WriteFile(f.junit, data, 0o644) //nolint:gosec // a report is no secret
		}
		if err != nil {
			return fault.New(fault.InternalError, "the report cannot be written: %v", err).Cause(err)
		}
	}
	if a.global.json {
		data, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		a.printJSON(data)
	} else {
		a.printReport(r)
	}
	if r.Outcome != conformance.Certified {
		return silent{exitFailed}
	}
	return nil
}

func (a *app) printReport(r *conformance.Report) {
	fmt.Fprintln(a.out)
	byOutcome := map[conformance.Outcome][]string{}
	for name, o := range r.Methods {
		byOutcome[o] = append(byOutcome[o], name)
	}
	for _, o := range []conformance.Outcome{conformance.Certified, conformance.Compatible, conformance.Experimental} {
		if names := byOutcome[o]; len(names) > 0 {
			slices.Sort(names)
			fmt.Fprintf(a.out, "%-13s %s\n", string(o)+":", strings.Join(names, " "))
		}
	}
	colour := red
	switch r.Outcome {
	case conformance.Certified:
		colour = green
	case conformance.Compatible:
		colour = yellow
	case conformance.Experimental, conformance.None:
	}
	fmt.Fprintln(a.out, a.paint(a.out, colour, r.Summary()))
	if !r.MTLS {
		fmt.Fprintln(a.out, "It knows no certificates: give its block in the config mtls = false.")
	}
	if failed := r.Failures(); len(failed) > 0 {
		fmt.Fprintf(a.out, "failed: %s\n", strings.Join(failed, " "))
	}
}
