package bidi

import (
	"context"

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

// pageOf finds the page of a browsing context, which may be a frame of it.
func (b *browser) pageOf(context string) *page {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.frames[context]; f != nil {
		return f.page
	}
	return nil
}

// onPrompt notes a dialog and interrupts the calls under way, or has it answered where the session says how.
func (b *browser) onPrompt(e *promptEvent) {
	p := b.pageOf(e.Context)
	if p == nil {
		return
	}
	d := &browserv1.Dialog{Type: e.Type, Message: e.Message}
	if e.Type == "prompt" {
		empty := ""
		d.DefaultValue = e.Default
		if d.DefaultValue == nil {
			d.DefaultValue = &empty
		}
	}
	b.mu.Lock()
	d.Url = p.top.url
	accept, report := dialogHandled(p.s.policy)
	if report {
		p.dialog = d
		for g := range p.guards {
			if g.dialogs {
				g.cancel(errDialogOpen(d))
			}
		}
		p.notifyLocked()
	}
	b.mu.Unlock()
	if !report {
		b.wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), quick)
			defer cancel()
			if err := p.answer(ctx, accept, e.Default); err != nil && !b.gone() {
				p.s.p.srv.Logger().Warn("a dialog could not be answered", "error", err)
			}
		})
	}
	p.s.emit("dialog.opened", p, map[string]any{"type": d.GetType(), "message": d.GetMessage(), "url": d.GetUrl()})
}

func (b *browser) onPromptClosed(e *promptEvent) {
	p := b.pageOf(e.Context)
	if p == nil {
		return
	}
	b.mu.Lock()
	p.dialog = nil
	if e.Type == "beforeunload" && !e.Accepted {
		p.top.pending, p.top.between = "", false // The person stays; the navigation is over.
	}
	p.notifyLocked()
	b.mu.Unlock()
	p.s.emit("dialog.closed", p, map[string]any{"accepted": e.Accepted})
}

// answer answers the dialog of the page. Firefox wants the page in front for it.
func (p *page) answer(ctx context.Context, accept bool, text *string) error {
	params := promptParams{Context: p.context, Accept: accept, UserText: text}
	_, err := do(ctx, p.b.conn, contextPrompt, params)
	if refused(err, "no such alert") && p.b.firefox() {
		if _, err := do(ctx, p.b.conn, contextActivate, inContext{p.context}); err != nil {
			return err
		}
		_, err = do(ctx, p.b.conn, contextPrompt, params)
	}
	return err
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
	var text *string
	if d.GetType() == "prompt" {
		text = d.DefaultValue
		if r.Text != nil {
			text = r.Text
		}
	}
	if err := pg.answer(ctx, r.GetAction() == browserv1.DialogAction_DIALOG_ACTION_ACCEPT, text); err != nil {
		return nil, pg.explain(ctx, err)
	}
	// The next call must not meet the old dialog; another one may be open by then.
	err = pg.until(ctx, func() bool { return pg.dialog != d })
	return &browserv1.RespondDialogResponse{Responded: err == nil}, err
}
