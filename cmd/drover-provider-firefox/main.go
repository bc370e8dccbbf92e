// Command drover-provider-firefox drives a person's own Firefox through Drover's add-on. Drover's broker starts it.
package main

import (
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/firefox"
)

func main() { plugins.Serve(firefox.New()) }
