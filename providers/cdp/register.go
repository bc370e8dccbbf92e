package cdp

import (
	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// register registers every method; what is here is what provider.describe lists.
func (p *Provider) register(s *plugins.Server) {
	plugins.Handle(s, p.status)
	plugins.Handle(s, p.setupGuide)
	plugins.Handle(s, p.verify)
	p.registerPages(s)
	p.registerCustom(s)
}

// registerPages registers the methods of sessions and their pages.
func (p *Provider) registerPages(s *plugins.Server) {
	plugins.Handle(s, p.ensure)
	plugins.Handle(s, p.closeSession)

	plugins.Handle(s, p.open)
	plugins.Handle(s, p.back)
	plugins.Handle(s, p.forward)
	plugins.Handle(s, p.reload)
	plugins.Handle(s, p.snapshot)
	plugins.Handle(s, p.wait)
	plugins.Handle(s, p.screenshot)
	plugins.Handle(s, p.eval)
	plugins.Handle(s, p.click)
	plugins.Handle(s, p.typeText)
	plugins.Handle(s, p.press)
	plugins.Handle(s, p.selectOptions)
	plugins.Handle(s, p.hover)
	plugins.Handle(s, p.scroll)
	plugins.Handle(s, p.drag)

	plugins.Handle(s, p.listTabs)
	plugins.Handle(s, p.newTab)
	plugins.Handle(s, p.activateTab)
	plugins.Handle(s, p.closeTab)
	plugins.Handle(s, p.getDialog)
	plugins.Handle(s, p.respondDialog)

	plugins.Handle(s, p.listRequests)
	plugins.Handle(s, p.listMessages)
	plugins.Handle(s, p.getStorage)
	plugins.Handle(s, p.setStorage)
	plugins.Handle(s, p.clearStorage)
	plugins.Handle(s, p.listCookies)
	plugins.Handle(s, p.setCookies)
	plugins.Handle(s, p.clearCookies)
	plugins.Handle(s, p.listDownloads)
	plugins.Handle(s, p.waitDownload)
	plugins.Handle(s, p.setFiles)
	plugins.Handle(s, p.getArtifact)
}

// registerCustom registers what only this provider has.
func (p *Provider) registerCustom(s *plugins.Server) {
	s.HandleCustom(custom("cdp.send", "Send a command of the Chrome DevTools Protocol to a page of the session, or to the browser.", sendSchema, map[string]any{
		"type": "object", "description": "The command's result, as the protocol has it.",
	}), p.send)
	s.HandleCustom(custom("cdp.events", "Collect events of the Chrome DevTools Protocol from a page of the session. The first call with a set of methods starts collecting.", eventsSchema, map[string]any{
		"type": "object", "properties": map[string]any{
			"events":  map[string]any{"type": "array", "items": map[string]any{"type": "object"}, "description": "{method, params} in the order they came."},
			"dropped": map[string]any{"type": "integer", "description": "How many older ones were dropped."},
		},
	}), p.events)
}

func custom(name, description string, in, out map[string]any) *browserv1.CustomMethod {
	m := &browserv1.CustomMethod{Name: name, Description: description, Stability: browserv1.Stability_STABILITY_EXPERIMENTAL}
	m.InputSchema, _ = wire.ToStruct(in)
	m.OutputSchema, _ = wire.ToStruct(out)
	return m
}
