package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/proto/wire"
)

// The exit statuses of the command line (PROTOCOL, errors).
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitDenied   = 4
	exitNotReady = 5
	exitTimeout  = 6
)

// silent is an outcome that was printed already: only its exit status is left to tell.
type silent struct{ status int }

func (s silent) Error() string { return fmt.Sprintf("exit status %d", s.status) }

// exitStatus gives the exit status of an error by its code and reason.
func exitStatus(err error) int {
	var s silent
	if errors.As(err, &s) {
		return s.status
	}
	e := fault.From(err)
	if e.ReasonWord() == "deadline_exceeded" {
		return exitTimeout
	}
	switch e.Code {
	case fault.InvalidRequest, fault.InvalidSelector:
		return exitUsage
	case fault.ElementNotFound, fault.SessionNotFound, fault.PageNotFound:
		return exitNotFound
	case fault.PermissionDenied:
		return exitDenied
	case fault.NotReady, fault.SetupRequired, fault.BrowserNotRunning:
		return exitNotReady
	case fault.NavigationTimeout:
		return exitTimeout
	default:
		return exitFailed
	}
}

// report tells an error and gives its exit status: words for a person on stderr, or with --json the protocol's error
// object as {"error": …} on stdout, where a result would stand.
func (a *app) report(err error) int {
	status := exitStatus(err)
	var s silent
	if errors.As(err, &s) {
		return status
	}
	e := fault.From(err)
	if a.global.json {
		if data, merr := wire.Marshal(e.Proto()); merr == nil {
			fmt.Fprintf(a.out, "{\"error\":%s}\n", data)
			return status
		}
	}
	fmt.Fprintf(a.err, "%s %s\n", a.paint(a.err, red, "error:"), sentence(e.Message))
	word := fault.Word(e.Code)
	if r := e.ReasonWord(); r != "" {
		word += " (" + r + ")"
	}
	if e.ReasonWord() != reasonUsage {
		fmt.Fprintf(a.err, "  %s\n", a.paint(a.err, dim, word))
	}
	for _, line := range further(e) {
		fmt.Fprintf(a.err, "  %s\n", line)
	}
	return status
}

// reasonUsage marks mistakes on the command line itself.
const reasonUsage = "usage"

// usage is a mistake on the command line.
func usage(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidRequest, format, args...).Reason(reasonUsage)
}

// further gives what the details of an error add for a person: candidates, rejected providers, steps, the open dialog.
func further(e *fault.Error) []string {
	var out []string
	for _, c := range list(e.Details["candidates"]) {
		ref, _ := c["element_ref"].(string)
		out = append(out, strings.TrimRight(fmt.Sprintf("candidate @%s  %v %q", ref, c["role"], fmt.Sprint(c["name"])), " "))
	}
	for _, key := range []string{"rejections", "tried"} {
		for _, r := range list(e.Details[key]) {
			out = append(out, fmt.Sprintf("%v: %v", firstText(r, "browser", "provider_id"), r["message"]))
		}
	}
	for i, s := range texts(e.Details["manual_steps"]) {
		out = append(out, fmt.Sprintf("%d. %s", i+1, s))
	}
	if d, ok := e.Details["dialog"].(map[string]any); ok {
		out = append(out, fmt.Sprintf("the %v says %q; answer it with drover dialog respond accept|dismiss", d["type"], fmt.Sprint(d["message"])))
	}
	return out
}

func firstText(m map[string]any, keys ...string) string {
	for _, k := range keys {
		if s, ok := m[k].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func list(v any) []map[string]any {
	switch v := v.(type) {
	case []map[string]any:
		return v
	case []any:
		out := make([]map[string]any, 0, len(v))
		for _, x := range v {
			if m, ok := x.(map[string]any); ok {
				out = append(out, m)
			}
		}
		return out
	}
	return nil
}

func texts(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case []any:
		out := make([]string, 0, len(v))
		for _, x := range v {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// sentence makes the first letter of a message large where it is a plain word.
func sentence(s string) string {
	return strings.TrimSpace(s)
}

// interrupted gives a context that ends at the first interrupt, SIGTERM or SIGHUP. A second one ends the program by the
// system's own rule.
func interrupted() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case s := <-ch:
			cancel(fmt.Errorf("received %s", s))
			signal.Stop(ch)
		case <-done:
		}
	})
	return ctx, func() {
		close(done)
		listening.Wait()
		signal.Stop(ch)
		cancel(nil)
	}
}
