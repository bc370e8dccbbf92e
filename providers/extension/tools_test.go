package extension

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/providers/extension/bridge"
)

const toolsPage = `<!doctype html><html lang="en"><title>Tools</title><body style="margin:0">
<main><h1>Every tool</h1><label>Name <input id="name"></label><label>Secret <input type="password" value="hush-hush"></label>
<label><input id="box" type="checkbox"> Accept terms</label>
<select id="s" aria-label="Choice"><option value="a">Alpha</option><option value="b">Beta</option></select>
<form id="f" onsubmit="out.textContent='submitted '+this.q.value;return false"><input name="q" aria-label="Query"></form>
<button id="go" onclick="out.textContent='clicked '+event.isTrusted">Press me</button><button disabled>Off</button>
<button onclick="alert('stop')">Alert</button><input id="file" type="file" aria-label="File">
<p id="out"></p><a href="#part">Part</a><div style="height:3000px"></div><button id="deep" onclick="out.textContent='deep'">Far down</button>
<div id="cover" style="position:relative"><button id="under">Under</button><div style="position:absolute;inset:0;background:#ccc"></div></div></main>
<script>console.log('hello log'); setTimeout(() => { throw new Error('boom') }); fetch('/missing'); fetch('http://127.0.0.1:1/').catch(() => {}); const out=document.getElementById('out')</script></body></html>`

// toolRig is one tab of a paired browser, for tools by name.
type toolRig struct {
	t      *testing.T
	n      *bridge.Node
	target string
	tab    int
}

func (r *toolRig) call(tool string, args map[string]any) (*bridge.Result, error) {
	all := map[string]any{"tabId": r.tab}
	for k, v := range args {
		all[k] = v
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	return r.n.Command(ctx, r.target, tool, all)
}

func (r *toolRig) must(tool string, args map[string]any, want string) string {
	r.t.Helper()
	res, err := r.call(tool, args)
	if err != nil {
		r.t.Errorf("%s %v: %v", tool, args, err)
		return ""
	}
	if !strings.Contains(res.Text(), want) {
		r.t.Errorf("%s %v gave %q, want %q", tool, args, res.Text(), want)
	}
	return res.Text()
}

func (r *toolRig) refused(tool string, args map[string]any, want string) {
	r.t.Helper()
	res, err := r.call(tool, args)
	if said, ok := bridge.Refused(err); !ok || !strings.Contains(said, want) {
		r.t.Errorf("%s %v: %v %v, want an error with %q", tool, args, res, err, want)
	}
}

// Every tool of the catalog, and the additions, in a real browser: what they do, and that a failure is an error.
func TestEveryTool(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(toolsPage))
	}))
	t.Cleanup(s.Close)
	at := newPlace(t)
	p := newRig(t, at, nil)
	c := startChrome(t, unpacked(t))
	c.pair(at.url(), "websocket")
	n, err := p.p.bridge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &toolRig{t: t, n: n, target: p.browsers()[0].Target}
	r.must("tabs_context_mcp", nil, "No MCP tab group exists")
	made, err := r.call("tabs_create_mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.tab, err = createdTab(made.Text()); err != nil {
		t.Fatal(err)
	}
	r.must("tabs_context_mcp", nil, fmt.Sprint(r.tab))
	r.must("navigate", map[string]any{"url": s.URL + "/"}, "Navigated to "+s.URL)
	r.must("navigate", map[string]any{"url": s.URL + "/#part"}, "same document")
	r.must("navigate", map[string]any{"url": "back"}, "Navigated")
	r.refused("navigate", map[string]any{"url": "http://127.0.0.1:1/"}, "ERR_")
	r.must("navigate", map[string]any{"url": s.URL + "/"}, "Navigated to "+s.URL)
	tree := r.must("read_page", nil, `heading "Every tool"`)
	if strings.Contains(tree, "hush-hush") {
		t.Error("a password is read")
	}
	ref := func(line string) string {
		m := regexp.MustCompile(regexp.QuoteMeta(line) + ` \[(ref_\d+)\]`).FindStringSubmatch(tree)
		if m == nil {
			t.Fatalf("no %s in\n%s", line, tree)
		}
		return m[1]
	}
	r.must("read_page", map[string]any{"filter": "interactive"}, "Press me")
	r.must("get_page_text", nil, "Every tool")
	if found := r.must("find", map[string]any{"query": "press me"}, "Press me"); !strings.HasPrefix(found, "Found 1") {
		t.Errorf("find gave %q", found)
	}
	r.must("form_input", map[string]any{"ref": ref(`textbox "Name"`), "value": "Ada"}, "Ada")
	r.must("form_input", map[string]any{"ref": ref(`combobox "Choice"`), "value": "Beta"}, `"value":"b"`)
	r.refused("form_input", map[string]any{"ref": ref(`combobox "Choice"`), "value": "Gamma"}, "no option")
	r.must("form_input", map[string]any{"ref": ref(`checkbox "Accept terms"`), "value": true}, `"checked":true`)
	r.refused("form_input", map[string]any{"ref": "ref_999999", "value": "x"}, "not on the page")
	r.must("computer", map[string]any{"action": "left_click", "ref": ref(`button "Press me"`)}, "Clicked at")
	r.must("javascript_tool", map[string]any{"text": "out.textContent"}, "clicked true")
	r.must("computer", map[string]any{"action": "left_click", "ref": ref(`button "Far down"`)}, "Clicked at")
	r.must("javascript_tool", map[string]any{"text": "out.textContent"}, "deep")
	r.refused("computer", map[string]any{"action": "left_click", "ref": ref(`button "Under"`)}, "covered")
	r.refused("computer", map[string]any{"action": "left_click", "ref": ref(`button "Off"`)}, "disabled")
	r.refused("computer", map[string]any{"action": "left_click"}, "coordinate or ref")
	r.must("computer", map[string]any{"action": "left_click", "ref": ref(`textbox "Query"`)}, "Clicked at")
	r.must("computer", map[string]any{"action": "type", "text": "Hello, Wörld"}, "Typed")
	r.must("computer", map[string]any{"action": "key", "text": "Backspace Enter"}, "Pressed 2 keys")
	r.must("javascript_tool", map[string]any{"text": "out.textContent"}, "submitted Hello, Wörl")
	r.must("computer", map[string]any{"action": "key", "text": "ctrl+a X"}, "Pressed 2 keys")
	r.must("javascript_tool", map[string]any{"text": "document.forms.f.q.value"}, `"X"`)
	r.refused("computer", map[string]any{"action": "key", "text": "bogus"}, "no key")
	for action, args := range map[string]map[string]any{
		"right_click": {"coordinate": []int{5, 5}}, "double_click": {"coordinate": []int{5, 5}}, "triple_click": {"coordinate": []int{5, 5}}, "hover": {"coordinate": []int{5, 5}},
		"scroll": {"coordinate": []int{50, 50}, "scroll_direction": "down"}, "scroll_to": {"ref": ref(`button "Far down"`)}, "wait": {"duration": 0.05},
		"left_click_drag": {"start_coordinate": []int{5, 5}, "coordinate": []int{50, 50}},
	} {
		args["action"] = action
		r.must("computer", args, "")
	}
	r.refused("computer", map[string]any{"action": "fly"}, "Unknown computer action")
	shot := r.must("computer", map[string]any{"action": "screenshot"}, "ID: screenshot_")
	zoomed, err := r.call("computer", map[string]any{"action": "zoom", "region": []int{0, 0, 100, 50}})
	if err != nil {
		t.Error(err)
	} else if data, mime := zoomed.Picture(); mime != "image/jpeg" || !strings.HasPrefix(data, "/9j/") {
		t.Errorf("zoom gave %s that begins with %.8s", mime, data)
	}
	_, image, _ := strings.Cut(shot, "ID: ")
	r.must("upload_image", map[string]any{"imageId": image, "ref": ref(`file "File"`)}, "Uploaded")
	r.must("javascript_tool", map[string]any{"text": "document.getElementById('file').files[0].type"}, "image/jpeg")
	r.refused("javascript_tool", map[string]any{"text": "throw new Error('told')"}, "told")
	r.must("read_console_messages", nil, "hello log")
	r.must("read_console_messages", map[string]any{"onlyErrors": true}, "boom")
	r.must("read_network_requests", map[string]any{"urlPattern": "missing"}, "→ 404")
	r.must("read_network_requests", map[string]any{"urlPattern": "127.0.0.1:1/"}, "failed: net::ERR")
	r.must("resize_window", map[string]any{"width": 900, "height": 700}, "Resized window to")
	r.must("update_plan", map[string]any{"domains": []string{"x"}, "approach": "one line"}, "one line")
	for _, name := range []string{"gif_creator", "shortcuts_list", "shortcuts_execute", "switch_browser"} {
		r.must(name, nil, "reserved")
	}
	r.refused("no_such_tool", nil, "Unknown tool: no_such_tool")

	r.refused("computer", map[string]any{"action": "left_click", "ref": ref(`button "Alert"`)}, "alert dialog is open")
	r.refused("read_page", nil, "alert dialog is open")
	r.must("dialog", nil, "stop")
	r.must("dialog", map[string]any{"action": "accept"}, "accepted")
	r.must("wait", map[string]any{"text": "Every tool"}, "is met")
	r.must("screenshot_full", nil, "whole page")
	r.must("tab_close", nil, "Closed")
	r.refused("read_page", nil, "not in the tab group")
}
