package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// drainTime is how long a drain waits for sessions to end when --timeout does not say.
const drainTime = 10 * time.Minute

// addProviderCommands adds the commands that are about provider processes and no methods of the protocol.
func (a *app) addProviderCommands(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "provider" {
			continue
		}
		c.Short = "List, describe, check, set up and restart providers"
		for _, sub := range c.Commands() {
			if sub.Name() == "setup" {
				a.letSetUp(sub)
			}
		}
		c.AddCommand(
			&cobra.Command{
				Use: "list", Short: "List every provider with its state", Args: exact(0, 0, ""),
				RunE: func(cmd *cobra.Command, _ []string) error { return a.listProviders(cmd.Context()) },
			},
			a.processCommand(doDrain, "Let a provider's sessions end, take no new ones, then stop its process",
				"drained; drover provider restart %[1]s brings it back", drainTime),
			a.processCommand(doRestart, "Stop a provider's process, its sessions with it, and start it anew",
				"restarted", catalog.DefaultTimeout),
			a.conformCommand(),
			a.initCommand(),
		)
	}
}

func (a *app) listProviders(ctx context.Context) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	ans, err := l.call(ctx, must("provider.status"), map[string]any{})
	if err != nil {
		return err
	}
	r := &browserv1.StatusResponse{}
	if err := wire.Unmarshal(ans.Result, r); err != nil {
		return fmt.Errorf("result of provider.status: %w", err)
	}
	tiers, err := a.tiers(ctx, l)
	if err != nil {
		return err
	}
	if a.global.json {
		return a.printTiered(ans.Result, tiers)
	}
	if len(r.GetProviders()) == 0 {
		a.printFindings(r.GetDiagnostics(), r.GetManualSteps())
		return silent{exitNotReady}
	}
	a.printProviders(r, tiers)
	return nil
}

// tiers gives what the suite found of every provider that has been heard of.
func (a *app) tiers(ctx context.Context, l *link) (map[string]string, error) {
	ans, err := l.call(ctx, must("provider.describe"), map[string]any{})
	if err != nil {
		return nil, err
	}
	d := &browserv1.DescribeResponse{}
	if err := wire.Unmarshal(ans.Result, d); err != nil {
		return nil, fmt.Errorf("result of provider.describe: %w", err)
	}
	out := map[string]string{}
	for _, p := range d.GetProviders() {
		out[p.GetProviderId()] = wire.Word(p.GetCertificationTier())
	}
	return out, nil
}

// printTiered prints the status with each provider's tier in it.
func (a *app) printTiered(result []byte, tiers map[string]string) error {
	var all map[string]any
	if err := json.Unmarshal(result, &all); err != nil {
		return fmt.Errorf("result of provider.status: %w", err)
	}
	list, _ := all["providers"].([]any)
	for _, e := range list {
		if p, ok := e.(map[string]any); ok {
			id, _ := p["provider_id"].(string)
			p["certification_tier"] = cmp.Or(tiers[id], "candidate")
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("result of provider.status: %w", err)
	}
	a.printJSON(data)
	return nil
}

// printProviders prints the table of all providers.
func (a *app) printProviders(r *browserv1.StatusResponse, tiers map[string]string) {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tTIER\tAVAILABILITY\tSETUP\tSTATE\tPID\tSESSIONS\tBROWSER")
	for _, p := range r.GetProviders() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.GetProviderId(), cmp.Or(tiers[p.GetProviderId()], "candidate"),
			wire.Word(p.GetAvailability()), wire.Word(p.GetSetupState()), p.GetState(), number(p.GetPid()), p.GetSessions(), p.GetRecommendedBrowser())
	}
	_ = w.Flush()
}

// processCommand has the daemon do something to a provider's process.
func (a *app) processCommand(do, short, said string, wait time.Duration) *cobra.Command {
	return &cobra.Command{
		Use: do + " PROVIDER_ID", Short: short, Args: exact(1, 1, "PROVIDER_ID"),
		ValidArgsFunction: a.completeProviders,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			t, err := a.target()
			if err != nil {
				return err
			}
			if a.global.timeout > 0 {
				wait = a.global.timeout
			}
			if _, err := command(cmd.Context(), t.socket, order{Do: do, Provider: args[0], TimeoutMS: wait.Milliseconds()}); err != nil {
				return err
			}
			if a.global.json {
				a.printJSON([]byte(fmt.Sprintf(`{"provider_id":%s,"done":%q}`, jsonText(args[0]), do)))
				return nil
			}
			fmt.Fprintf(a.out, "%s "+said+"\n", args[0])
			return nil
		},
	}
}
