// Command drover-provider-extension is the provider for a person's own Chromium, which connects through an extension. Drover's
// host starts it.
package main

import (
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/extension"
)

func main() { plugins.Serve(extension.New()) }
