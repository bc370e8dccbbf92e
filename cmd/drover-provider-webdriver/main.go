// Command drover-provider-webdriver drives WebKit and Chromium through their WebDriver. Drover's broker starts it.
package main

import (
	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/webdriver"
)

func main() { plugins.Serve(webdriver.New()) }
