package bidi

import (
	"context"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// attach connects to the running Firefox that the configuration names. It takes one session at a time, which all sessions
// of this provider share. The caller holds starting.
func (p *Provider) attach(ctx context.Context, preference string) (*browser, error) {
	config, _ := p.settings()
	address := config.AttachURL
	if address == "" {
		address = defaultAttachURL
	}
	if preference != "" && preference != "auto" && preference != familyFirefox {
		return nil, errAttach(address, "only a running Firefox can be attached to by this provider")
	}
	p.mu.Lock()
	b := p.attached
	p.mu.Unlock()
	if b != nil && !b.gone() {
		return b, nil
	}
	b = p.newBrowser(product{family: familyFirefox, name: "firefox", label: "Firefox"})
	b.attached = true
	if !strings.HasSuffix(address, "/session") {
		address = strings.TrimSuffix(address, "/") + "/session"
	}
	if err := b.connect(ctx, address); err != nil {
		b.close(context.WithoutCancel(ctx))
		return nil, errAttach(config.AttachURL, "no Firefox listens there").Cause(err)
	}
	err := b.newSession(ctx)
	if err != nil {
		b.close(context.WithoutCancel(ctx))
		if refused(err, "session not created") {
			return nil, errAttach(address, "it serves another client already").Reason("in_use").Cause(err)
		}
		return nil, errAttach(address, "it did not give a session: "+err.Error()).Cause(err)
	}
	b.product.version = b.caps.BrowserVersion
	p.mu.Lock()
	p.attached = b
	p.mu.Unlock()
	return b, nil
}

func errAttach(address, why string) *fault.Error {
	steps := []any{"start Firefox with --remote-debugging-port=9222", "or set attach_url in the provider's block of the config file"}
	if address == "" {
		address = defaultAttachURL
	}
	return fault.New(fault.SetupRequired, "the browser at %s cannot be attached to: %s", address, why).Reason("not_attached").
		With("manual_steps", steps).Hint("start Firefox with --remote-debugging-port=9222")
}

// dialogHandled says how a session's policy answers a dialog; report leaves it open.
func dialogHandled(policy browserv1.DialogPolicy) (accept, report bool) {
	switch policy {
	case browserv1.DialogPolicy_DIALOG_POLICY_ACCEPT:
		return true, false
	case browserv1.DialogPolicy_DIALOG_POLICY_DISMISS:
		return false, false
	case browserv1.DialogPolicy_DIALOG_POLICY_UNSPECIFIED, browserv1.DialogPolicy_DIALOG_POLICY_REPORT:
	}
	return false, true
}
