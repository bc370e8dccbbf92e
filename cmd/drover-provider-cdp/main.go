// Command drover-provider-cdp is the provider for Chromium and its kin. Drover's host starts it.
package main

import (
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/cdp"
)

func main() { plugins.Serve(cdp.New()) }
