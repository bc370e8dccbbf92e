package bidi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// traffic is what a page requested, the latest maxRequests, guarded by its browser's mu.
type traffic struct {
	list  []*request
	now   map[string]*request // the latest hop of each that has not ended
	last  map[string]*request // the latest hop of each that was redirected
	count int
	since time.Time // when a request began or ended last
}

type request struct {
	told  *browserv1.NetworkRequest
	began stamp     // by the browser's clock
	seen  time.Time // by ours
}

const maxRequests = 2000

// onNetwork notes the traffic of a page, and the status of its documents.
func (b *browser) onNetwork(method string, e *networkEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frames[e.Context]
	if f == nil {
		return
	}
	p, t := f.page, &f.page.traffic
	t.since = time.Now()
	switch method {
	case "network.beforeRequestSent":
		t.begin(e)
	case "network.responseStarted":
		t.answer(e)
		p.noteStatusLocked(f, e)
	case "network.responseCompleted":
		t.answer(e)
		t.end(e, "")
		p.noteStatusLocked(f, e)
		if s := e.Response.Status; f.pending != "" && f.pending == e.Navigation && (s == 204 || s == 205) {
			f.pending, f.between = "", false // No document comes of it.
			p.notifyLocked()
		}
	case "network.fetchError":
		failed := e.ErrorText
		if failed == "" {
			failed = "failed"
		}
		t.end(e, failed)
	}
	if len(t.now) == 0 {
		p.notifyLocked()
	}
}

func (p *page) noteStatusLocked(f *frame, e *networkEvent) {
	if f.parent == "" && e.Navigation != "" && e.Response.Status > 0 {
		p.statuses[e.Navigation] = e.Response.Status
	}
}

func (t *traffic) begin(e *networkEvent) {
	if t.now == nil {
		t.now, t.last = map[string]*request{}, map[string]*request{}
	}
	t.count++
	r := &request{began: e.Timestamp, seen: time.Now(), told: &browserv1.NetworkRequest{
		RequestId: "r" + strconv.Itoa(t.count), Url: e.Request.URL, Method: e.Request.Method, ResourceType: e.kind(),
		StartedAt: timestamppb.New(e.Timestamp.time()),
	}}
	if before := t.last[e.Request.ID]; before != nil && e.Redirects > 0 {
		r.told.RedirectedFrom = &before.told.RequestId
	}
	if len(t.last) > maxRequests {
		clear(t.last)
	}
	t.now[e.Request.ID], t.last[e.Request.ID] = r, r
	t.list = append(t.list, r)
	if len(t.list) > maxRequests {
		t.list = slices.Delete(t.list, 0, len(t.list)-maxRequests)
	}
}

func (t *traffic) answer(e *networkEvent) {
	if r := t.now[e.Request.ID]; r != nil {
		r.told.Status, r.told.MimeType = e.Response.Status, e.Response.MimeType
	}
}

func (t *traffic) end(e *networkEvent, failed string) {
	r := t.now[e.Request.ID]
	if r == nil {
		return
	}
	r.told.DurationMs = float64(e.Timestamp - r.began)
	if r.told.DurationMs <= 0 { // Chromium gives all events of a request one time.
		r.told.DurationMs = float64(time.Since(r.seen).Microseconds()) / 1000
	}
	r.told.Failed, r.told.ErrorText = failed != "", failed
	delete(t.now, e.Request.ID)
}

// leave forgets what was under way for a document that is left, of which a browser does not always tell the end.
func (t *traffic) leave(since time.Time) {
	for id, r := range t.now {
		if r.seen.Before(since) {
			delete(t.now, id)
		}
	}
}

// empty says whether the latest request for an address was answered without a document.
func (t *traffic) empty(address string) bool {
	address, _, _ = strings.Cut(address, "#")
	for i := len(t.list) - 1; i >= 0; i-- {
		told := t.list[i].told
		if have, _, _ := strings.Cut(told.GetUrl(), "#"); have != address {
			continue
		}
		return told.GetStatus() == 204 || told.GetStatus() == 205
	}
	return false
}

// quietTime is how long no request may be under way for the network to count as idle.
const quietTime = 500 * time.Millisecond

// quiet waits until no request was under way for quietTime.
func (p *page) quiet(ctx context.Context) error {
	for {
		p.b.mu.Lock()
		t, changed := &p.traffic, p.changed
		left := quietTime
		if len(t.now) == 0 {
			left = quietTime - time.Since(t.since)
		}
		busy := len(t.now) > 0
		p.b.mu.Unlock()
		if !busy && left <= 0 {
			return nil
		}
		if busy {
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// kinds gives CDP's word for a request's destination (Fetch, 2.2.5 "Requests").
var kinds = map[string]string{
	"document": "document", "iframe": "document", "frame": "document", "object": "document", "embed": "document", "style": "stylesheet",
	"xslt": "stylesheet", "image": "image", "audio": "media", "video": "media", "track": "texttrack", "font": "font", "script": "script",
	"worker": "script", "sharedworker": "script", "serviceworker": "script", "manifest": "manifest", "report": "ping",
}

// kind is what a request is for, in CDP's words, lower case.
func (e *networkEvent) kind() string {
	if e.Request.ResourceType != "" {
		return strings.ToLower(e.Request.ResourceType)
	}
	if k := kinds[e.Request.Destination]; k != "" {
		return k
	}
	switch e.Request.InitiatorType {
	case "xmlhttprequest":
		return "xhr"
	case "fetch", "beacon":
		return e.Request.InitiatorType
	}
	if strings.HasPrefix(e.Request.URL, "ws:") || strings.HasPrefix(e.Request.URL, "wss:") {
		return "websocket"
	}
	return "other"
}

// listRequests is network.list.
func (p *Provider) listRequests(_ context.Context, r *browserv1.ListRequestsRequest) (*browserv1.ListRequestsResponse, error) {
	_, pg, err := p.find(r.GetSessionId(), r.GetPageId())
	if err != nil {
		return nil, err
	}
	pg.b.mu.Lock()
	defer pg.b.mu.Unlock()
	resp := &browserv1.ListRequestsResponse{}
	for _, q := range pg.traffic.list {
		if wanted(q.told, r) {
			resp.Requests = append(resp.Requests, proto.CloneOf(q.told))
		}
	}
	if n := int(r.GetLimit()); n > 0 && len(resp.Requests) > n {
		resp.Requests = resp.Requests[len(resp.Requests)-n:]
	}
	return resp, nil
}

func wanted(q *browserv1.NetworkRequest, r *browserv1.ListRequestsRequest) bool {
	same := func(word string) func(string) bool { return func(o string) bool { return strings.EqualFold(o, word) } }
	switch {
	case r.UrlContains != nil && !strings.Contains(q.GetUrl(), r.GetUrlContains()),
		len(r.GetMethods()) > 0 && !slices.ContainsFunc(r.GetMethods(), same(q.GetMethod())),
		len(r.GetResourceTypes()) > 0 && !slices.ContainsFunc(r.GetResourceTypes(), same(q.GetResourceType())),
		r.Failed != nil && r.GetFailed() != q.GetFailed(),
		r.Since != nil && q.GetStartedAt().AsTime().Before(r.GetSince().AsTime()):
		return false
	}
	return true
}
