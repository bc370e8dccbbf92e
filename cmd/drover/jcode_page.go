package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func (j *jcode) ping(ctx context.Context, _ object) (any, error) {
	st, err := call[*browserv1.StatusResponse](ctx, j.link, "provider.status", object{})
	if err == nil && st.GetAvailability() == browserv1.Availability_AVAILABILITY_UNAVAILABLE {
		err = fault.New(fault.SetupRequired, "no browser is ready").With("manual_steps", st.GetManualSteps())
	}
	return object{"pong": true, "time": time.Now().UnixMilli(), "transport": "drover", "version": programVersion()}, err
}

func (j *jcode) navigate(ctx context.Context, p object) (any, error) {
	if wordOf(p["url"]) == "" {
		return nil, fault.New(fault.InvalidRequest, "Missing url parameter").Field("url")
	}
	params := object{"url": p["url"], "new_page": yesOf(p["newTab"], false)}
	if !yesOf(p["wait"], true) {
		params["wait_until"] = "domcontentloaded"
	}
	if ms, ok := whole(p["timeoutMs"]); ok && ms > 0 {
		params["timeout_ms"] = json.Number(strconv.FormatInt(ms, 10))
	}
	r, err := onPage[*browserv1.OpenResponse](ctx, j, "page.open", p, params)
	if err != nil {
		return nil, err
	}
	out := object{"windowId": 1, "url": r.GetUrl(), "title": r.GetTitle()}
	if out["tabId"], err = j.tabOf(ctx, r.GetPageId()); err != nil {
		return nil, err
	}
	if yesOf(p["returnContent"], true) {
		c, err := j.content(ctx, object{"tabId": out["tabId"], "format": "annotated"})
		if err != nil {
			out["contentError"] = plainly(err)
		} else if c, ok := c.(object); ok {
			out["content"] = c["content"]
		}
	}
	return out, nil
}

func (j *jcode) newSession(ctx context.Context, p object) (any, error) {
	own := maps.Clone(p)
	own["newTab"] = true
	if wordOf(own["url"]) == "" {
		own["url"], own["returnContent"] = "about:blank", false
	}
	delete(own, "tabId")
	out, err := j.navigate(ctx, own)
	if o, ok := out.(object); ok {
		o["sandbox"] = false
	}
	return out, err
}

// annotated writes what can be acted on in the form that jcode's models know.
func annotated(s *browserv1.SnapshotResponse) string {
	var b strings.Builder
	b.WriteString(s.GetText())
	for _, e := range s.GetElements() {
		kind := e.GetRole()
		if kind == "textbox" || kind == "searchbox" || kind == "checkbox" || kind == "radio" {
			kind = "input:" + kind
		}
		fmt.Fprintf(&b, "\n[%s: %q", kind, e.GetName())
		if e.Value != nil {
			fmt.Fprintf(&b, " | value: %q", e.GetValue())
		}
		if e.Checked != nil {
			fmt.Fprintf(&b, " | checked: %t", e.GetChecked() == browserv1.Tristate_TRISTATE_TRUE)
		}
		fmt.Fprintf(&b, " | selector: @%s]", e.GetElementRef())
	}
	return strings.TrimSpace(b.String())
}

func (j *jcode) content(ctx context.Context, p object) (any, error) {
	format := wordOf(p["format"])
	s, err := onPage[*browserv1.SnapshotResponse](ctx, j, "page.snapshot", p, object{"include_html": format == "html"})
	if err != nil {
		return nil, err
	}
	out := object{"url": s.GetUrl(), "title": s.GetTitle()}
	switch format {
	case "annotated":
		out["content"] = annotated(s)
	case "html":
		out["html"] = s.GetProviderData().GetFields()["html"].GetStringValue()
	case "title":
	default:
		out["text"] = s.GetText()
	}
	return out, nil
}

func (j *jcode) interactables(ctx context.Context, p object) (any, error) {
	s, err := onPage[*browserv1.SnapshotResponse](ctx, j, "page.snapshot", p, object{"include_text": false})
	if err != nil {
		return nil, err
	}
	list := []object{}
	for _, e := range s.GetElements() {
		kind := "clickable"
		switch e.GetRole() {
		case "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "spinbutton", "slider":
			kind = "input"
		}
		list = append(list, object{"type": kind, "tag": e.GetRole(), "text": e.GetName(), "selector": "@" + e.GetElementRef()})
	}
	return object{"url": s.GetUrl(), "title": s.GetTitle(), "elements": list}, nil
}

func (j *jcode) click(ctx context.Context, p object) (any, error) {
	params := object{}
	if err := j.target(ctx, p, params); err != nil {
		return nil, err
	}
	r, err := onPage[*browserv1.ClickResponse](ctx, j, "page.click", p, params)
	return object{"clicked": r.GetClicked(), "navigated": r.GetNavigationOccurred(), "url": r.GetUrl()}, err
}

func (j *jcode) write(ctx context.Context, p object) (any, error) {
	words, ok := p["text"].(string)
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "Missing text parameter").Field("text")
	}
	params := object{"text": words, "replace": yesOf(p["clear"], true) && !yesOf(p["append"], false), "submit": yesOf(p["submit"], false)}
	at := maps.Clone(p)
	delete(at, "text")
	if err := j.target(ctx, at, params); err != nil {
		return nil, err
	}
	r, err := onPage[*browserv1.TypeResponse](ctx, j, "page.type", p, params)
	return object{"typed": r.GetTyped(), "length": len([]rune(words))}, err
}

func (j *jcode) fillForm(ctx context.Context, p object) (any, error) {
	fields, ok := p["fields"].([]any)
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "Missing fields array").Field("fields")
	}
	results, good := []object{}, 0
	for _, f := range fields {
		field, _ := f.(object)
		one := object{"selector": field["selector"], "ok": true}
		if err := j.fill(ctx, p, field); err != nil {
			one["ok"], one["error"] = false, plainly(err)
		} else {
			good++
		}
		results = append(results, one)
	}
	return object{"filled": good == len(fields), "results": results, "success": good, "total": len(fields)}, nil
}

// fill fills one field: typed, chosen, checked or given a file, whichever it takes.
func (j *jcode) fill(ctx context.Context, p, field object) error {
	own := maps.Clone(field)
	own["tabId"], own["frameId"] = p["tabId"], p["frameId"]
	params := object{}
	if err := j.target(ctx, own, params); err != nil {
		return err
	}
	with := func(more object) object { out := maps.Clone(params); maps.Copy(out, more); return out }
	if file := wordOf(field["filePath"]) + wordOf(field["file"]); file != "" {
		own["filePath"] = file
		_, err := j.upload(ctx, own)
		return err
	}
	value := fmt.Sprint(field["value"])
	if want, ok := field["checked"].(bool); ok {
		s, err := onPage[*browserv1.EvalResponse](ctx, j, "page.eval", own, object{"expression": "s => document.querySelector(s).checked", "args": []any{wordOf(field["selector"])}})
		if err != nil || s.GetValue().GetBoolValue() == want {
			return err
		}
		_, err = onPage[*browserv1.ClickResponse](ctx, j, "page.click", own, params)
		return err
	}
	_, err := onPage[*browserv1.TypeResponse](ctx, j, "page.type", own, with(object{"text": value, "replace": true}))
	if fault.CodeOf(err) != fault.UnsupportedTarget {
		return err
	}
	if _, err = onPage[*browserv1.SelectResponse](ctx, j, "page.select", own, with(object{"values": []string{value}})); err != nil {
		_, err = onPage[*browserv1.SelectResponse](ctx, j, "page.select", own, with(object{"labels": []string{value}}))
	}
	return err
}
