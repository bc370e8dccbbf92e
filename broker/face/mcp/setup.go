package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/droverhq/drover/broker"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// setupPrompt is the prompt that is there while no provider is ready.
const setupPrompt = "setup"

// offerSetup lists the setup prompt while no provider can take a session; s.mu is held. It starts none to ask it.
func (s *server) offerSetup() {
	needed := !s.face.o.Broker.Ready()
	switch {
	case needed && !s.setup:
		s.mcp.AddPrompt(&mcp.Prompt{
			Name: setupPrompt, Title: "Set a browser up", Description: "What a person has to do before Drover can open pages here",
		}, s.explainSetup)
	case !needed && s.setup:
		s.mcp.RemovePrompts(setupPrompt)
	}
	s.setup = needed
}

func status(ctx context.Context, caller *broker.Caller) (*browserv1.StatusResponse, error) {
	resp, err := caller.Call(ctx, statusMethod, &browserv1.StatusRequest{})
	if err != nil {
		return nil, err
	}
	st, ok := resp.(*browserv1.StatusResponse)
	if !ok {
		return nil, fmt.Errorf("provider.status gave a %T", resp)
	}
	return st, nil
}

// explainSetup tells each provider's findings and manual steps.
func (s *server) explainSetup(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	st, err := status(ctx, s.face.o.Broker.Connect(s.who, broker.Unbound))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("Drover has no browser that it can use. Help me to set one up; one of these is enough:\n")
	providers := st.GetProviders()
	if len(providers) == 0 {
		providers = []*browserv1.StatusResponse{st}
	}
	for _, p := range providers {
		fmt.Fprintf(&b, "\n## %s\n", p.GetProviderId())
		for _, d := range p.GetDiagnostics() {
			fmt.Fprintf(&b, "%s\n", d.GetMessage())
		}
		steps := p.GetManualSteps()
		if len(steps) == 0 {
			for _, d := range p.GetDiagnostics() {
				steps = append(steps, d.GetManualSteps()...)
			}
		}
		for i, step := range steps {
			fmt.Fprintf(&b, "%d. %s\n", i+1, step)
		}
	}
	return &mcp.GetPromptResult{
		Description: "Set a browser up",
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: b.String()}}},
	}, nil
}
