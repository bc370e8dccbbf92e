// Command drover-provider-extension is the provider for a person's own Chromium, which connects through an extension. Drover's
// host starts it; run by hand, `drover-provider-extension setup` connects a browser and `zip FILE` packs the extension.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/providers/extension"
)

func main() {
	if len(os.Args) < 2 {
		plugins.Serve(extension.New())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := extension.Setup(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover-provider-extension:", err)
		os.Exit(1)
	}
}
