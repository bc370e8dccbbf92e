package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/token"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// endWait bounds the end of an engine that served one command.
const endWait = 15 * time.Second

func (a *app) explainCommand() *cobra.Command {
	var o order
	cmd := &cobra.Command{
		Use: "explain METHOD [JSON|-]", Short: "Say where a call would go, and why, without calling", GroupID: groupProviders,
		Long: `Say which provider and browser a call would go to and why, with the reason for every other one.
Nothing is opened or sent. The daemon is asked; with --config FILE none is asked or started, and
the answer is what that file would lead to.`,
		Example: `  drover explain session.ensure
  drover explain session.ensure '{"browser_preference":"firefox"}'
  drover explain session.ensure --client ci --without cdp
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
				x, err = a.explainAlone(cmd.Context(), m, params, o)
			} else {
				o.named = cmd.Flags().Changed("session")
				x, err = a.explainByDaemon(cmd.Context(), m, params, o)
			}
			if err != nil {
				return err
			}
			return a.printRoute(x)
		},
	}
	cmd.Flags().StringVar(&o.Client, "client", "", "ask for the client of this `NAME`, such as a token's, with its labels")
	cmd.Flags().StringArrayVar(&o.Without, "without", nil, "take this `PROVIDER` for unavailable; may be repeated")
	complete(cmd, "without", a.completeProviders)
	return cmd
}

// principal is who a question is asked for: a token of the name, with its labels, or this user.
func (o order) principal() broker.Principal {
	if o.Client == "" {
		return localUser()
	}
	p := broker.Principal{ID: "name:" + o.Client, Name: o.Client, Labels: o.Labels}
	if f, err := token.Open(findPlaces().tokens()); err == nil {
		list, _ := f.List() // without it there are no labels
		for _, t := range list {
			if t.Name == o.Client {
				p.ID, p.Labels = "token:"+t.ID, t.Labels
			}
		}
	}
	return p
}

// explainAlone asks a broker of this command's own.
func (a *app) explainAlone(ctx context.Context, m *catalog.Method, params map[string]any, o order) (_ *broker.Explanation, err error) {
	e, err := a.engine()
	if err != nil {
		return nil, err
	}
	defer func() { err = e.closeAfter(err) }()
	data, err := json.Marshal(params)
	if err != nil {
		return nil, usage("the params are not JSON: %v", err)
	}
	return o.explain(ctx, e.broker, m, data)
}

func explain(ctx context.Context, who *broker.Caller, m *catalog.Method, params []byte, without ...string) (*broker.Explanation, error) {
	req := m.NewRequest()
	if err := wire.Unmarshal(params, req); err != nil {
		return nil, err
	}
	return who.Broker().Explain(ctx, who, m, req, without...)
}

// explain answers the question, and says so when nobody knows the client that it is asked for.
func (o order) explain(ctx context.Context, b *broker.Broker, m *catalog.Method, params []byte) (*broker.Explanation, error) {
	who := o.principal()
	x, err := explain(ctx, b.Connect(who, broker.Bound), m, params, o.Without...)
	if err == nil && strings.HasPrefix(who.ID, "name:") && b.Policy().Config().Client(who.Name) == nil && who.Name != localUser().Name {
		x.Notes = append(x.Notes, fmt.Sprintf("no token and no client block is named %q; such a client has no labels", who.Name))
	}
	return x, err
}

func (a *app) explainByDaemon(ctx context.Context, m *catalog.Method, params map[string]any, o order) (*broker.Explanation, error) {
	l, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if m.NeedsSession() && (o.Client == "" || o.named) {
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
	r, err := command(ctx, t.socket, order{
		Do: doExplain, Method: m.Name, Params: data, TimeoutMS: catalog.DefaultTimeout.Milliseconds(), Client: o.Client, Without: o.Without,
	})
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

// routeWidth is how wide an explanation is at most.
const routeWidth = 80

func (a *app) writeRoute(indent string, x *broker.Explanation) {
	switch {
	case x.Denied != nil:
		a.wrapped(indent+a.paint(a.out, red, "✗")+" ", indent+"  ", "denied: "+x.Denied.Message)
		if x.Denied.Where != "" && !strings.Contains(x.Denied.Message, x.Denied.Where) {
			a.wrapped(indent+"  ", indent+"  ", x.Denied.Where)
		}
	case x.Provider == "":
		a.wrapped(indent+a.paint(a.out, red, "✗")+" ", indent+"  ", x.Why)
	default:
		a.wrapped(indent+a.paint(a.out, green, "✓")+" ", indent+"  ", x.Method+" → "+x.Provider+": "+x.Why)
	}
	for _, n := range x.Notes {
		a.wrapped(indent+"  ", indent+"  ", n)
	}
	for i, c := range x.Candidates {
		name := c.Browser
		if name == "" {
			name = c.Provider
		} else if !strings.Contains(strings.ToLower(name), strings.ToLower(c.Provider)) {
			name = c.Provider + ", " + c.Browser
		}
		if c.Kept {
			fmt.Fprintf(a.out, "%s  %d. %s\n", indent, i+1, name)
			for _, w := range c.Warnings {
				a.wrapped(indent+"     ", indent+"     ", w)
			}
			continue
		}
		fmt.Fprintf(a.out, "%s  %s %s\n", indent, a.paint(a.out, dim, "-"), name)
		for _, r := range c.Reasons {
			text := r.Message
			if r.Where != "" {
				text += " (" + r.Where + ")"
			}
			a.wrapped(indent+"     ", indent+"     ", text)
		}
	}
}

// wrapped prints words in lines of at most 80 columns; one that is longer, such as a path, stands alone.
func (a *app) wrapped(first, next, text string) {
	line, width := first, utf8.RuneCountInString(next)
	empty := true
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if !empty && width+1+n > routeWidth {
			fmt.Fprintln(a.out, line)
			line, width, empty = next, utf8.RuneCountInString(next), true
		}
		if !empty {
			line, width = line+" ", width+1
		}
		line, width, empty = line+word, width+n, false
	}
	fmt.Fprintln(a.out, line)
}
