// Command drover-provider-bidi drives Firefox, and Chromium through its driver, over WebDriver BiDi. Drover's broker starts it.
package main

import (
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/bidi"
)

func main() { plugins.Serve(bidi.New()) }
