package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func (j *jcode) waitFor(ctx context.Context, p object) (any, error) {
	params, what := object{}, wordOf(p["selector"])
	words := wordOf(p["text"]) + wordOf(p["contains"])
	switch {
	case strings.HasPrefix(what, "@"):
		params["element_ref_present"] = what
	case what != "":
		params["selector_present"] = what
	default:
		params["text_present"], what = words, words
	}
	ms, ok := whole(p["timeout"])
	if !ok || ms <= 0 {
		ms = 5000
	}
	params["timeout_ms"] = json.Number(strconv.FormatInt(ms, 10))
	r, err := onPage[*browserv1.WaitResponse](ctx, j, "page.wait", p, params)
	if err == nil && !r.GetSatisfied() {
		err = fault.New(fault.NotReady, "Timeout waiting for: %s", what).Reason("deadline_exceeded")
	}
	return object{"found": r.GetSatisfied(), "selector": p["selector"]}, err
}

func (j *jcode) screenshot(ctx context.Context, p object) (any, error) {
	r, err := onPage[*browserv1.ScreenshotResponse](ctx, j, "page.screenshot", p, object{})
	if err != nil {
		return nil, err
	}
	tab, err := j.tabOf(ctx, r.GetPageId())
	if err != nil {
		return nil, err
	}
	if len(r.GetImage()) == 0 {
		return nil, fault.New(fault.NotReady, "the picture is too large for jcode").Reason("payload_too_large")
	}
	name := wordOf(p["filename"])
	if name == "" {
		return object{"tabId": tab, "dataUrl": "data:" + r.GetMediaType() + ";base64," + base64.StdEncoding.EncodeToString(r.GetImage())}, nil
	}
	if err := os.WriteFile(name, r.GetImage(), 0o600); err != nil {
		return nil, fmt.Errorf("writing the picture: %w", err)
	}
	return object{"saved": name, "tabId": tab}, nil
}

// evaluate runs the body of a function. Where the browser has no world apart for it, the page's own is used.
func (j *jcode) evaluate(ctx context.Context, p object) (any, error) {
	params := object{"expression": "(() => {" + wordOf(p["script"]) + "\n})()"}
	if !yesOf(p["pageWorld"], false) {
		params["world"] = "isolated"
	}
	r, err := onPage[*browserv1.EvalResponse](ctx, j, "page.eval", p, params)
	if fault.ReasonOf(err) == "world_unavailable" {
		delete(params, "world")
		r, err = onPage[*browserv1.EvalResponse](ctx, j, "page.eval", p, params)
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "Evaluate error: %s", plainly(err)).Cause(err)
	}
	out := object{"type": r.GetType(), "result": r.GetValue().AsInterface()}
	if r.Unserializable != nil && r.GetType() != "undefined" {
		out["result"] = r.GetUnserializable()
	}
	return out, nil
}

func (j *jcode) scroll(ctx context.Context, p object) (any, error) {
	params, kind := object{}, "by"
	switch {
	case wordOf(p["selector"]) != "":
		kind, params["to"] = "element", "into_view"
		if err := j.target(ctx, object{"selector": p["selector"], "frameId": p["frameId"], "tabId": p["tabId"]}, params); err != nil {
			return nil, err
		}
	case wordOf(p["position"]) != "":
		kind, params["to"] = "position", p["position"]
	case p["scrollTo"] != nil:
		to, _ := p["scrollTo"].(object)
		expression := "(x, y) => { scrollTo(x, y); return [scrollX, scrollY] }"
		r, err := onPage[*browserv1.EvalResponse](ctx, j, "page.eval", p, object{"expression": expression, "args": []any{to["x"], to["y"]}})
		at := r.GetValue().GetListValue().GetValues()
		if err != nil || len(at) != 2 {
			return nil, err
		}
		return object{"scrolled": true, "type": "absolute", "scrollX": at[0].GetNumberValue(), "scrollY": at[1].GetNumberValue()}, nil
	default:
		params["dx"], params["dy"] = numeric(p["x"]), numeric(p["y"])
	}
	r, err := onPage[*browserv1.ScrollResponse](ctx, j, "page.scroll", p, params)
	return object{"scrolled": true, "type": kind, "scrollX": r.GetScrollX(), "scrollY": r.GetScrollY()}, err
}

func numeric(v any) any {
	if v == nil {
		return json.Number("0")
	}
	return v
}

func (j *jcode) upload(ctx context.Context, p object) (any, error) {
	path := wordOf(p["filePath"])
	if path == "" {
		path = wordOf(p["path"])
	}
	params := object{"paths": []any{path}}
	if err := j.target(ctx, p, params); err != nil {
		return nil, err
	}
	if _, err := j.app.stage(ctx, params); err != nil {
		return nil, err
	}
	r, err := onPage[*browserv1.SetFilesResponse](ctx, j, "upload.set_files", p, params)
	return object{"uploaded": err == nil, "count": len(r.GetFiles()), "files": []string{path}, "inputSelector": p["selector"]}, err
}

func tabInfo(t *browserv1.Tab, i int) object {
	return object{"tabId": tabNumber(t.GetTabId()), "url": t.GetUrl(), "title": t.GetTitle(), "active": t.GetActive(), "index": i}
}

func (j *jcode) listTabs(ctx context.Context, _ object) (any, error) {
	list, err := j.tabs(ctx)
	all, active := []object{}, int64(0)
	for i, t := range list {
		all = append(all, tabInfo(t, i))
		if t.GetActive() {
			active = tabNumber(t.GetTabId())
		}
	}
	return object{"activeTabId": active, "windows": []object{{"windowId": 1, "focused": true, "tabs": all}}, "totalTabs": len(all)}, err
}

func (j *jcode) activeTab(ctx context.Context, _ object) (any, error) {
	list, err := j.tabs(ctx)
	for i, t := range list {
		if t.GetActive() {
			out := tabInfo(t, i)
			out["windowId"] = 1
			return out, nil
		}
	}
	if err == nil {
		err = fault.New(fault.PageNotFound, "the session has no tab")
	}
	return nil, err
}

func (j *jcode) activate(ctx context.Context, p object) (any, error) {
	id, ok := whole(p["tabId"])
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "Missing tabId parameter").Field("tabId")
	}
	t, err := j.tab(ctx, id)
	if err != nil {
		return nil, err
	}
	_, err = onPage[*browserv1.ActivateTabResponse](ctx, j, "tab.activate", nil, object{"tab_id": t.GetTabId(), "foreground": yesOf(p["focus"], false)})
	return tabInfo(t, 0), err
}

func (j *jcode) listFrames(ctx context.Context, p object) (any, error) {
	inner, err := j.frames(ctx, p)
	if err != nil {
		return nil, err
	}
	active, err := j.activeTab(ctx, nil)
	if err != nil {
		return nil, err
	}
	top, _ := active.(object)
	frames := []object{{"frameId": 0, "parentFrameId": -1, "url": top["url"], "title": top["title"], "hasContent": true}}
	for i, n := range inner {
		frames = append(frames, object{"frameId": i + 1, "parentFrameId": 0, "url": "", "title": n.GetName(), "hasContent": len(n.GetChildren()) > 0})
	}
	return object{"tabId": top["tabId"], "frames": frames}, nil
}

func (j *jcode) downloads(ctx context.Context, _ object) (any, error) {
	r, err := onPage[*browserv1.ListDownloadsResponse](ctx, j, "download.list", nil, object{})
	list := []object{}
	for _, d := range r.GetDownloads() {
		list = append(list, object{"filename": d.GetPath(), "url": d.GetUrl(), "state": strings.ToLower(strings.TrimPrefix(d.GetState().String(), "DOWNLOAD_STATE_"))})
	}
	return object{"downloads": list}, err
}

func (j *jcode) batch(ctx context.Context, p object) (any, error) {
	commands, ok := p["commands"].([]any)
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "batch requires commands array").Field("commands")
	}
	results, done := []object{}, 0
	for i, c := range commands {
		one, _ := c.(object)
		params, _ := one["params"].(object)
		if params == nil {
			params = object{}
		}
		entry := object{"index": i, "action": one["action"], "ok": true}
		result, err := j.do(ctx, wordOf(one["action"]), params)
		if err != nil {
			entry["ok"], entry["error"] = false, plainly(err)
		} else {
			entry["result"] = result
			done++
		}
		results = append(results, entry)
		if err != nil && yesOf(p["stopOnError"], true) {
			break
		}
	}
	return object{"batch": true, "results": results, "completed": done, "total": len(commands)}, nil
}
