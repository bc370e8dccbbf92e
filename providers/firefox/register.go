package firefox

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/wire"
)

// register registers every method; what is here is what provider.describe lists. Dialogs and the console are not here: Firefox
// shows neither to an add-on. What stands in shared works with the public bridge as well, what stands in alone does not.
func (p *Provider) register(s *plugins.Server) {
	plugins.Handle(s, p.status)
	plugins.Handle(s, p.setupGuide)
	plugins.Handle(s, p.verify)
	plugins.Handle(s, p.ensure)
	plugins.Handle(s, p.closeSession)

	plugins.Handle(s, shared(p, p.open, (*guest).open))
	plugins.Handle(s, alone(p, p.back))
	plugins.Handle(s, alone(p, p.forward))
	plugins.Handle(s, alone(p, p.reload))
	plugins.Handle(s, shared(p, p.snapshot, (*guest).snapshot))
	plugins.Handle(s, shared(p, p.wait, (*guest).wait))
	plugins.Handle(s, shared(p, p.screenshot, (*guest).screenshot))
	plugins.Handle(s, alone(p, p.eval))
	plugins.Handle(s, shared(p, p.click, (*guest).click))
	plugins.Handle(s, shared(p, p.typeText, (*guest).typeText))
	plugins.Handle(s, alone(p, p.press))
	plugins.Handle(s, alone(p, p.selectOptions))
	plugins.Handle(s, alone(p, p.hover))
	plugins.Handle(s, alone(p, p.scroll))
	plugins.Handle(s, alone(p, p.drag))

	plugins.Handle(s, alone(p, p.listTabs))
	plugins.Handle(s, alone(p, p.newTab))
	plugins.Handle(s, alone(p, p.activateTab))
	plugins.Handle(s, alone(p, p.closeTab))

	plugins.Handle(s, alone(p, p.listRequests))
	plugins.Handle(s, alone(p, p.getStorage))
	plugins.Handle(s, alone(p, p.setStorage))
	plugins.Handle(s, alone(p, p.clearStorage))
	plugins.Handle(s, alone(p, p.listCookies))
	plugins.Handle(s, alone(p, p.setCookies))
	plugins.Handle(s, alone(p, p.clearCookies))
	plugins.Handle(s, alone(p, p.listDownloads))
	plugins.Handle(s, alone(p, p.waitDownload))
	plugins.Handle(s, alone(p, p.setFiles))
	plugins.Handle(s, alone(p, p.getArtifact))

	s.HandleCustom(custom("firefox.install_extension", "Write the native manifest and the add-on's files for this user, and tell what a person has to do in Firefox.", installSchema, installResult), p.install)
}

// named is a request of a method that a session answers.
type named interface {
	proto.Message
	GetSessionId() string
}

// shared is a method that a session of the public bridge answers in its own way.
func shared[Req named, Resp proto.Message](p *Provider, own func(context.Context, Req) (Resp, error), public func(*guest, context.Context, Req) (Resp, error)) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, r Req) (Resp, error) {
		if g := p.guest(r.GetSessionId()); g != nil {
			return public(g, ctx, r)
		}
		return own(ctx, r)
	}
}

// alone is a method that the public bridge cannot do.
func alone[Req named, Resp proto.Message](p *Provider, own func(context.Context, Req) (Resp, error)) func(context.Context, Req) (Resp, error) {
	var req Req
	if m, ok := catalog.ByRequest(req); ok {
		p.unshared = append(p.unshared, m.Name)
	}
	return shared(p, own, func(*guest, context.Context, Req) (Resp, error) {
		var none Resp
		return none, errGuest()
	})
}

func custom(name, description string, in, out map[string]any) *browserv1.CustomMethod {
	m := &browserv1.CustomMethod{Name: name, Description: description, Stability: browserv1.Stability_STABILITY_EXPERIMENTAL}
	m.InputSchema, _ = wire.ToStruct(in)
	m.OutputSchema, _ = wire.ToStruct(out)
	return m
}
