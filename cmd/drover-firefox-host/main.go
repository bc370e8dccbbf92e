// Command drover-firefox-host is the native messaging host that Firefox starts for Drover's add-on, or for the public Firefox
// Agent Bridge. It carries messages between the add-on and Drover's providers, and ends with Firefox.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/droverhq/drover/providers/firefox/endpoint"
	"github.com/droverhq/drover/providers/firefox/relay"
)

// publicApp is the native app that the public Firefox Agent Bridge asks for.
const publicApp = "firefox_agent_bridge"

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "drover-firefox-host is started by Firefox for Drover's add-on. To set it up: drover provider setup firefox")
		os.Exit(1)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "drover-firefox-host:", err)
		os.Exit(1)
	}
}

// run serves the add-on whose manifest Firefox named, until Firefox closes stdin or says stop.
func run(manifest string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	l, err := endpoint.Listen(ctx, endpoint.Folder())
	if err != nil {
		return err
	}
	return relay.Run(ctx, relay.Options{
		In: os.Stdin, Out: os.Stdout, Listener: l, Public: app(manifest) == publicApp,
		Logger: hclog.New(&hclog.LoggerOptions{Name: "firefox-host", Level: hclog.Warn, Output: os.Stderr}),
	})
}

// app gives the name in a native messaging manifest; "" where it cannot be read.
func app(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var m struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(data, &m) != nil {
		return ""
	}
	return m.Name
}
