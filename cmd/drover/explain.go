package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// endWait bounds the end of an engine that served one command.
const endWait = 15 * time.Second

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "explain METHOD [JSON|-]", Short: "Say where a call would go, and why, without calling", GroupID: groupProviders,
		Long: `Say which provider and browser a call would go to and why, with the reason for every other one.
Nothing is opened or sent. The daemon is asked; with --config FILE none is asked or started, and
the answer is what that file would lead to.`,
		Example: `  drover explain session.ensure
  drover explain session.ensure '{"browser_preference":"firefox"}'
  drover explain page.open '{"url":"http://169.254.169.254/"}'`,
		Args: exact(1, 2, "METHOD"), ValidArgsFunction: completeMethods,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, params, err := a.methodAndParams(args)
			if err != nil {
				return err
			}
			if m.Name == "session.ensure" {
				for k, v := range a.ensureParams() {
					if params[k] == nil {
						params[k] = v
					}
				}
			}
			var x *broker.Explanation
			if cmd.Flags().Changed("config") {
				x, err = a.explainAlone(cmd.Context(), m, params)
			} else {
				x, err = a.explainByDaemon(cmd.Context(), m, params)
			}
			if err != nil {
				return err
			}
			return a.printRoute(x)
		},
	}
}

// explainAlone asks a broker of this command's own.
func (a *app) explainAlone(ctx context.Context, m *catalog.Method, params map[string]any) (_ *broker.Explanation, err error) {
	e, err := a.engine()
	if err != nil {
		return nil, err
	}
	defer func() { err = e.closeAfter(err) }()
	data, err := json.Marshal(params)
	if err != nil {
		return nil, usage("the params are not JSON: %v", err)
	}
	return explain(ctx, e.broker.Connect(localUser(), broker.Bound), m, data)
}

func explain(ctx context.Context, who *broker.Caller, m *catalog.Method, params []byte) (*broker.Explanation, error) {
	req := m.NewRequest()
	if err := wire.Unmarshal(params, req); err != nil {
		return nil, err
	}
	return who.Broker().Explain(ctx, who, m, req)
}

func (a *app) explainByDaemon(ctx context.Context, m *catalog.Method, params map[string]any) (*broker.Explanation, error) {
	l, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if m.NeedsSession() {
		if err := a.findSession(ctx, l, params); err != nil {
			return nil, fault.From(err).Clone().Hint("drover explain session.ensure says where it would be made")
		}
	}
	data, err := json.Marshal(params)
	if err != nil {
		return nil, usage("the params are not JSON: %v", err)
	}
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	r, err := command(ctx, t.socket, order{Do: doExplain, Method: m.Name, Params: data, TimeoutMS: catalog.DefaultTimeout.Milliseconds()})
	return r.Route, err
}

// printRoute prints an explanation. A call that would be denied, or that nobody would answer, is told by the exit status.
func (a *app) printRoute(x *broker.Explanation) error {
	if a.global.json {
		data, err := json.Marshal(x)
		if err != nil {
			return fmt.Errorf("explanation: %w", err)
		}
		a.printJSON(data)
	} else {
		a.writeRoute("", x)
	}
	switch {
	case x.Denied != nil:
		return silent{exitDenied}
	case x.Provider == "":
		return silent{exitNotReady}
	}
	return nil
}

func (a *app) writeRoute(indent string, x *broker.Explanation) {
	switch {
	case x.Denied != nil:
		fmt.Fprintf(a.out, "%s%s denied: %s\n", indent, a.paint(a.out, red, "✗"), x.Denied.Message)
		if x.Denied.Rule != "" {
			fmt.Fprintf(a.out, "%s  rule %s, %s\n", indent, x.Denied.Rule, x.Denied.Where)
		}
	case x.Provider == "":
		fmt.Fprintf(a.out, "%s%s %s\n", indent, a.paint(a.out, red, "✗"), x.Why)
	default:
		fmt.Fprintf(a.out, "%s%s %s → %s: %s\n", indent, a.paint(a.out, green, "✓"), x.Method, a.paint(a.out, bold, x.Provider), x.Why)
	}
	for i, c := range x.Candidates {
		switch {
		case c.Kept:
			fmt.Fprintf(a.out, "%s  %d. %s\n", indent, i+1, c.Browser)
			for _, w := range c.Warnings {
				fmt.Fprintf(a.out, "%s     %s\n", indent, a.paint(a.out, yellow, w))
			}
		default:
			fmt.Fprintf(a.out, "%s  %s %s", indent, a.paint(a.out, dim, "-"), c.Browser)
			for j, r := range c.Reasons {
				fmt.Fprintf(a.out, "%s %s", map[bool]string{true: ":", false: ";"}[j == 0], r.Message)
			}
			fmt.Fprintln(a.out)
		}
	}
}
