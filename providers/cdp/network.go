package cdp

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/network"
	"google.golang.org/protobuf/types/known/timestamppb"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// traffic is what a page requested, the latest maxRequests, guarded by its browser's mu.
type traffic struct {
	list  []*request
	now   map[network.RequestID]*request // the latest hop of each
	count int
}

type request struct {
	told  *browserv1.NetworkRequest
	began float64 // the browser's monotonic clock, in seconds
}

const maxRequests = 2000

// onNetwork notes the traffic of a page, and the status of its documents.
func (p *page) onNetwork(m *cdproto.Message) {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	t := &p.traffic
	switch string(m.Method) {
	case network.RequestWillBeSent.Method:
		if e, ok := decode[network.EventRequestWillBeSent](m); ok {
			t.begin(e)
		}
	case network.ResponseReceived.Method:
		e, ok := decode[network.EventResponseReceived](m)
		if !ok || e.Response == nil {
			return
		}
		if e.Type == network.ResourceTypeDocument && e.FrameID == p.main {
			p.statuses[e.LoaderID] = int(e.Response.Status)
			p.notifyLocked()
		}
		t.answer(e.RequestID, e.Response, string(e.Type))
	case network.LoadingFinished.Method:
		if e, ok := decode[network.EventLoadingFinished](m); ok {
			t.end(e.RequestID, float64(e.Timestamp), "")
		}
	case network.LoadingFailed.Method:
		e, ok := decode[network.EventLoadingFailed](m)
		if !ok {
			return
		}
		t.end(e.RequestID, float64(e.Timestamp), e.ErrorText)
		for _, f := range p.frames {
			// A navigation that failed or was broken off. One that failed gets an error page, which commits as any other.
			if string(f.pending) == string(e.RequestID) && e.Canceled {
				f.pending = ""
				p.notifyLocked()
			}
		}
	}
}

func (t *traffic) begin(e *network.EventRequestWillBeSent) {
	if t.now == nil {
		t.now = map[network.RequestID]*request{}
	}
	t.count++
	r := &request{began: float64(e.Timestamp), told: &browserv1.NetworkRequest{
		RequestId: "r" + strconv.Itoa(t.count), ResourceType: strings.ToLower(string(e.Type)), StartedAt: stamp(float64(e.WallTime)),
	}}
	if e.Request != nil {
		r.told.Url, r.told.Method = e.Request.URL+e.Request.URLFragment, e.Request.Method
	}
	if before := t.now[e.RequestID]; before != nil && e.RedirectResponse != nil {
		t.answer(e.RequestID, e.RedirectResponse, "")
		t.end(e.RequestID, float64(e.Timestamp), "")
		r.told.RedirectedFrom = &before.told.RequestId
	}
	t.now[e.RequestID] = r
	t.list = append(t.list, r)
	if len(t.list) > maxRequests {
		t.list = slices.Delete(t.list, 0, len(t.list)-maxRequests)
	}
}

func (t *traffic) answer(id network.RequestID, resp *network.Response, kind string) {
	r := t.now[id]
	if r == nil {
		return
	}
	r.told.Status, r.told.MimeType = int32(resp.Status), resp.MimeType
	if kind != "" {
		r.told.ResourceType = strings.ToLower(kind)
	}
}

func (t *traffic) end(id network.RequestID, at float64, failed string) {
	r := t.now[id]
	if r == nil {
		return
	}
	r.told.DurationMs = max(at-r.began, 0) * 1000
	r.told.Failed, r.told.ErrorText = failed != "", failed
	delete(t.now, id)
}

// stamp gives seconds since 1970 as a timestamp.
func stamp(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(time.UnixMicro(int64(seconds * 1e6)))
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
			c := q.told
			resp.Requests = append(resp.Requests, &browserv1.NetworkRequest{
				RequestId: c.GetRequestId(), Url: c.GetUrl(), Method: c.GetMethod(), Status: c.GetStatus(), ResourceType: c.GetResourceType(),
				MimeType: c.GetMimeType(), StartedAt: c.GetStartedAt(), DurationMs: c.GetDurationMs(), Failed: c.GetFailed(),
				ErrorText: c.GetErrorText(), RedirectedFrom: c.RedirectedFrom,
			})
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
