package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/policy"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// loadConfig reads the config file that the flags or the environment name, or the one at its usual place; without one
// there, the default config holds.
func (a *app) loadConfig() (*policy.Config, error) {
	file, explicit := a.global.config, a.global.config != ""
	if !explicit {
		file = findPlaces().config
	}
	file, err := absolute(file)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !explicit:
		return policy.Default(), nil
	case err != nil:
		return nil, fault.New(fault.InvalidRequest, "the config file cannot be read: %v", err).Cause(err)
	}
	cfg, err := policy.LoadWith(file, src, knownNames())
	if err != nil {
		e := fault.New(fault.InvalidRequest, "the config is refused\n%s", err).Reason("config_invalid").Field("config").Cause(err)
		if wrong := (*policy.LoadError)(nil); errors.As(err, &wrong) {
			e.With("mistakes", mistakes(wrong))
		}
		return nil, e
	}
	return cfg, nil
}

// knownNames are the methods and features of the protocol, and the provider binaries that are found.
func knownNames() policy.Known {
	k := policy.Known{Features: catalog.Features()}
	for _, m := range catalog.All() {
		k.Methods = append(k.Methods, m.Name)
		if m.Spec.GetReadOnly() {
			k.ReadOnly = append(k.ReadOnly, m.Name)
		}
	}
	for _, f := range host.Find() {
		k.Plugins = append(k.Plugins, f.Name)
	}
	return k
}

func mistakes(e *policy.LoadError) []map[string]any {
	var out []map[string]any
	for _, m := range e.Mistakes() {
		out = append(out, map[string]any{"file": m.File, "line": m.Line, "column": m.Column, "summary": m.Summary, "detail": m.Detail})
	}
	return out
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Check, test and reload the config file", GroupID: groupAdmin, RunE: a.group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(&cobra.Command{
		Use: "validate [FILE]", Short: "Read a config file and tell every mistake in it with its place", Args: exact(0, 1, ""),
		Long: "Read a config file and tell every mistake in it with its place. Nothing is started or changed, and no daemon is asked:\nthe settings of a provider that never ran are judged when it starts.",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.global.config = args[0]
			}
			cfg, err := a.loadConfig()
			if err == nil {
				err = checkBlocks(cfg)
			}
			switch {
			case err != nil:
				return err
			case a.global.json:
				a.printJSON([]byte(fmt.Sprintf(`{"valid":true,"file":%s,"sha256":%s,"providers":%d}`, jsonText(cfg.File), jsonText(cfg.Hash), len(cfg.Providers))))
			case cfg.File == "":
				fmt.Fprintf(a.out, "there is no config file at %s; the defaults hold\n", findPlaces().config)
			default:
				fmt.Fprintf(a.out, "%s is valid\n", cfg.File)
			}
			return nil
		},
	})
	cmd.AddCommand(a.policyFormat(), a.policyTest(), a.policyDiff(), a.policyReload())
	return cmd
}
