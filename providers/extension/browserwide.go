package extension

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/droverhq/drover/proto/fault"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// browser answers a command that is meant for the browser at large.
func (r *relay) browser(ctx context.Context, m message) {
	var p struct {
		URL        string `json:"url"`
		Background bool   `json:"background"`
		TargetID   string `json:"targetId"`
		SessionID  string `json:"sessionId"`
	}
	if len(m.Params) > 0 {
		_ = json.Unmarshal(m.Params, &p) // what cannot be read is left out, and then refused below
	}
	switch m.Method {
	case "Browser.getVersion":
		r.answer(m, map[string]any{"protocolVersion": "1.3", "product": "Chromium", "revision": "", "userAgent": "", "jsVersion": ""}, nil)
	case "Target.setAutoAttach", "Target.setDiscoverTargets", "Browser.setDownloadBehavior", "Runtime.runIfWaitingForDebugger":
		r.answer(m, nil, nil)
	case "Target.getBrowserContexts":
		r.answer(m, map[string]any{"browserContextIds": []string{}}, nil)
	case "Target.createTarget":
		r.call(ctx, "tab_open", map[string]any{"url": p.URL, "active": !p.Background}, func(res *bridge.Result, err error) {
			var o opened
			if err == nil {
				err = json.Unmarshal(res.Value, &o)
			}
			if err != nil {
				r.answer(m, nil, err)
				return
			}
			t := r.take(o, "")
			r.answer(m, map[string]any{"targetId": t.target}, nil)
		})
	case "Target.closeTarget":
		t := r.byTarget(p.TargetID)
		if t == nil {
			r.answer(m, nil, errors.New("No target with given id found")) //nolint:staticcheck // the browser's own words, which callers look for
			return
		}
		r.call(ctx, "tab_close", map[string]any{"tabId": t.id}, func(_ *bridge.Result, err error) {
			r.answer(m, map[string]any{"success": err == nil}, err)
		})
	case "Target.detachFromTarget":
		r.detach(ctx, m, p.SessionID)
	case "Target.getTargets":
		r.list(ctx, m)
	case "Storage.getCookies", "Storage.setCookies", "Storage.clearCookies":
		r.cookies(ctx, m)
	default:
		r.push(message{ID: m.ID, Error: &failure{Code: codeNoMethod, Message: m.Method + " is out of reach through the extension"}})
	}
}

// detach lets go of a frame's session.
func (r *relay) detach(ctx context.Context, m message, session string) {
	r.mu.Lock()
	id, ok := r.frames[session]
	r.mu.Unlock()
	if !ok {
		r.answer(m, nil, nil)
		return
	}
	args := map[string]any{"tabId": id, "method": m.Method, "params": m.Params}
	r.call(ctx, "devtools", args, func(_ *bridge.Result, err error) { r.answer(m, nil, err) })
}

// download tells of a download in the words of the browser's domain. Where a finished one lies only the browser's list of
// downloads tells.
func (r *relay) download(method string, params json.RawMessage) {
	var p map[string]any
	if json.Unmarshal(params, &p) != nil {
		return
	}
	guid, _ := p["guid"].(string)
	if url, ok := p["url"].(string); ok {
		r.mu.Lock()
		r.loads[guid] = url
		r.mu.Unlock()
	}
	out := func() { r.event("", "Browser."+strings.TrimPrefix(method, "Page."), p) }
	r.mu.Lock()
	url := r.loads[guid]
	r.mu.Unlock()
	if p["state"] != "completed" {
		out()
		return
	}
	_, err := r.node.Start(r.target, "downloads", map[string]any{"limit": 50}, func(res *bridge.Result, err error) {
		var list []struct {
			URL      string `json:"url"`
			Filename string `json:"filename"`
		}
		if err == nil && json.Unmarshal(res.Value, &list) == nil {
			for _, d := range list {
				if d.URL == url && d.Filename != "" {
					p["filePath"] = d.Filename
					break
				}
			}
		}
		out()
	})
	if err != nil {
		out()
	}
}

// list tells the session's tabs with their titles.
func (r *relay) list(ctx context.Context, m message) {
	r.call(ctx, "tab_list", nil, func(res *bridge.Result, err error) {
		var list []struct {
			TabID int    `json:"tabId"`
			URL   string `json:"url"`
			Title string `json:"title"`
		}
		if err == nil {
			err = json.Unmarshal(res.Value, &list)
		}
		if err != nil {
			r.answer(m, nil, err)
			return
		}
		infos := []map[string]any{}
		r.mu.Lock()
		for _, l := range list {
			if t := r.tabs[l.TabID]; t != nil {
				infos = append(infos, map[string]any{"targetId": t.target, "type": "page", "title": l.Title, "url": l.URL, "attached": true, "canAccessOpener": false})
			}
		}
		r.mu.Unlock()
		r.answer(m, map[string]any{"targetInfos": infos}, nil)
	})
}

// cookies serves the cookies that the session's own pages have, and no others: the rest of the person's are none of its
// business, not to read and not to clear.
func (r *relay) cookies(ctx context.Context, m message) {
	r.mu.Lock()
	var tabs []int
	for id := range r.tabs {
		tabs = append(tabs, id)
	}
	r.mu.Unlock()
	if len(tabs) == 0 {
		r.answer(m, nil, errors.New("the session has no page whose cookies could be reached"))
		return
	}
	if m.Method == "Storage.setCookies" {
		r.devtools(ctx, tabs[0], "Network.setCookies", m.Params, func(_ json.RawMessage, err error) { r.answer(m, nil, err) })
		return
	}
	r.gather(ctx, tabs, nil, func(all []json.RawMessage, err error) {
		if err != nil || m.Method == "Storage.getCookies" {
			r.answer(m, map[string]any{"cookies": orEmpty(all)}, err)
			return
		}
		for _, c := range all {
			var one struct {
				Name   string `json:"name"`
				Domain string `json:"domain"`
				Path   string `json:"path"`
			}
			if json.Unmarshal(c, &one) == nil {
				params, _ := json.Marshal(one)
				r.later(tabs[0], "Network.deleteCookies", params)
			}
		}
		// Commands are carried out in order, so this one is answered when the cookies are gone.
		_, err = r.node.Start(r.target, "devtools", map[string]any{"tabId": tabs[0], "method": "Runtime.getIsolateId"}, func(*bridge.Result, error) { r.answer(m, nil, nil) })
		if err != nil {
			r.answer(m, nil, err)
		}
	})
}

func orEmpty(list []json.RawMessage) []json.RawMessage {
	if list == nil {
		return []json.RawMessage{}
	}
	return list
}

// gather collects the cookies of tabs, one after the other, each once.
func (r *relay) gather(ctx context.Context, tabs []int, have []json.RawMessage, then func([]json.RawMessage, error)) {
	if len(tabs) == 0 {
		then(have, nil)
		return
	}
	collect := func(res json.RawMessage, err error) { //nolint:contextcheck // it goes on when its caller may be gone
		var got struct {
			Cookies []json.RawMessage `json:"cookies"`
		}
		if err == nil {
			err = json.Unmarshal(res, &got)
		}
		if err != nil {
			then(nil, err)
			return
		}
		seen := map[string]bool{}
		for _, c := range have {
			seen[string(c)] = true
		}
		for _, c := range got.Cookies {
			if !seen[string(c)] {
				have = append(have, c)
			}
		}
		r.gatherNext(tabs[1:], have, then)
	}
	r.devtools(ctx, tabs[0], "Network.getCookies", nil, collect)
}

// gatherNext goes on from a result, where nothing may block.
func (r *relay) gatherNext(tabs []int, have []json.RawMessage, then func([]json.RawMessage, error)) {
	if len(tabs) == 0 {
		then(have, nil)
		return
	}
	r.wg.Go(func() { r.gather(context.Background(), tabs, have, then) })
}

func (r *relay) devtools(ctx context.Context, tab int, method string, params json.RawMessage, then func(json.RawMessage, error)) {
	args := map[string]any{"tabId": tab, "method": method}
	if len(params) > 0 {
		args["params"] = params
	}
	r.call(ctx, "devtools", args, func(res *bridge.Result, err error) {
		if err != nil {
			then(nil, err)
			return
		}
		then(res.Value, nil)
	})
}

// later sends a command whose answer nobody waits for.
func (r *relay) later(tab int, method string, params json.RawMessage) {
	_, _ = r.node.Start(r.target, "devtools", map[string]any{"tabId": tab, "method": method, "params": params}, func(*bridge.Result, error) {})
}

// failureOfBridge gives a fault of the bridge a code that explain knows again.
func failureOfBridge(err error) *failure {
	f := fault.From(err)
	code := int64(codeServer)
	switch {
	case fault.ReasonOf(err) == "capacity":
		code = codeCapacity
	case fault.ReasonOf(err) == "browser_disconnected" && f.Retryable:
		code = codeDisconnected
	case fault.ReasonOf(err) == "browser_disconnected":
		code = codeLost
	}
	return &failure{Code: code, Message: f.Message}
}

// explain gives the fault that an error of the relay stands for.
func explain(code int64, said string) *fault.Error {
	switch code {
	case codeDisconnected:
		return fault.New(fault.NotReady, "%s", said).Reason("browser_disconnected").Retry("same").
			Hint("see that the browser runs and that the extension's popup says Connected")
	case codeLost:
		return fault.New(fault.NotReady, "%s", said).Reason("browser_disconnected").
			Hint("the command may have been carried out; look at the page before you send it again")
	case codeCapacity:
		return fault.New(fault.NotReady, "%s", said).Reason("capacity").RetryAfter(1000)
	case codeNoMethod:
		return fault.New(fault.UnsupportedMethod, "%s", said).Reason("out_of_reach")
	}
	return nil
}
