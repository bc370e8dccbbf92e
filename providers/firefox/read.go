package firefox

import (
	"context"
	"strings"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// snapshot is page.snapshot.
func (p *Provider) snapshot(ctx context.Context, r *browserv1.SnapshotRequest) (*browserv1.SnapshotResponse, error) {
	s, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, leave, err := pg.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	resp, err := pg.driver.Snapshot(ctx, r)
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp.PageId = pg.id
	if r.GetIncludeScreenshot() {
		pic, err := pg.capture(ctx, &browserv1.ScreenshotRequest{})
		if err != nil {
			return nil, pg.explain(ctx, err)
		}
		if resp.ScreenshotRef, err = s.storePicture(pic); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// wait is page.wait. It waits for no lane, and a page that is closed or crashes ends it.
func (p *Provider) wait(ctx context.Context, r *browserv1.WaitRequest) (*browserv1.WaitResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	ctx, done, err := pg.watch(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	w, err := pg.driver.Wait(ctx, r, pg.still)
	if err != nil {
		return nil, pg.explain(ctx, err)
	}
	resp := &browserv1.WaitResponse{Satisfied: w.Satisfied, Url: w.URL}
	if w.Satisfied {
		resp.MatchedCondition = strings.Join(w.Met, ",")
	}
	if resp.Url == "" {
		resp.Url = pg.place().url
	}
	return resp, nil
}

// still says whether the page is loaded and no navigation is under way.
func (p *page) still() bool {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return !p.movingLocked() && p.loaded
}
