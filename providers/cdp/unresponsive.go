package cdp

import (
	"context"
	"time"

	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"

	"github.com/droverhq/drover/proto/fault"
)

const (
	patience  = 2 * time.Second        // how long a page may be busy before a navigation ends its script
	afterwait = 300 * time.Millisecond // how long one gets that was busy until a call's deadline
)

// answers says whether the page's process answers within d: not while a script of the page runs, nor while its next
// document is awaited. It asks whatever became of ctx.
func (p *page) answers(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	err := p.ch.Call(ctx, runtime.CommandEvaluate, runtime.EvaluateParams{Expression: "0"}, nil)
	return err == nil || ctx.Err() == nil
}

// free ends a script of the page that has been running for long, so that the page can be navigated: a document of the same
// site gets the same process, and would wait for the script for ever. The document that it belongs to is on its way out.
func (p *page) free(ctx context.Context) {
	idle := func() bool {
		p.b.mu.Lock()
		defer p.b.mu.Unlock()
		f := p.frames[p.main]
		return p.unfitLocked(true) != nil || f == nil || f.url == "about:blank" || f.requested || f.pending != ""
	}
	if idle() {
		return
	}
	wait := patience
	if until, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(until)/2) // the rest is for the navigation
	}
	if p.answers(ctx, wait) || idle() {
		return
	}
	p.interrupt()
	p.answers(ctx, afterwait)
}

// interrupt ends the script that runs in the page's process. Where none runs it would end the next one.
func (p *page) interrupt() { p.ch.post(runtime.CommandTerminateExecution, protocol.Empty{}) }

// unresponsive is the fault of a call on a page whose process does not answer; nil where it does.
func (p *page) unresponsive(ctx context.Context) *fault.Error {
	if p.answers(ctx, afterwait) {
		return nil
	}
	return fault.New(fault.NotReady, "the page does not answer: a script of its own has been running for long").Reason("page_unresponsive").Retry("").
		Hint("page.reload and page.open end the script, and tab.close closes the page")
}
