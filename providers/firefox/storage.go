package firefox

import (
	"context"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// stored is what a page's web storage holds, or why it cannot be had.
type stored struct {
	Items   [][2]string `json:"items"`
	Error   string      `json:"error"`
	Message string      `json:"message"`
}

// web works on the page's web storage in its lane and gives the items.
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
	got, err := inDocument[stored](ctx, pg, topFrame, "doc.storage", args)
	if err != nil {
		return nil, pg.explain(ctx, err)
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

// word gives the protocol's word of an enum's name.
func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }

// getStorage is storage.get.
func (p *Provider) getStorage(ctx context.Context, r *browserv1.GetStorageRequest) (*browserv1.GetStorageResponse, error) {
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"keys": list(r.GetKeys())})
	return &browserv1.GetStorageResponse{Items: items}, err
}

// setStorage is storage.set.
func (p *Provider) setStorage(ctx context.Context, r *browserv1.SetStorageRequest) (*browserv1.SetStorageResponse, error) {
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"put": r.GetItems(), "keys": sortedKeys(r.GetItems())})
	return &browserv1.SetStorageResponse{Items: items}, err
}

// clearStorage is storage.clear.
func (p *Provider) clearStorage(ctx context.Context, r *browserv1.ClearStorageRequest) (*browserv1.ClearStorageResponse, error) {
	items, err := p.web(ctx, r.GetSessionId(), r.GetPageId(), r.GetArea(), map[string]any{"drop": list(r.GetKeys()), "all": len(r.GetKeys()) == 0})
	return &browserv1.ClearStorageResponse{Items: items}, err
}

func list(keys []string) []string {
	if keys == nil {
		return []string{}
	}
	return keys
}
