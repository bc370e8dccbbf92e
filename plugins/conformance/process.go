package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/plugins/host"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"

	"google.golang.org/protobuf/types/known/structpb"
)

// Process is a provider's binary, for the checks of how its process comes and goes.
type Process struct {
	// Spec is how the host starts it.
	Spec host.Spec
	// Run is the run folder that the spec names; its mark tells what the process started.
	Run *host.Run
}

// whole runs the checks of a process, each on a process of its own.
func (r *run) whole(ctx context.Context) {
	for _, c := range []struct {
		id, guards string
		do         func(context.Context, *Process) string
	}{
		{"provider/configures", "A setting that the provider does not have is refused, naming it, and the process lives on to say so.", refusesUnknown},
		{"provider/ends", "Asked to end, the process goes within two seconds, with its browsers, and leaves no process behind.", ends},
		{"provider/orphan", "When the host is gone without a word, the process goes by itself, with its browsers.", hungUp},
	} {
		if len(r.opts.Checks) > 0 && !slices.Contains(r.opts.Checks, c.id) {
			continue
		}
		began := time.Now()
		res := Result{ID: c.id, Guards: c.guards, Status: Pass}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		switch msg := c.do(ctx, r.opts.Whole); {
		case strings.HasPrefix(msg, "skip: "):
			res.Status, res.Message = Skip, strings.TrimPrefix(msg, "skip: ")
		case msg != "":
			res.Status, res.Message = Fail, msg
		}
		cancel()
		res.DurationMS = time.Since(began).Milliseconds()
		r.tell(res)
	}
}

func refusesUnknown(ctx context.Context, p *Process) string {
	spec := p.Spec
	fields := map[string]*structpb.Value{}
	for k, v := range spec.Config.GetFields() {
		fields[k] = v
	}
	fields["conform_no_such_setting"] = structpb.NewBoolValue(true)
	spec.Config = &structpb.Struct{Fields: fields}
	i, err := host.Launch(ctx, spec)
	if err == nil {
		has := i.Describe().ConfigSchema != nil
		_ = i.Stop(ctx)
		if !has {
			return "skip: it tells no config_schema"
		}
		return "it tells a config_schema, and takes a setting that is not in it"
	}
	if fault.ReasonOf(err) != "config_invalid" {
		return fmt.Sprintf("it must refuse with a diagnostic, and: %v", err)
	}
	if !strings.Contains(err.Error(), "conform_no_such_setting") {
		return fmt.Sprintf("the refusal does not name the setting: %v", err)
	}
	return ""
}

// driven starts a process and has it open a page, so that there is a browser to leave behind.
func driven(ctx context.Context, p *Process) (*host.Instance, error) {
	i, err := host.Launch(ctx, p.Spec)
	if err != nil {
		return nil, err
	}
	s, err := host.Ask[*browserv1.EnsureSessionResponse](ctx, i, &browserv1.EnsureSessionRequest{ClientSessionId: "conform-end", Isolation: browserv1.Isolation_ISOLATION_PER_CLIENT_SESSION.Enum()})
	if err == nil {
		_, err = host.Ask[*browserv1.OpenResponse](ctx, i, &browserv1.OpenRequest{SessionId: s.GetSessionId(), Url: "about:blank"})
	}
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = i.Stop(stop)
		return nil, err
	}
	return i, nil
}

func ends(ctx context.Context, p *Process) string {
	i, err := driven(ctx, p)
	if err != nil {
		return err.Error()
	}
	began := time.Now()
	if err := i.Stop(ctx); err != nil {
		return err.Error()
	}
	if took := time.Since(began); took > 4*time.Second {
		return fmt.Sprintf("it took %d ms to end, and had to be killed", took.Milliseconds())
	}
	if i.Forced() {
		return "it did not end when it was asked to, and had to be killed"
	}
	return left(p)
}

func hungUp(ctx context.Context, p *Process) string {
	i, err := driven(ctx, p)
	if err != nil {
		return err.Error()
	}
	i.LetGo()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-i.Done():
	case <-timer.C:
		_ = i.Stop(ctx)
		_ = left(p)
		return "it goes on for more than 10 seconds after its stdin was closed"
	}
	_ = i.Stop(ctx)
	return left(p)
}

// left says which processes are left, and ends them.
func left(p *Process) string {
	if p.Run == nil {
		return ""
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var rest []string
	for range 20 { // what was killed with it may still be on its way out
		if rest = p.Run.Marked(); len(rest) == 0 {
			return ""
		}
		<-again.C
	}
	p.Run.KillMarked()
	return "processes are left behind: " + strings.Join(rest, ", ")
}
