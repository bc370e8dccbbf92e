package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/policy"
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
	cfg, err := policy.Load(file, src)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the config is refused\n%s", err).Reason("config_invalid").Field("config").Cause(err)
	}
	return cfg, nil
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Check the config file", GroupID: groupAdmin, RunE: a.group, Args: cobra.ArbitraryArgs}
	cmd.AddCommand(&cobra.Command{
		Use: "validate [FILE]", Short: "Read a config file and tell every mistake in it with its place", Args: exact(0, 1, ""),
		Long: "Read a config file and tell every mistake in it with its place. Nothing is started or changed, and no daemon is asked.",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.global.config = args[0]
			}
			cfg, err := a.loadConfig()
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
	return cmd
}
