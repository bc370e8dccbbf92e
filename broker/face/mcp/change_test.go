package mcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	"github.com/droverhq/drover/broker/face/mcp"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

var helloNone = mcp.Hello{}

// Guards that clients hear when tools come and go with providers.
func TestToolsFollowTheProviders(t *testing.T) {
	poor := fake()
	caps := poor.Description.Capabilities
	var few []string
	for _, m := range caps.OptionalMethods {
		if m != "page.hover" {
			few = append(few, m)
		}
	}
	caps.OptionalMethods = few
	h := build(t, "", poor)
	changed := make(chan struct{}, 8)
	u := h.connect("mcp", helloNone, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	if u.tools()["browser_hover"] != nil {
		t.Fatal("a tool that nobody can serve is listed")
	}
	rich := brokertest.New("bidi", []string{"firefox"})
	h.broker.SetSources([]broker.Source{poor, rich})
	h.broker.Changed("bidi")
	select {
	case <-changed:
	case <-t.Context().Done():
	}
	if u.tools()["browser_hover"] == nil {
		t.Error("the new provider's tool is not listed")
	}
	h.broker.SetSources([]broker.Source{poor})
	h.broker.Changed("cdp")
	<-changed
	if u.tools()["browser_hover"] != nil {
		t.Error("the tool stays when its provider is gone")
	}
}

// Guards the setup prompt: it is there while no provider is ready, with each one's steps.
func TestSetupPrompt(t *testing.T) {
	f := fake()
	f.State = &browserv1.StatusResponse{
		Availability: browserv1.Availability_AVAILABILITY_UNAVAILABLE, SetupState: browserv1.SetupState_SETUP_STATE_REQUIRED,
		ManualSteps: []string{"apt-get install chromium"},
		Diagnostics: []*browserv1.Diagnostic{{Code: "browser_not_found", Message: "There is no Chromium"}},
	}
	h := build(t, "", f)
	u := h.connect("mcp", helloNone, nil)
	list, err := u.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 1 {
		t.Fatalf("prompts %v, %v", list, err)
	}
	p, err := u.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: list.Prompts[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	text := p.Messages[0].Content.(*sdk.TextContent).Text
	if !strings.Contains(text, "1. apt-get install chromium") || !strings.Contains(text, "There is no Chromium") || !strings.Contains(text, "cdp") {
		t.Errorf("the prompt:\n%s", text)
	}
	if ready := build(t, "", fake()).agent(); true {
		if list, err := ready.ListPrompts(t.Context(), nil); err != nil || len(list.Prompts) != 0 {
			t.Errorf("prompts where a provider is ready: %v, %v", list, err)
		}
	}
}

// Guards progress: the stages of a first call, in order, from the face and from the provider.
func TestProgress(t *testing.T) {
	f := fake()
	var mu sync.Mutex
	var got []string
	u := build(t, "", f).connect("mcp", helloNone, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r.Params.Message)
		},
	})
	params := call("browser_open", map[string]any{"url": "http://a.test/"})
	params.SetProgressToken("p1")
	if _, err := u.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	await(t, "three stages", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= 3 })
	if want := "choosing a browser|Chromium is ready, by the provider cdp|navigating"; strings.Join(got, "|") != want {
		t.Errorf("got %v", got)
	}
}

// Guards the resources: state, explanation, and the files of the client's own sessions.
func TestResources(t *testing.T) {
	f := fake()
	gives(f, "download.wait", &browserv1.WaitDownloadResponse{Downloads: []*browserv1.Download{{
		DownloadId: "d1", State: browserv1.DownloadState_DOWNLOAD_STATE_COMPLETE, ArtifactRef: "a/1", SuggestedFilename: "report.csv", ReceivedBytes: 6,
	}}})
	f.On("artifact.get", func(_ context.Context, req proto.Message) (proto.Message, error) {
		data := []byte("a,b\n1\n")[req.(*browserv1.GetArtifactRequest).GetOffset():]
		if len(data) > 4 {
			data = data[:4]
		}
		return &browserv1.GetArtifactResponse{Data: data, MediaType: "text/csv", Size: 6, Eof: len(data) < 4}, nil
	})
	h := build(t, "", f)
	u, other := h.agent(), h.connect("other", helloNone, nil)
	r := u.do("browser_download_wait", nil)
	link, ok := r.Content[len(r.Content)-1].(*sdk.ResourceLink)
	if !ok || link.Name != "report.csv" {
		t.Fatalf("got %v", r.Content)
	}
	got, err := u.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI})
	if err != nil || got.Contents[0].Text != "a,b\n1\n" {
		t.Errorf("read %v, %v", got, err)
	}
	if _, err := other.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI}); err == nil {
		t.Error("another client reads it")
	}
	for uri, want := range map[string]string{
		"browser://status":                  `"provider_id":"cdp"`,
		"browser://explain/browser_session": `"allowed":true`,
		"browser://explain/page.click":      `"provider_id":"cdp"`,
		"browser://explain/browser_open?arguments=%7B%22url%22%3A%22file%3A%2F%2F%2Fetc%2Fpasswd%22%7D": `"allowed":false`,
	} {
		got, err := u.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(got.Contents[0].Text, want) {
			t.Errorf("%s: %v, %v", uri, got, err)
		}
	}
}
