package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

func (a *app) callCommand() *cobra.Command {
	return &cobra.Command{
		Use: "call METHOD [JSON|-]", Short: "Call any method with params as JSON and print the result", GroupID: groupAdmin,
		Long: `Call any method of the protocol with params as JSON, from the argument or, with -, from stdin, and
print the result object. A method that needs a session gets the one of --session when the params
name none.`,
		Example: `  drover call page.open '{"url":"https://example.com"}'
  drover call session.list
  echo '{"expression":"document.title"}' | drover call page.eval -`,
		Args: exact(1, 2, "METHOD"), ValidArgsFunction: completeMethods,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, params, err := a.methodAndParams(args)
			if err != nil {
				return err
			}
			l, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			if m.NeedsSession() {
				if err := a.addSession(cmd.Context(), l, m, params); err != nil {
					return err
				}
			}
			ans, err := l.call(cmd.Context(), m, params)
			if err != nil {
				return err
			}
			a.warn(ans.Warnings)
			a.printJSON(ans.Result)
			resp := m.NewResponse()
			if err := wire.Unmarshal(ans.Result, resp); err != nil {
				return fmt.Errorf("result of %s: %w", m.Name, err)
			}
			return outcome(resp)
		},
	}
}

// methodAndParams reads METHOD [JSON|-].
func (a *app) methodAndParams(args []string) (*catalog.Method, map[string]any, error) {
	m, ok := catalog.Lookup(args[0])
	if !ok {
		err := fault.New(fault.UnsupportedMethod, "there is no method %q", args[0])
		if n := catalog.Nearest(args[0]); n != "" {
			err.Hint("did you mean %s?", n)
		}
		return nil, nil, err
	}
	params := map[string]any{}
	if len(args) < 2 {
		return m, params, a.addTimeout(m, params)
	}
	text := args[1]
	if text == "-" {
		data, err := io.ReadAll(io.LimitReader(a.in, 64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("params from stdin: %w", err)
		}
		text = string(data)
	}
	if err := parseJSON(text, &params); err != nil {
		return nil, nil, usage("the params are %v", err)
	}
	if err := wire.Check([]byte(text)); err != nil {
		return nil, nil, err
	}
	return m, params, a.addTimeout(m, params)
}

// addTimeout puts --timeout into the params.
func (a *app) addTimeout(m *catalog.Method, params map[string]any) error {
	if a.global.timeout == 0 || m.Request.Descriptor().Fields().ByName("timeout_ms") == nil {
		return nil
	}
	params["timeout_ms"] = a.global.timeout.Milliseconds()
	return nil
}

// ensureParams are the params of session.ensure that the flags of every command stand for.
func (a *app) ensureParams() map[string]any {
	want := map[string]any{"client_session_id": a.global.session}
	if a.global.provider != "" {
		want["provider_id"] = a.global.provider
	}
	if a.global.browser != "" {
		want["browser_preference"] = a.global.browser
	}
	return want
}
