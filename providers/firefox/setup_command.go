package firefox

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// setupCommand is what a person, or `drover provider setup firefox`, runs.
const setupCommand = "drover-provider-firefox setup"

// RunSetup is drover-provider-firefox setup: it writes the native manifest and the add-on's files for this user, says what is left for
// the person, and waits until Firefox is connected. It returns the exit status.
func RunSetup(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet(setupCommand, flag.ContinueOnError)
	flags.SetOutput(errs)
	public := flags.Bool("public", false, "answer the public Firefox Agent Bridge's add-on as well, in place of its own host")
	replace := flags.Bool("replace", false, "overwrite a native manifest that another program wrote")
	wait := flags.Duration("wait", 2*time.Minute, "how long to wait for Firefox; 0 for not at all")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := newProvider()
	defer p.srv.Close(context.WithoutCancel(ctx))
	if err := p.setup(ctx, out, *public, *replace, *wait); err != nil {
		fmt.Fprintln(errs, "error:", fault.From(err).Message)
		return 1
	}
	return 0
}

func (p *Provider) setup(ctx context.Context, out io.Writer, public, replace bool, wait time.Duration) error {
	done, err := p.putInPlace(public, replace)
	if err != nil {
		return err
	}
	for _, path := range done.manifests {
		fmt.Fprintln(out, "native manifest:", path)
	}
	fmt.Fprintf(out, "add-on:          %s (packed, unsigned: %s)\n", done.folder, done.xpi)
	st, err := p.status(ctx, nil)
	if err != nil {
		return err
	}
	if st.GetAvailability() == browserv1.Availability_AVAILABILITY_READY {
		p.greet(ctx, out)
		return nil
	}
	for i, step := range st.GetManualSteps() {
		fmt.Fprintf(out, "%d. %s\n", i+1, step)
	}
	if wait <= 0 {
		return nil
	}
	fmt.Fprintf(out, "waiting %s for Firefox …\n", wait)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for pauseFor(ctx, 250*time.Millisecond) == nil {
		for _, b := range p.discover(ctx) {
			if b.unfit() == nil {
				p.greet(ctx, out)
				return nil
			}
		}
	}
	return fault.New(fault.SetupRequired, "Firefox is not connected yet; do the steps above, then run this again")
}

// greet says which browsers are connected.
func (p *Provider) greet(ctx context.Context, out io.Writer) {
	for _, b := range p.discover(context.WithoutCancel(ctx)) {
		fmt.Fprintln(out, "connected:", b.diagnose(context.WithoutCancel(ctx)).GetMessage())
	}
}
