package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// jcode does the actions of jcode's browser program on one session.
type jcode struct {
	app     *app
	link    *link
	session string
}

func (j *jcode) close() {
	if j.link != nil {
		j.link.close()
	}
}

// object is an action's params or result.
type object = map[string]any

// jcodeActions gives the actions, by the names that jcode has for them.
func jcodeActions() map[string]func(*jcode, context.Context, object) (any, error) {
	return map[string]func(*jcode, context.Context, object) (any, error){
		"ping": (*jcode).ping, "navigate": (*jcode).navigate, "newSession": (*jcode).newSession, "newWindow": (*jcode).newSession,
		"getContent": (*jcode).content, "getInteractables": (*jcode).interactables, "click": (*jcode).click, "type": (*jcode).write,
		"fillForm": (*jcode).fillForm, "waitFor": (*jcode).waitFor, "screenshot": (*jcode).screenshot, "evaluate": (*jcode).evaluate,
		"scroll": (*jcode).scroll, "uploadFile": (*jcode).upload, "listTabs": (*jcode).listTabs, "getActiveTab": (*jcode).activeTab,
		"setActiveTab": (*jcode).activate, "switchTab": (*jcode).activate, "listFrames": (*jcode).listFrames,
		"listDownloads": (*jcode).downloads, "batch": (*jcode).batch,
	}
}

func (j *jcode) do(ctx context.Context, action string, p object) (any, error) {
	fn, ok := jcodeActions()[action]
	if !ok {
		return nil, fault.New(fault.UnsupportedMethod, "Unknown action: %s", action)
	}
	if j.link == nil {
		l, err := j.app.connect(ctx)
		if err != nil {
			return nil, err
		}
		j.link = l
	}
	return fn(j, ctx, p)
}

// onPage calls a method on the session, which it ensures first, on the tab that the params name.
func onPage[T interface {
	*M
	proto.Message
}, M any](ctx context.Context, j *jcode, method string, p, params object) (T, error) {
	if j.session == "" {
		s, err := call[*browserv1.EnsureSessionResponse](ctx, j.link, "session.ensure", j.app.ensureParams())
		if err != nil {
			return nil, err
		}
		j.session = s.GetSessionId()
	}
	params["session_id"] = j.session
	if id, ok := whole(p["tabId"]); ok && strings.HasPrefix(method, "page.") {
		t, err := j.tab(ctx, id)
		if err != nil {
			return nil, err
		}
		params["page_id"] = t.GetPageId()
	}
	return call[T](ctx, j.link, method, params)
}

// whole reads a whole number, also one that stands in quotes.
func whole(v any) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(fmt.Sprint(v)), 10, 64)
	return n, err == nil
}

func wordOf(v any) string { s, _ := v.(string); return s }
func yesOf(v any, otherwise bool) bool {
	if b, ok := v.(bool); ok {
		return b
	}
	return otherwise
}

// tabNumber gives a tab a number, as jcode wants one: that in its id, or one made of it.
func tabNumber(id string) int64 {
	if n, ok := whole(strings.TrimLeft(id, "abcdefghijklmnopqrstuvwxyz-_")); ok {
		return n
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // It never fails.
	return int64(h.Sum32())
}

func (j *jcode) tabs(ctx context.Context) ([]*browserv1.Tab, error) {
	r, err := onPage[*browserv1.ListTabsResponse](ctx, j, "tab.list", nil, object{})
	return r.GetTabs(), err
}

func (j *jcode) tab(ctx context.Context, id int64) (*browserv1.Tab, error) {
	list, err := j.tabs(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if tabNumber(t.GetTabId()) == id {
			return t, nil
		}
	}
	return nil, fault.New(fault.PageNotFound, "there is no tab %d in this session", id).Hint("list the tabs for those there are")
}

// tabOf gives the number of a page's tab.
func (j *jcode) tabOf(ctx context.Context, page string) (int64, error) {
	list, err := j.tabs(ctx)
	for _, t := range list {
		if t.GetPageId() == page || page == "" && t.GetActive() {
			return tabNumber(t.GetTabId()), nil
		}
	}
	return 0, err
}

// target reads what an action acts on: a selector, a ref with its @, a text or a place; frameId names a frame of listFrames.
func (j *jcode) target(ctx context.Context, p, params object) error {
	selector := wordOf(p["selector"])
	switch {
	case strings.HasPrefix(selector, "@"):
		params["element_ref"] = selector
		return nil
	case selector != "":
		params["selector"] = selector
	case wordOf(p["text"]) != "":
		params["text_query"] = p["text"]
	case p["x"] != nil && p["y"] != nil:
		params["position"] = object{"x": p["x"], "y": p["y"]}
		return nil
	}
	if n, ok := whole(p["frameId"]); ok && n > 0 {
		frames, err := j.frames(ctx, p)
		if err != nil {
			return err
		}
		if n > int64(len(frames)) {
			return fault.New(fault.ElementNotFound, "there is no frame %d", n)
		}
		params["frame_ref"] = frames[n-1].GetElementRef()
	}
	return nil
}

func (j *jcode) frames(ctx context.Context, p object) (out []*browserv1.Node, err error) {
	s, err := onPage[*browserv1.SnapshotResponse](ctx, j, "page.snapshot", p, object{"include_text": false, "max_nodes": 0})
	for _, n := range s.GetSnapshot().GetNodes() {
		if n.GetRole() == "iframe" && n.ElementRef != nil {
			out = append(out, n)
		}
	}
	return out, err
}
