// Command drover gives an AI agent one browser tool and any browser: a broker that routes the browser provider protocol
// to provider processes, with JSON lines, a unix socket, HTTP and WebSocket in front, and a command line that is derived
// from the protocol's declarations. It is the only place that knows the broker, the plugin host and the faces at once.
package main

import (
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it gives the exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	a := &app{in: in, out: out, err: errs}
	root := a.root(args)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	ctx, stop := interrupted()
	defer stop()
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	return a.report(err)
}
