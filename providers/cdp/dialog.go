package cdp

import (
	"context"

	protocol "github.com/chromedp/cdproto/cdp"
	pagedomain "github.com/chromedp/cdproto/page"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// dialogOpen is the cause that interrupts a call when a dialog opens on its page. As an answer it is not_ready.
type dialogOpen struct {
	fault  *fault.Error
	dialog *browserv1.Dialog
}

func (e *dialogOpen) Error() string { return e.fault.Error() }
func (e *dialogOpen) Unwrap() error { return e.fault }

func errDialogOpen(d *browserv1.Dialog) *dialogOpen {
	told := map[string]any{"type": d.GetType(), "message": d.GetMessage(), "url": d.GetUrl()}
	if d.DefaultValue != nil {
		told["default_value"] = d.GetDefaultValue()
	}
	e := fault.New(fault.NotReady, "a dialog is open on the page").Reason("dialog_open").With("dialog", told).
		Hint("answer it with dialog.respond, then try again")
	return &dialogOpen{fault: e, dialog: d}
}

// onDialog notes a dialog and interrupts the calls under way, or answers it where the session says how.
func (p *page) onDialog(ch *channel, e *pagedomain.EventJavascriptDialogOpening) {
	d := &browserv1.Dialog{Type: string(e.Type), Message: e.Message, Url: e.URL}
	if e.Type == pagedomain.DialogTypePrompt {
		d.DefaultValue = &e.DefaultPrompt
	}
	p.b.mu.Lock()
	policy := p.s.policy
	report := policy != browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT && policy != browserv1.DialogPolicy_DIALOG_POLICY_DISMISS
	if report {
		p.dialog = d
		for g := range p.guards {
			if g.dialogs {
				g.cancel(errDialogOpen(d))
			}
		}
		p.notifyLocked()
	}
	p.b.mu.Unlock()
	if !report {
		accept := policy == browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT
		ch.post(pagedomain.HandleJavaScriptDialog.Method, pagedomain.HandleJavaScriptDialogParams{Accept: accept, PromptText: e.DefaultPrompt})
	}
	p.s.emit("dialog.opened", p, map[string]any{"type": d.GetType(), "message": d.GetMessage(), "url": d.GetUrl()})
}

func (p *page) onDialogClosed(e *pagedomain.EventJavascriptDialogClosed) {
	p.b.mu.Lock()
	if f := p.frames[p.main]; p.dialog.GetType() == string(pagedomain.DialogTypeBeforeunload) && !e.Result && f != nil {
		f.pending, f.requested = "", false // The person stays; the navigation is over.
	}
	p.dialog = nil
	p.notifyLocked()
	p.b.mu.Unlock()
	p.s.emit("dialog.closed", p, map[string]any{"accepted": e.Result})
}

// getDialog is dialog.get.
func (p *Provider) getDialog(_ context.Context, r *browserv1.GetDialogRequest) (*browserv1.GetDialogResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg.b.mu.Lock()
	defer pg.b.mu.Unlock()
	return &browserv1.GetDialogResponse{Dialog: pg.dialog}, nil
}

// respondDialog is dialog.respond. It waits for no lane: the call that opened the dialog may hold it.
func (p *Provider) respondDialog(ctx context.Context, r *browserv1.RespondDialogRequest) (*browserv1.RespondDialogResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx, false)
	if err != nil {
		return nil, err
	}
	defer done()
	pg.b.mu.Lock()
	d := pg.dialog
	pg.b.mu.Unlock()
	if d == nil {
		return nil, fault.New(fault.InvalidRequest, "no dialog is open on the page").Reason("no_dialog")
	}
	params := pagedomain.HandleJavaScriptDialogParams{
		Accept: r.GetAction() == browserv1.DialogAction_DIALOG_ACTION_ACCEPT, PromptText: d.GetDefaultValue(),
	}
	if r.Text != nil {
		params.PromptText = r.GetText()
	}
	if _, err := protocol.Call(ctx, pg.ch, pagedomain.HandleJavaScriptDialog, params); err != nil {
		return nil, pg.explain(ctx, err)
	}
	// The next call must not meet the old dialog; another one may be open by then.
	err = pg.until(ctx, func() bool { return pg.dialog != d })
	return &browserv1.RespondDialogResponse{Responded: err == nil}, err
}
