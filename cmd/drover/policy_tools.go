package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/fault"
)

// configFile is the file that the commands of policy are about.
func (a *app) configFile(args []string) (string, error) {
	if len(args) > 0 {
		a.global.config = args[0]
	}
	if a.global.config == "" {
		return findPlaces().config, nil
	}
	return absolute(a.global.config)
}

func (a *app) policyFormat() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "fmt [FILE]", Short: "Write a config file in its one layout", Args: exact(0, 1, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.configFile(args)
			if err != nil {
				return err
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return fault.New(fault.InvalidRequest, "the config file cannot be read: %v", err).Cause(err)
			}
			if _, err := policy.Load(file, src); err != nil && badSyntax(err) {
				return fault.New(fault.InvalidRequest, "the config is refused\n%s", err).Reason("config_invalid").Field("config").Cause(err)
			}
			out := policy.Format(src)
			changed := !bytes.Equal(src, out)
			if changed && !check {
				info, err := os.Stat(file)
				if err == nil {
					err = replaceWhole(file, out, info.Mode().Perm())
				}
				if err != nil {
					return fault.New(fault.PermissionDenied, "the config file cannot be written: %v", err).Reason("path_refused").Cause(err)
				}
			}
			if a.global.json {
				a.printJSON([]byte(fmt.Sprintf(`{"file":%s,"changed":%t}`, jsonText(file), changed)))
			} else if changed {
				fmt.Fprintln(a.out, file)
			}
			if changed && check {
				return silent{exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit 1 when the layout is another")
	return cmd
}

// badSyntax says that a file cannot even be parsed, so that its layout is nobody's to say.
func badSyntax(err error) bool {
	wrong := (*policy.LoadError)(nil)
	return errors.As(err, &wrong) && wrong.Syntax()
}

// replaceWhole writes a file whole, with the mode that it had.
func replaceWhole(path string, data []byte, mode os.FileMode) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if err := replaceFile(real, data); err != nil {
		return err
	}
	return os.Chmod(real, mode)
}

func (a *app) policyTest() *cobra.Command {
	var coverage bool
	cmd := &cobra.Command{
		Use: "test [FILE]", Short: "Run the test blocks of a config file", Args: exact(0, 1, ""),
		Long: "Run the test blocks of a config file. Nothing is started, and no daemon is asked.",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.global.config = args[0]
			}
			cfg, err := a.loadConfig()
			if err != nil {
				return err
			}
			p := policy.New(cfg)
			results := p.RunTests()
			missed := p.Unreached(results)
			failed := 0
			for _, r := range results {
				if len(r.Failures) > 0 {
					failed++
				}
			}
			if a.global.json {
				a.printTestsJSON(results, failed, missed, coverage)
			} else {
				a.printTests(results, failed, missed, coverage)
			}
			if failed > 0 {
				return silent{exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&coverage, "coverage", false, "say which rules and guards no test reached")
	return cmd
}

func (a *app) printTests(results []policy.Result, failed int, missed []string, coverage bool) {
	for _, r := range results {
		if len(r.Failures) == 0 {
			fmt.Fprintf(a.out, "%s %s\n", a.paint(a.out, green, "✓"), r.Test.Name)
			continue
		}
		fmt.Fprintf(a.out, "%s %s (%s)\n", a.paint(a.out, red, "✗"), r.Test.Name, r.Test.Where)
		for _, f := range r.Failures {
			a.wrapped("    ", "    ", f)
		}
	}
	fmt.Fprintf(a.out, "%d tests, %d failed\n", len(results), failed)
	if !coverage {
		return
	}
	if len(missed) == 0 {
		fmt.Fprintln(a.out, "every rule and guard was reached")
	}
	for _, m := range missed {
		fmt.Fprintf(a.out, "%s no test reached the %s\n", a.paint(a.out, yellow, "!"), m)
	}
}

func (a *app) printTestsJSON(results []policy.Result, failed int, missed []string, coverage bool) {
	type row struct {
		Name     string   `json:"name"`
		Where    string   `json:"where"`
		Passed   bool     `json:"passed"`
		Failures []string `json:"failures"`
	}
	out := map[string]any{"failed": failed}
	rows := []row{}
	for _, r := range results {
		rows = append(rows, row{r.Test.Name, r.Test.Where, len(r.Failures) == 0, append([]string{}, r.Failures...)})
	}
	out["tests"] = rows
	if coverage {
		out["unreached"] = append([]string{}, missed...)
	}
	if data, err := json.Marshal(out); err == nil {
		a.printJSON(data)
	}
}

// running asks the daemon; without one there is nothing to reload or to compare with.
func (a *app) running(ctx context.Context, o order) (reply, error) {
	t, err := a.target()
	if err != nil {
		return reply{}, err
	}
	r, err := command(ctx, t.socket, o)
	if errors.Is(err, errNoDaemon) {
		return reply{}, fault.New(fault.NotReady, "no daemon is running").Reason("no_daemon").Hint("the next one reads the config when it starts")
	}
	return r, err
}

func (a *app) policyReload() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Have the daemon read its config file again", Args: exact(0, 0, ""),
		Long: "Have the daemon read its config file again. A wrong one is refused and the old one stays in force; sessions are kept.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.running(cmd.Context(), order{Do: doReload})
			switch {
			case err != nil:
				return err
			case a.global.json:
				a.printJSON([]byte(fmt.Sprintf(`{"reloaded":true,"file":%s,"sha256":%s}`, jsonText(r.Info.Config), jsonText(r.Info.ConfigHash))))
			case r.Info.Config == "":
				fmt.Fprintln(a.out, "there is no config file; the defaults are in force")
			default:
				fmt.Fprintf(a.out, "%s is in force, sha256 %s\n", r.Info.Config, r.Info.ConfigHash)
			}
			return nil
		},
	}
}

func (a *app) policyDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff", Short: "Say what a reload would change for the sessions and recent calls at hand", Args: exact(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.running(cmd.Context(), order{Do: doDiff})
			if err != nil {
				return err
			}
			if a.global.json {
				data, err := json.Marshal(map[string]any{"differences": append([]broker.Difference{}, r.Diff...), "in_force": r.Info.ConfigHash})
				if err == nil {
					a.printJSON(data)
				}
				return err
			}
			if len(r.Diff) == 0 {
				fmt.Fprintln(a.out, "a reload changes nothing for the sessions and recent calls at hand")
			}
			for _, d := range r.Diff {
				what := fmt.Sprintf("%s %s %s", d.Client, d.Method, d.URL)
				if d.Session != "" {
					what = fmt.Sprintf("session %s of %s", d.Session, d.Client)
				}
				if d.Count > 1 {
					what += fmt.Sprintf(" (%d times)", d.Count)
				}
				fmt.Fprintln(a.out, what)
				a.wrapped("  - ", "    ", d.Before)
				after := d.After
				if d.Where != "" {
					after += " (" + d.Where + ")"
				}
				a.wrapped("  + ", "    ", after)
			}
			return nil
		},
	}
}
