package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/proto/fault"
)

const compatLong = `Answer the way another tool's browser program does, so that the tool drives whichever browser the
policy picks.

  drover compat jcode install [FILE]    put a program that calls this where jcode looks for its own
                                        (~/.jcode/browser/browser, or browser/browser in $JCODE_HOME)
  drover compat jcode ACTION [JSON]     do one action; the result is JSON on stdout
  drover compat jcode session start N   hold the browser session N until the caller is gone

The session is that of $BROWSER_SESSION. Elements may be named by the refs that getContent and
getInteractables tell (@d1e4) wherever a selector is taken.`

func (a *app) compatCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "compat", Short: "Stand in for another tool's browser program", GroupID: groupAdmin, Args: cobra.ArbitraryArgs, RunE: a.group}
	cmd.AddCommand(&cobra.Command{
		Use: "jcode ACTION [JSON]", Short: "Answer as jcode's browser program", Long: compatLong,
		DisableFlagParsing: true, // the words are the other program's, flags included
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			err := a.asJcode(cmd.Context(), args)
			if err == nil {
				return nil
			}
			fmt.Fprintf(a.err, "Error: %s\n", plainly(err))
			return silent{exitFailed}
		},
	})
	return cmd
}

// plainly writes an error as one sentence, its next step included, which is all that the other tool's users see.
func plainly(err error) string {
	e := fault.From(err)
	if steps := texts(e.Details["manual_steps"]); len(steps) > 0 {
		return e.Message + ": " + strings.Join(steps, "; ")
	}
	return e.Message
}

// asJcode does what jcode's browser program does.
func (a *app) asJcode(ctx context.Context, args []string) error {
	a.global.session = "jcode-" + env("BROWSER_SESSION", "default")
	switch args[0] {
	case "session":
		return a.jcodeSession(ctx, args[1:])
	case "install":
		return a.installJcode(args[1:])
	}
	params := map[string]any{}
	if len(args) > 1 && strings.TrimSpace(args[1]) != "" {
		if err := parseJSON(args[1], &params); err != nil {
			return usage("the params are %v", err)
		}
	}
	j := &jcode{app: a}
	defer j.close()
	result, err := j.do(ctx, args[0], params)
	if err != nil {
		return err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	fmt.Fprintln(a.out, string(data))
	return nil
}

// jcodeFile is where jcode looks for its browser program.
func jcodeFile() (string, error) {
	if dir := os.Getenv("JCODE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "browser", "browser"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the home folder: %w", err)
	}
	return filepath.Join(home, ".jcode", "browser", "browser"), nil
}

const jcodeMark = "# Written by drover compat jcode install."

// installJcode writes a program that calls this one. A program that Drover did not write stays.
func (a *app) installJcode(args []string) error {
	path, err := jcodeFile()
	if len(args) > 0 {
		path, err = absolute(args[0])
	}
	if err != nil {
		return err
	}
	have, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(have), jcodeMark) {
		return fault.New(fault.PermissionDenied, "%s is another program", path).Reason("path_refused").Hint("move it away first")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program's place: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // jcode's folder holds programs, no secrets
		return fmt.Errorf("making %s: %w", filepath.Dir(path), err)
	}
	quoted := "'" + strings.ReplaceAll(self, "'", `'\''`) + "'"
	text := "#!/bin/sh\n" + jcodeMark + "\nexec " + quoted + " compat jcode \"$@\"\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // a program has to be executable
		return fmt.Errorf("writing %s: %w", path, err)
	}
	fmt.Fprintln(a.out, path)
	return nil
}

// jcodeRuntime is the folder in which jcode looks for the marks of a session.
func jcodeRuntime() string {
	for _, name := range []string{"JCODE_RUNTIME_DIR", "XDG_RUNTIME_DIR"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			return dir
		}
	}
	return filepath.Join(os.TempDir(), "jcode-"+env("USER", "user"))
}

// jcodeSession is `session start NAME`: it holds the marks by which jcode knows that a session lives, a socket and a file with this
// process' number, until the process that asked is gone.
func (a *app) jcodeSession(ctx context.Context, args []string) error {
	name, help := "", false
	for _, arg := range args[min(1, len(args)):] {
		switch {
		case arg == "--help" || arg == "-h":
			help = true
		case !strings.HasPrefix(arg, "-"):
			name = arg
		}
	}
	if help || len(args) == 0 || args[0] != "start" {
		fmt.Fprintln(a.out, "session start NAME [--bind-window]   hold the browser session NAME until the caller is gone")
		return nil
	}
	if name == "" || name != cleanName(name) {
		return usage("session start wants a name of letters, digits, - and _, at most 64")
	}
	parent := os.Getppid()
	base := filepath.Join(jcodeRuntime(), "browser-session-"+name)
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		return fmt.Errorf("jcode's folder: %w", err)
	}
	_ = os.Remove(base + ".sock") // One of an earlier process, which jcode found dead.
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", base+".sock")
	if err != nil {
		return fmt.Errorf("the session's socket: %w", err)
	}
	defer l.Close()
	if err := os.WriteFile(base+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return fmt.Errorf("the session's mark: %w", err)
	}
	defer os.Remove(base + ".pid")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if os.Getppid() != parent {
				return nil
			}
		}
	}
}

// cleanName keeps what jcode keeps of a session's name.
func cleanName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if b.Len() < 64 && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			b.WriteRune(r)
		}
	}
	return b.String()
}
