package extension

import (
	"context"
	"strconv"
	"strings"

	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// drive opens a tab in a browser with the catalog's tools, reads it, and closes it where the extension can.
func (p *Provider) drive(ctx context.Context, n *bridge.Node, b bridge.Browser, note func(id string, err error, well, fix string) bool) {
	const again = "load the extension anew in chrome://extensions and try again"
	made, err := n.Command(ctx, b.Target, "tabs_create_mcp", map[string]any{})
	tab := 0
	if err == nil {
		tab, err = createdTab(made.Text())
	}
	if !note("tab_is_opened", err, "a tab was opened in the extension's group", again) {
		return
	}
	if b.Has("tab_close") {
		defer func() {
			_, _ = n.Command(context.WithoutCancel(ctx), b.Target, "tab_close", map[string]any{"tabId": tab}) // what was found out is told already
		}()
	}
	res, err := n.Command(ctx, b.Target, "javascript_tool", map[string]any{"tabId": tab, "text": "6*7"})
	if err == nil && strings.TrimSpace(res.Text()) != "42" {
		err = fault.New(fault.InternalError, "6*7 gave another value")
	}
	note("script_runs", err, "a script ran in the tab", again)
	shot, err := n.Command(ctx, b.Target, "computer", map[string]any{"tabId": tab, "action": "screenshot"})
	if err == nil {
		if data, _ := shot.Picture(); data == "" {
			err = fault.New(fault.InternalError, "no picture came")
		}
	}
	note("screenshot_is_taken", err, "a picture of the tab was taken", again)
}

// createdTab reads the id of the tab that tabs_create_mcp made.
func createdTab(said string) (int, error) {
	_, rest, ok := strings.Cut(said, "Tab ID: ")
	word, _, _ := strings.Cut(rest, "\n")
	id, err := strconv.Atoi(strings.TrimSpace(word))
	if !ok || err != nil {
		return 0, fault.New(fault.InternalError, "the extension told no tab id")
	}
	return id, nil
}
