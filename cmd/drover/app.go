package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/droverhq/drover/proto/fault"
)

// app is one run of the command line: its streams, and the flags that every command takes.
type app struct {
	in       io.Reader
	out, err io.Writer
	global   globals
	// parsed gets the params of a method's command in place of the daemon; only tests set it.
	parsed func(params map[string]any) error
}

// globals are the flags that every command takes.
type globals struct {
	json     bool
	config   string
	socket   string
	session  string
	provider string
	browser  string
	timeout  time.Duration
	logLevel string
	logJSON  bool
}

// span is a flag's duration of at least a millisecond, which is what timeout_ms can say.
type span time.Duration

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *span) Type() string { return "duration" }

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("must be a duration such as 5s or 300ms")
	}
	if d < time.Millisecond {
		return fmt.Errorf("must be at least 1ms")
	}
	*s = span(d)
	return nil
}

// Groups of commands in the help.
const (
	groupPages     = "pages"
	groupData      = "data"
	groupSessions  = "sessions"
	groupProviders = "providers"
	groupAdmin     = "admin"
)

const rootLong = `Drover drives any browser for an AI agent, a script or a person.

The first command starts a broker for this user in the background; it goes by itself when
nobody has used it for a while. Commands with the same --session share a browser session.
Elements are named by the refs of a snapshot (@d1e4), by CSS selector, by text or by place.`

const rootExample = `  drover open https://example.com       open a page in the session "default"
  drover snapshot                       read it: an outline with a ref for each element
  drover click @d1e4                    act on a ref; or --text 'More information'
  drover type @d1e7 'some words' --submit
  drover wait --text-present Thanks
  drover screenshot shot.png
  drover session close

  drover stdio                          speak the protocol as JSON lines, broker included
  drover doctor                         try every provider for real and say what to fix`

// root builds the command tree. The long-running commands, whose start counts, get a tree of their own without the
// commands that are derived from the catalog.
func (a *app) root(args []string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "drover", Short: "One browser tool, any browser", Long: rootLong, Example: rootExample,
		SilenceErrors: true, SilenceUsage: true, RunE: a.group, Args: cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%v", err).Hint("see %s --help", c.CommandPath())
	})
	cmd.AddGroup(
		&cobra.Group{ID: groupPages, Title: "Pages:"},
		&cobra.Group{ID: groupData, Title: "What pages leave:"},
		&cobra.Group{ID: groupSessions, Title: "Sessions:"},
		&cobra.Group{ID: groupProviders, Title: "Providers:"},
		&cobra.Group{ID: groupAdmin, Title: "Running Drover:"},
	)
	a.globalFlags(cmd)
	cmd.AddCommand(a.serveCommand(), a.stdioCommand(), a.mcpCommand())
	if len(args) > 0 && slices.Contains([]string{"serve", "stdio", "mcp"}, args[0]) {
		return cmd
	}
	a.addMethods(cmd)
	cmd.AddCommand(
		a.callCommand(), a.explainCommand(), a.policyCommand(), a.tokenCommand(), a.doctorCommand(), a.versionCommand(),
		a.completionCommand(), a.demoCommand(), a.compatCommand(),
	)
	a.addProviderCommands(cmd)
	cmd.SetHelpCommandGroupID(groupAdmin)
	return cmd
}

func (a *app) globalFlags(cmd *cobra.Command) {
	f, g := cmd.PersistentFlags(), &a.global
	f.SortFlags = false
	f.BoolVar(&g.json, "json", false, "print the result object as JSON")
	f.StringVar(&g.session, "session", env("DROVER_SESSION", "default"), "the `NAME` of the browser session (DROVER_SESSION)")
	f.StringVar(&g.provider, "provider", "", "the provider's `NAME`; the broker chooses when left out")
	f.StringVar(&g.browser, "browser", "", "a family (chromium, firefox, webkit) or a product such as chrome or safari")
	f.Var((*span)(&g.timeout), "timeout", "how long the call may take, such as 5s")
	f.StringVar(&g.config, "config", os.Getenv("DROVER_CONFIG"), "the config `FILE` (DROVER_CONFIG)")
	f.StringVar(&g.socket, "socket", os.Getenv("DROVER_SOCKET"), "the `PATH` of the daemon's socket (DROVER_SOCKET)")
	f.StringVar(&g.logLevel, "log-level", "warn", "what goes to the log on stderr: trace, debug, info, warn, error or off")
	f.BoolVar(&g.logJSON, "log-json", false, "write the log as JSON lines")
	complete(cmd, "session", a.completeSessions)
	complete(cmd, "provider", a.completeProviders)
	complete(cmd, "browser", words("auto", "chromium", "firefox", "webkit", "chrome", "edge", "safari"))
	complete(cmd, "log-level", words("trace", "debug", "info", "warn", "error", "off"))
}

// group answers for a command that only holds others: help without arguments, suggestions for an unknown word.
func (a *app) group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := usage("there is no command %q", strings.TrimPrefix(cmd.CommandPath()+" ", "drover ")+args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.Hint("did you mean %s?", strings.Join(near, " or "))
	}
	return err.Hint("see %s --help", cmd.CommandPath())
}

// logger writes to stderr, so that stdout is the result alone.
func (a *app) logger() (hclog.Logger, error) {
	level := hclog.LevelFromString(a.global.logLevel)
	if level == hclog.NoLevel {
		return nil, usage("--log-level must be trace, debug, info, warn, error or off, not %q", a.global.logLevel)
	}
	return hclog.New(&hclog.LoggerOptions{Name: "drover", Level: level, Output: a.err, JSONFormat: a.global.logJSON}), nil
}

// quiet keeps warnings out of the log of a command that tells them itself, unless the log was asked for.
func (a *app) quiet(cmd *cobra.Command) {
	if !cmd.Flags().Changed("log-level") {
		a.global.logLevel = "error"
	}
}

// exact checks the number of positional arguments.
func exact(least, most int, words string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return missing(cmd, words)
		case most >= 0 && len(args) > most:
			return usage("%q is one argument too many", args[most]).Hint("the command is %s", cmd.UseLine())
		}
		return nil
	}
}

func missing(cmd *cobra.Command, words string) *fault.Error {
	return usage("%s is missing", words).Hint("the command is %s", cmd.UseLine())
}

func env(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
