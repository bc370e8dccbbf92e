package mcp_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/face/mcp"
	"github.com/droverhq/drover/policy"
)

// asServer is set for a process that is a server on stdin and stdout in place of a test.
const asServer = "DROVER_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		if err := serveStdio(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serveStdio is what drover mcp does, with a fake provider.
func serveStdio() error {
	ctx := context.Background()
	b := broker.New(broker.Options{Policy: policy.New(policy.Default()), Sources: []broker.Source{fake()}, Version: "test"})
	defer b.Close(ctx)
	f := mcp.New(mcp.Options{Broker: b, Version: "test"})
	defer f.Close(ctx)
	return f.Serve(ctx, b.Connect(broker.Principal{ID: "mcp", Name: "mcp"}, broker.Bound), mcp.Hello{}, os.Stdin, os.Stdout)
}
