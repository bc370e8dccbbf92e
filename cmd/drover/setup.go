package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/plugins/host"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// letSetUp has `drover provider setup` do, after it told the steps, the one that the provider's own program does: a step whose
// command is that program. What only a person can do stays with them.
func (a *app) letSetUp(cmd *cobra.Command) {
	guide := cmd.RunE
	cmd.Long += "\n\nA step that the provider's own program can do is done."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := guide(cmd, args); err != nil || a.global.json {
			return err
		}
		return a.runSetup(cmd.Context(), args[0])
	}
}

// runSetup runs the provider's program with what its guide says.
func (a *app) runSetup(ctx context.Context, id string) error {
	l, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	r, err := call[*browserv1.SetupGuideResponse](ctx, l, "provider.setup_guide", map[string]any{"provider_id": id})
	if err != nil {
		return err
	}
	for _, step := range r.GetSteps() {
		words := strings.Fields(step.GetCommand())
		if len(words) < 2 || words[1] != "setup" {
			continue
		}
		name, ok := strings.CutPrefix(words[0], host.Prefix)
		if !ok {
			continue
		}
		found, ok := host.FindOne(name)
		if !ok {
			continue
		}
		args := words[1:]
		if a.global.timeout > 0 {
			args = append(args, "--wait", a.global.timeout.String())
		}
		program := exec.CommandContext(ctx, found.Path, args...)
		program.Stdout, program.Stderr = a.out, a.err
		fmt.Fprintf(a.out, "%s\n", a.paint(a.out, bold, step.GetCommand()))
		if err := program.Run(); err != nil {
			return fault.New(fault.SetupRequired, "%s is not set up yet", id).Cause(err)
		}
		return nil
	}
	return nil
}
