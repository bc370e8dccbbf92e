// Command drover-provider-firefox drives a person's own Firefox through Drover's add-on. Drover's broker starts it; a person runs
// it with the word setup, or lets drover provider setup firefox do so.
package main

import (
	"os"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/firefox"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "setup" {
		os.Exit(firefox.RunSetup(os.Args[2:], os.Stdout, os.Stderr))
	}
	plugins.Serve(firefox.New())
}
