package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/plugins/host"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// diagnosis is what doctor found.
type diagnosis struct {
	Version   string              `json:"version"`
	Checks    []finding           `json:"checks"`
	Providers []providerDiagnosis `json:"providers"`
}

type providerDiagnosis struct {
	Provider string    `json:"provider_id"`
	Checks   []finding `json:"checks"`
}

// finding is one check as doctor prints it.
type finding struct {
	ID      string `json:"id"`
	Status  string `json:"status"` // pass, warn or fail
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Try every provider for real and say what to fix", GroupID: groupAdmin, Args: exact(0, 0, ""),
		Long: `Check the config and the folders, then start every provider and have it drive its browser once.
Each check is printed, with its fix where it does not pass. The exit status is 1 when one fails.
The daemon is not used, only looked at.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.quiet(cmd)
			d, err := a.diagnose(cmd.Context())
			if err != nil {
				return err
			}
			if a.global.json {
				data, err := json.Marshal(d)
				if err != nil {
					return fmt.Errorf("diagnosis: %w", err)
				}
				a.printJSON(data)
			} else {
				a.printDiagnosis(d)
			}
			if d.failed() {
				return silent{exitFailed}
			}
			return nil
		},
	}
}

func (d *diagnosis) failed() bool {
	bad := func(f finding) bool { return f.Status == "fail" }
	return slices.ContainsFunc(d.Checks, bad) ||
		slices.ContainsFunc(d.Providers, func(p providerDiagnosis) bool { return slices.ContainsFunc(p.Checks, bad) })
}

// diagnose checks what is Drover's own, and then every provider side by side.
func (a *app) diagnose(ctx context.Context) (_ *diagnosis, err error) {
	d := &diagnosis{Version: programVersion(), Providers: []providerDiagnosis{}}
	cfg, err := a.loadConfig()
	if err != nil {
		d.Checks = append(d.Checks, failed("config", err, "correct the file; drover policy validate reads it again"))
		return d, nil
	}
	where := cfg.File
	if where == "" {
		where = "no file; the defaults hold"
	}
	d.Checks = append(d.Checks, finding{ID: "config", Status: "pass", Message: where})
	e, err := a.engine()
	if err != nil {
		d.Checks = append(d.Checks, failed("folders", err, "make the folder yours alone, or set XDG_RUNTIME_DIR"))
		return d, nil
	}
	defer func() { err = e.closeAfter(err) }()
	d.Checks = append(d.Checks, finding{ID: "folders", Status: "pass", Message: e.run.Dir()}, a.daemonFinding(ctx))

	ids := e.enabled()
	if len(ids) == 0 {
		d.Checks = append(d.Checks, finding{
			ID: "providers", Status: "fail", Message: "no provider is found",
			Fix: "put a binary " + host.Prefix + "NAME into " + pluginDir() + ", beside drover, or on PATH",
		})
	}
	d.Providers = make([]providerDiagnosis, len(ids))
	var wg sync.WaitGroup
	who := e.broker.Connect(localUser(), broker.Bound)
	for i, id := range ids {
		wg.Go(func() { d.Providers[i] = providerDiagnosis{Provider: id, Checks: verify(ctx, who, id)} })
	}
	wg.Wait()
	return d, nil
}

// daemonFinding looks whether a daemon runs, and whether it is this program's.
func (a *app) daemonFinding(ctx context.Context) finding {
	f := finding{ID: "daemon", Status: "pass"}
	t, err := a.target()
	if err != nil {
		return failed("daemon", err, "")
	}
	r, err := command(ctx, t.socket, order{Do: doInfo})
	switch {
	case errors.Is(err, errNoDaemon):
		f.Message = "none runs; the first command starts one"
	case err != nil:
		return failed("daemon", err, "end it, and remove "+t.socket)
	default:
		f.Message = fmt.Sprintf("pid %d at %s, %d sessions", r.Info.PID, r.Info.Socket, r.Info.Sessions)
		if why := t.mismatch(r.Info); why != nil {
			f.Status, f.Message = "warn", why.Message
			f.Fix = fmt.Sprintf("close its sessions, or kill %d; the next command starts a new one", r.Info.PID)
		}
	}
	return f
}

func failed(id string, err error, fix string) finding {
	e := fault.From(err)
	if steps := texts(e.Details["manual_steps"]); len(steps) > 0 {
		fix = strings.Join(steps, "; ")
	}
	return finding{ID: id, Status: "fail", Message: e.Message, Fix: fix}
}

// verify has one provider drive its browser.
func verify(ctx context.Context, who *broker.Caller, id string) []finding {
	m := must("provider.verify")
	resp, err := who.Call(ctx, m, &browserv1.VerifyRequest{ProviderId: id})
	switch {
	case fault.CodeOf(err) == fault.UnsupportedMethod:
		return []finding{{ID: "verify", Status: "warn", Message: "it cannot check itself", Fix: "drover provider status " + id + " tells what is known"}}
	case err != nil:
		return []finding{failed("starts", err, "drover provider setup "+id+" tells the steps")}
	}
	r, ok := resp.(*browserv1.VerifyResponse)
	if !ok {
		return []finding{{ID: "verify", Status: "fail", Message: "it gave no checks"}}
	}
	out := make([]finding, 0, len(r.GetChecks()))
	for _, c := range r.GetChecks() {
		out = append(out, finding{ID: c.GetId(), Status: wire.Word(c.GetStatus()), Message: c.GetMessage(), Fix: c.GetFix()})
	}
	return out
}

func (a *app) printDiagnosis(d *diagnosis) {
	fmt.Fprintf(a.out, "%s %s, protocol %s\n", a.paint(a.out, bold, "drover"), d.Version, catalog.Version)
	a.printFindingList(d.Checks)
	for _, p := range d.Providers {
		fmt.Fprintf(a.out, "%s\n", a.paint(a.out, bold, p.Provider))
		a.printFindingList(p.Checks)
	}
}

func (a *app) printFindingList(list []finding) {
	marks := map[string]browserv1.CheckStatus{
		"pass": browserv1.CheckStatus_CHECK_STATUS_PASS, "warn": browserv1.CheckStatus_CHECK_STATUS_WARN, "fail": browserv1.CheckStatus_CHECK_STATUS_FAIL,
	}
	checks := make([]*browserv1.Check, 0, len(list))
	for _, f := range list {
		checks = append(checks, &browserv1.Check{Id: f.ID, Status: marks[f.Status], Message: f.Message, Fix: f.Fix})
	}
	a.printChecks("  ", checks)
}
