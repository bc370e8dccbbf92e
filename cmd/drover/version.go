package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/proto/catalog"
)

// version is the program's version; the build sets it.
var version = "dev"

// revision is the commit; a build that is told none asks the toolchain, which does not always know.
var revision string

// programVersion is the version with the commit where the build did not name one.
var programVersion = sync.OnceValue(func() string {
	if version == "dev" {
		if c := commit(); c != "" {
			return "dev-" + c[:min(12, len(c))]
		}
	}
	return version
})

func commit() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// versions is what `drover version --json` prints.
type versions struct {
	Version  string `json:"version"`
	Protocol string `json:"protocol_version"`
	Go       string `json:"go_version"`
	Commit   string `json:"commit"`
	Platform string `json:"platform"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the program and the protocol", GroupID: groupAdmin, Args: exact(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := versions{programVersion(), catalog.Version, runtime.Version(), commit(), runtime.GOOS + "/" + runtime.GOARCH}
			if a.global.json {
				data, err := json.Marshal(v)
				if err == nil {
					a.printJSON(data)
				}
				return err
			}
			fmt.Fprintf(a.out, "drover %s, protocol %s, %s, %s\n", v.Version, v.Protocol, v.Go, v.Platform)
			if v.Commit != "" {
				fmt.Fprintf(a.out, "commit %s\n", v.Commit)
			}
			return nil
		},
	}
}
