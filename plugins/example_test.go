package plugins_test

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/plugins"
	"github.com/droverhq/drover/plugins/host"
	"github.com/droverhq/drover/plugins/plugintest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// textBrowser is a provider whose pages are a map. A real one holds the connection to its browser here.
type textBrowser struct{ pages map[string]string }

func (b *textBrowser) ensure(context.Context, *browserv1.EnsureSessionRequest) (*browserv1.EnsureSessionResponse, error) {
	return &browserv1.EnsureSessionResponse{SessionId: "s1", DefaultPageId: "p1", BrowserFamily: "text", Created: true}, nil
}

func (b *textBrowser) open(_ context.Context, r *browserv1.OpenRequest) (*browserv1.OpenResponse, error) {
	title, ok := b.pages[r.GetUrl()]
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "there is no page %s", r.GetUrl()).Field("url").Hint("try about:home")
	}
	return &browserv1.OpenResponse{PageId: "p1", Url: r.GetUrl(), Title: title}, nil
}

// newTextBrowser is the whole provider. Its main function is one line: plugins.Serve(newTextBrowser()).
func newTextBrowser() *plugins.Server {
	b := &textBrowser{pages: map[string]string{"about:home": "Home"}}
	s := plugins.NewServer(plugins.Info{ID: "text", Label: "Text browser", Version: "1.0.0", Families: []string{"text"}})
	plugins.Handle(s, b.ensure)
	plugins.Handle(s, b.open)
	return s
}

// A provider registers what it has. Here a test connects to it in-process and calls it as the broker would.
func Example() {
	ctx := context.Background()
	provider, err := plugintest.Attach(ctx, newTextBrowser(), host.Spec{ID: "text"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Stop(ctx)
	fmt.Println(provider.Describe().GetCapabilities().GetCoreMethods())
	resp, err := host.Ask[*browserv1.OpenResponse](ctx, provider, &browserv1.OpenRequest{SessionId: "s1", Url: "about:home"})
	fmt.Println(resp.GetTitle(), err)
	_, err = host.Ask[*browserv1.OpenResponse](ctx, provider, &browserv1.OpenRequest{SessionId: "s1", Url: "about:moon"})
	fmt.Println(err)
	// Output:
	// [provider.describe provider.status session.ensure page.open]
	// Home <nil>
	// invalid_request: there is no page about:moon; try about:home
}
