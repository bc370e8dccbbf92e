package bidi

import (
	"context"
	"encoding/json"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// storageScript works on the web storage of the document's origin, from the engine's world, which shares it.
const storageScript = `(({area, put, drop, all, keys}) => {
	try {
		const store = area === 'local' ? localStorage : sessionStorage;
		for (const [k, v] of put ?? []) store.setItem(k, v);
		if (all) store.clear();
		for (const k of drop ?? []) store.removeItem(k);
		const items = [];
		for (const k of keys?.length ? keys : Object.keys(store)) { const v = store.getItem(k); if (v !== null) items.push([k, v]); }
		return JSON.stringify({items});
	} catch (e) {
		return JSON.stringify({error: e.name, message: String(e.message)});
	}
})`

// web runs storageScript in the page's lane and gives the items.
func (p *Provider) web(ctx context.Context, session, id string, area browserv1.StorageArea, args map[string]any) (map[string]string, error) {
	_, pg, err := p.find(session, id)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	args["area"] = word(area.String(), "STORAGE_AREA_")
	data, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	text, err := pg.Eval(ctx, pg.frameID(), storageScript+"("+string(data)+")")
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	var got struct {
		Items          [][2]string
		Error, Message string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return nil, err
	}
	switch got.Error {
	case "":
	case "QuotaExceededError":
		return nil, fault.New(fault.InvalidRequest, "the origin's storage is full").Reason("quota_exceeded").Field("items")
	default:
		return nil, fault.New(fault.UnsupportedTarget, "the page has no web storage: %s", got.Message).Reason("no_storage").
			Hint("open a page with an http or https address first")
	}
	clean := make(map[string]string, len(got.Items))
	for _, item := range got.Items {
		clean[strings.ToValidUTF8(item[0], "\ufffd")] = strings.ToValidUTF8(item[1], "\ufffd")
	}
	return clean, nil
}

// getStorage is storage.get.
func (p *Provider) getStorage(ctx context.Context, r *browserv1.GetStorageRequest) (*browserv1.GetStorageResponse, error) {
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"keys": r.GetKeys()})
	return &browserv1.GetStorageResponse{Items: items}, err
}

// setStorage is storage.set.
func (p *Provider) setStorage(ctx context.Context, r *browserv1.SetStorageRequest) (*browserv1.SetStorageResponse, error) {
	keys := make([]string, 0, len(r.GetItems()))
	pairs := make([][2]string, 0, len(r.GetItems()))
	for k, v := range r.GetItems() {
		keys = append(keys, k)
		pairs = append(pairs, [2]string{k, v})
	}
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"put": pairs, "keys": keys})
	return &browserv1.SetStorageResponse{Items: items}, err
}

// clearStorage is storage.clear.
func (p *Provider) clearStorage(ctx context.Context, r *browserv1.ClearStorageRequest) (*browserv1.ClearStorageResponse, error) {
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"drop": r.GetKeys(), "all": len(r.GetKeys()) == 0})
	return &browserv1.ClearStorageResponse{Items: items}, err
}
