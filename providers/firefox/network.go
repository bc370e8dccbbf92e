package firefox

import (
	"context"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// netEvent is a step of a request (MDN, webRequest).
type netEvent struct {
	Phase  string  `json:"phase"` // begin, redirect, answer, end or error
	Tab    int64   `json:"tab"`
	ID     string  `json:"id"`
	URL    string  `json:"url"`
	At     float64 `json:"at"` // milliseconds since 1970
	Method string  `json:"method"`
	Kind   string  `json:"kind"`
	Main   bool    `json:"main"`
	Status int32   `json:"status"`
	Mime   string  `json:"mime"`
	Error  string  `json:"error"`
	// Disposition is the Content-Disposition of an answer.
	Disposition string `json:"disposition"`
}

// traffic is what a page requested, the latest maxRequests, guarded by its browser's mu.
type traffic struct {
	list    []*request
	now     map[string]*request // those that have not ended
	count   int
	dropped int
	since   time.Time // when a request began or ended last
}

type request struct {
	told  *browserv1.NetworkRequest
	began float64
}

const maxRequests = 2000

// onNet notes the traffic of a page, and the status of its documents.
func (b *browser) onNet(e *netEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pages[e.Tab]
	if p == nil {
		return
	}
	if e.Main && e.Phase == "begin" {
		p.next = 0
	}
	if e.Main && e.Phase == "answer" {
		p.next = e.Status
	}
	if e.Disposition != "" {
		if _, params, err := mime.ParseMediaType(e.Disposition); err == nil && params["filename"] != "" {
			p.s.names[e.URL] = params["filename"]
		}
	}
	p.traffic.note(e)
	if len(p.traffic.now) == 0 || e.Main {
		p.notifyLocked()
	}
}

func (t *traffic) note(e *netEvent) {
	t.since = time.Now()
	if t.now == nil {
		t.now = map[string]*request{}
	}
	r := t.now[e.ID]
	switch e.Phase {
	case "begin":
		t.begin(e)
	case "redirect":
		if r != nil {
			r.told.Status, r.told.MimeType, r.told.DurationMs = e.Status, e.Mime, e.At-r.began
		}
	case "answer":
		if r != nil {
			r.told.Status, r.told.MimeType = e.Status, e.Mime
		}
	case "end", "error":
		if r != nil {
			r.told.DurationMs = e.At - r.began
			if e.Phase == "error" {
				r.told.Failed, r.told.ErrorText = true, netError(e.Error)
			} else {
				r.told.Status = e.Status
				if e.Mime != "" {
					r.told.MimeType = e.Mime
				}
			}
		}
		delete(t.now, e.ID)
	}
}

// begin notes a request, or the next hop of one that was redirected: that is still among those under way.
func (t *traffic) begin(e *netEvent) {
	t.count++
	r := &request{began: e.At, told: &browserv1.NetworkRequest{
		RequestId: "r" + strconv.Itoa(t.count), Url: e.URL, Method: e.Method, ResourceType: e.Kind,
		StartedAt: timestamppb.New(time.UnixMicro(int64(e.At * 1000))),
	}}
	if before := t.now[e.ID]; before != nil {
		r.told.RedirectedFrom = &before.told.RequestId
	}
	t.now[e.ID] = r
	t.list = append(t.list, r)
	if over := len(t.list) - maxRequests; over > 0 {
		t.list = slices.Delete(t.list, 0, over)
		t.dropped += over
	}
}

// leave forgets what was under way for a document that is left.
func (t *traffic) leave() {
	for id, r := range t.now {
		if r.told.GetResourceType() != "document" {
			delete(t.now, id)
		}
	}
}

// quietTime is how long no request may be under way for the network to count as idle.
const quietTime = 500 * time.Millisecond

// quiet waits until no request was under way for quietTime.
func (p *page) quiet(ctx context.Context) error {
	for {
		p.b.mu.Lock()
		busy, changed := len(p.traffic.now) > 0, p.changed
		left := quietTime - time.Since(p.traffic.since)
		p.b.mu.Unlock()
		if !busy && left <= 0 {
			return nil
		}
		wait := left
		if busy {
			wait = time.Minute
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
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
	if pg.traffic.dropped > 0 {
		resp.Warnings = append(resp.Warnings, &browserv1.Warning{
			Code: "requests_dropped", Message: strconv.Itoa(pg.traffic.dropped) + " older requests of the page are not kept",
		})
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
