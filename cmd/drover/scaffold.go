package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/plugins/scaffold"
	"github.com/droverhq/drover/proto/fault"
)

type initFlags struct {
	lang, sdk, dir string
	noBuild        bool
}

func (a *app) initCommand() *cobra.Command {
	f := initFlags{lang: "go"}
	c := &cobra.Command{
		Use: "init NAME", Short: "Write a new provider project", Args: exact(1, 1, "NAME"),
		Long: `Write a complete provider that drives Chromium through Drover's in-page engine, and build it.

The project lies in the folder drover-provider-NAME and can be judged at once with
drover provider conform ./drover-provider-NAME. It is built with the SDK at --sdk.`,
		Example: `  drover provider init mine`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.initProvider(cmd.Context(), args[0], f) },
	}
	c.Flags().StringVar(&f.lang, "lang", "go", "the `LANGUAGE`: "+strings.Join(scaffold.Langs, ", "))
	c.Flags().StringVar(&f.sdk, "sdk", "", "the checkout of Drover that a Go project is built with; the one drover was built in when left out")
	c.Flags().StringVar(&f.dir, "dir", "", "the `FOLDER` to write; drover-provider-NAME when left out")
	c.Flags().BoolVar(&f.noBuild, "no-build", false, "only write the files")
	complete(c, "lang", words(scaffold.Langs...))
	return c
}

func (a *app) initProvider(ctx context.Context, name string, f initFlags) error {
	if !slices.Contains(scaffold.Langs, f.lang) {
		return usage("--lang must be one of %s, not %q", strings.Join(scaffold.Langs, ", "), f.lang)
	}
	if f.dir == "" {
		f.dir = "drover-provider-" + name
	}
	dir, err := absolute(f.dir)
	if err != nil {
		return err
	}
	p := scaffold.Project{Name: name, Lang: f.lang, Dir: dir}
	if f.lang == "go" {
		if err := withSDK(&p, f.sdk); err != nil {
			return err
		}
	}
	files, err := scaffold.Write(p)
	if err != nil {
		return err
	}
	build := buildOf(p)
	if !f.noBuild && len(build) > 0 {
		cmd := exec.CommandContext(ctx, build[0], build[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, a.err, a.err
		if err := cmd.Run(); err != nil {
			return fault.New(fault.SetupRequired, "the project is written, and %s failed: %v", strings.Join(build, " "), err).
				Hint("run it in %s when what it needs is there", dir).Cause(err)
		}
	}
	if a.global.json {
		a.printJSON([]byte(fmt.Sprintf(`{"dir":%s,"lang":%q,"files":%d}`, jsonText(dir), f.lang, len(files))))
		return nil
	}
	fmt.Fprintf(a.out, "%s holds a %s provider in %d files.\n", f.dir, f.lang, len(files))
	if f.noBuild && len(build) > 0 {
		fmt.Fprintf(a.out, "Build it:  cd %s && %s\n", f.dir, strings.Join(build, " "))
	}
	fmt.Fprintf(a.out, "Judge it:  drover provider conform %s%c%s\n", f.dir, filepath.Separator, "drover-provider-"+name)
	return nil
}

// buildOf is the command that builds a project, in its folder.
func buildOf(p scaffold.Project) []string {
	switch p.Lang {
	case "go":
		return []string{"go", "build", "-trimpath", "-o", "drover-provider-" + p.Name, "."}
	}
	return nil
}

// withSDK finds the SDK's checkout and reads what a project needs of it.
func withSDK(p *scaffold.Project, sdk string) error {
	explicit := sdk != ""
	if !explicit {
		sdk = builtIn
		if sdk == "" {
			sdk = sourceFolder()
		}
	}
	sdk, err := absolute(sdk)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(sdk, "go.mod"))
	if err == nil && !strings.HasPrefix(string(mod), "module github.com/droverhq/drover\n") {
		err = errors.New("its go.mod is another module's")
	}
	var sum []byte
	if err == nil {
		sum, err = os.ReadFile(filepath.Join(sdk, "go.sum"))
	}
	if err != nil {
		e := fault.New(fault.InvalidRequest, "%s is no checkout of Drover: %v", sdk, err).Field("sdk").Cause(err)
		if !explicit {
			return e.Hint("the checkout that drover was built in is not there; name one with --sdk")
		}
		return e
	}
	p.SDK, p.GoMod, p.GoSum = sdk, string(mod), string(sum)
	return nil
}

// builtIn is the checkout that this program was built in. The linker sets it (Makefile), because -trimpath takes it out of
// the program itself.
var builtIn string

// sourceFolder is the checkout as the compiler knew it, where it was not trimmed.
func sourceFolder() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "."
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
