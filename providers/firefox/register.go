package firefox

import (
	"github.com/droverhq/drover/plugins"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/wire"
)

// register registers every method; what is here is what provider.describe lists. Dialogs and the console are not here: Firefox
// shows neither to an add-on.
func (p *Provider) register(s *plugins.Server) {
	plugins.Handle(s, p.status)
	plugins.Handle(s, p.setupGuide)
	plugins.Handle(s, p.verify)
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

	plugins.Handle(s, p.listRequests)
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

	s.HandleCustom(custom("firefox.install_extension", "Write the native manifest and the add-on's files for this user, and tell what a person has to do in Firefox.", installSchema, installResult), p.install)
}

func custom(name, description string, in, out map[string]any) *browserv1.CustomMethod {
	m := &browserv1.CustomMethod{Name: name, Description: description, Stability: browserv1.Stability_STABILITY_EXPERIMENTAL}
	m.InputSchema, _ = wire.ToStruct(in)
	m.OutputSchema, _ = wire.ToStruct(out)
	return m
}
