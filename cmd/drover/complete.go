package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// completeWait bounds what a shell waits for names that only a daemon knows. A completion never starts one.
const completeWait = time.Second

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print the completion script of a shell", GroupID: groupAdmin,
		Long: `Print the completion script of a shell. It completes commands, flags, their words, and the names of
live sessions and providers.

  bash        source <(drover completion bash)
  zsh         drover completion zsh > "${fpath[1]}/_drover"
  fish        drover completion fish > ~/.config/fish/completions/drover.fish
  powershell  drover completion powershell | Out-String | Invoke-Expression`,
		Args: exact(1, 1, "SHELL"), ValidArgsFunction: words("bash", "zsh", "fish", "powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			default:
				return usage("there is no completion for %q", args[0]).Hint("the shells are bash, zsh, fish and powershell")
			}
		},
	}
}

// complete gives a flag its completion.
func complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err) // the flag was added a line before
	}
}

// words completes one of some words; of a list joined by commas, the last one.
func words(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		for _, w := range list {
			if strings.HasPrefix(w, typed) {
				out = append(out, w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArg completes a positional argument by the field it sets.
func (mc *methodCommand) completeArg(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) >= len(mc.places) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p := mc.places[len(args)]
	switch {
	case p.field == nil, p.into == "paths":
		return nil, cobra.ShellCompDirectiveDefault
	case p.field.Kind() == protoreflect.EnumKind:
		return words(wire.Words(p.field.Enum())...)(cmd, args, typed)
	case len(wire.SpecOf(p.field).GetWords()) > 0:
		return words(wire.SpecOf(p.field).GetWords()...)(cmd, args, typed)
	case p.into == "provider_id":
		return mc.app.completeProviders(cmd, args, typed)
	case p.into == "client_session_id":
		return mc.app.completeSessions(cmd, args, typed)
	case p.into == "session_id":
		return mc.app.completeSessionIDs(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func completeMethods(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []string
	for _, m := range catalog.All() {
		names = append(names, m.Name)
	}
	return words(names...)(cmd, args, typed)
}

// live asks the daemon that runs, if one does, for what a completion needs.
func live[T any](a *app, cmd *cobra.Command, ask func(context.Context, *link) (T, error)) (T, bool) {
	var none T
	base := cmd.Context()
	if base == nil {
		base = context.Background()
	}
	ctx, cancel := context.WithTimeout(base, completeWait)
	defer cancel()
	l, err := a.peek(ctx)
	if err != nil {
		return none, false
	}
	defer l.close()
	v, err := ask(ctx, l)
	return v, err == nil
}

func (a *app) sessions(cmd *cobra.Command) []*browserv1.Session {
	r, _ := live(a, cmd, func(ctx context.Context, l *link) (*browserv1.ListSessionsResponse, error) {
		return call[*browserv1.ListSessionsResponse](ctx, l, "session.list", map[string]any{})
	})
	return r.GetSessions()
}

func (a *app) completeSessions(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, s := range a.sessions(cmd) {
		names = append(names, s.GetClientSessionId())
	}
	return words(names...)(cmd, args, typed)
}

func (a *app) completeSessionIDs(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []string
	for _, s := range a.sessions(cmd) {
		ids = append(ids, s.GetSessionId())
	}
	return words(ids...)(cmd, args, typed)
}

// completeProviders gives the daemon's providers, and without a daemon those that the config and the folders name.
func (a *app) completeProviders(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []string
	r, ok := live(a, cmd, func(ctx context.Context, l *link) (*browserv1.StatusResponse, error) {
		return call[*browserv1.StatusResponse](ctx, l, "provider.status", map[string]any{})
	})
	for _, p := range r.GetProviders() {
		ids = append(ids, p.GetProviderId())
	}
	if !ok {
		if cfg, err := a.loadConfig(); err == nil {
			for _, p := range wanted(cfg) {
				ids = append(ids, p.id)
			}
		}
	}
	return words(ids...)(cmd, args, typed)
}
