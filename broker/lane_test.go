package broker_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/brokertest"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
	"github.com/droverhq/drover/proto/fault"
)

// These tests guard the order of calls: on one page as they arrive, on different pages and in different sessions without
// delay, and dialogs, lists and the closing of tabs never behind a call that is stuck.

// track is a fake whose calls take the seconds that their selector says, and that notes when each begins and ends.
type track struct {
	*brokertest.Fake
	mu    sync.Mutex
	lines []string
	start time.Time
}

func newTrack() *track {
	f := &track{Fake: cdp(), start: time.Now()}
	note := func(what string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lines = append(f.lines, fmt.Sprintf("%v %s", time.Since(f.start).Truncate(time.Second), what))
	}
	f.On("page.click", func(ctx context.Context, req proto.Message) (proto.Message, error) {
		r := req.(*browserv1.ClickRequest)
		name, seconds, _ := strings.Cut(r.GetTarget().GetSelector(), ":")
		d, err := time.ParseDuration(seconds)
		if err != nil {
			return nil, err
		}
		note("+" + name)
		defer note("-" + name)
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		page := r.GetPageId()
		if page == "" {
			page = "page-1"
		}
		return &browserv1.ClickResponse{PageId: page, Clicked: true}, nil
	})
	f.On("page.open", func(ctx context.Context, req proto.Message) (proto.Message, error) {
		r := req.(*browserv1.OpenRequest)
		note("+open")
		defer note("-open")
		<-time.After(2 * time.Second)
		page := "page-1"
		if r.GetNewPage() {
			page = "page-2"
		}
		return &browserv1.OpenResponse{PageId: page, Url: r.GetUrl()}, nil
	})
	f.On("tab.new", func(context.Context, proto.Message) (proto.Message, error) {
		note("+new")
		defer note("-new")
		<-time.After(2 * time.Second)
		return &browserv1.NewTabResponse{PageId: "page-3"}, nil
	})
	f.On("tab.close", func(context.Context, proto.Message) (proto.Message, error) {
		note("close")
		return &browserv1.CloseTabResponse{Closed: true, ActivePageId: "page-1"}, nil
	})
	return f
}

// story runs calls that arrive one after another, each taken when the one before has its place, and gives what happened.
func (f *track) story(u *user, calls ...proto.Message) string {
	var wg sync.WaitGroup
	for _, req := range calls {
		hasPlace := make(chan struct{})
		tell := sync.OnceFunc(func() { close(hasPlace) })
		wg.Go(func() {
			defer tell()
			_, _ = u.try(broker.WithPlaced(u.t.Context(), tell), req) // what it came to is in the lines
		})
		<-hasPlace
	}
	wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.lines)
	return strings.Join(f.lines, ", ")
}

func on(session, page, what string) proto.Message {
	r := click(session, page)
	r.Target.Selector = &what
	return r
}

func TestLanes(t *testing.T) {
	tests := []struct {
		name  string
		calls func(s, other string) []proto.Message
		want  string
	}{
		{"one page in the order of arrival", func(s, _ string) []proto.Message {
			return []proto.Message{on(s, "p", "a:2s"), on(s, "p", "b:1s"), on(s, "p", "c:1s")}
		}, "0s +a, 2s +b, 2s -a, 3s +c, 3s -b, 4s -c"},
		{"the active page is a page too", func(s, _ string) []proto.Message {
			return []proto.Message{on(s, "", "a:2s"), on(s, "page-1", "b:1s"), on(s, "", "c:1s")}
		}, "0s +a, 2s +b, 2s -a, 3s +c, 3s -b, 4s -c"},
		{"two pages at once", func(s, _ string) []proto.Message {
			return []proto.Message{on(s, "p", "a:2s"), on(s, "q", "b:1s"), on(s, "", "c:1s")}
		}, "0s +a, 0s +b, 0s +c, 1s -b, 1s -c, 2s -a"},
		{"two sessions at once", func(s, other string) []proto.Message {
			return []proto.Message{on(s, "", "a:2s"), on(other, "", "b:1s")}
		}, "0s +a, 0s +b, 1s -b, 2s -a"},
		{"a new page is the active one for later calls, and in nobody else's way", func(s, _ string) []proto.Message {
			return []proto.Message{
				on(s, "page-1", "a:1s"), &browserv1.OpenRequest{SessionId: s, Url: "https://example.com/", NewPage: true},
				on(s, "page-1", "c:1s"), on(s, "", "b:1s"),
			}
		}, "0s +a, 0s +open, 1s +c, 1s -a, 2s +b, 2s -c, 2s -open, 3s -b"},
		{"a call on the active page before a new one is opened is not on the new one", func(s, _ string) []proto.Message {
			return []proto.Message{
				on(s, "", "a:1s"), &browserv1.OpenRequest{SessionId: s, Url: "https://example.com/", NewPage: true},
			}
		}, "0s +a, 1s +open, 1s -a, 3s -open"},
		{"while it is not clear which page is the active one, none overtakes", func(s, _ string) []proto.Message {
			return []proto.Message{
				&browserv1.OpenRequest{SessionId: s, Url: "https://example.com/", NewPage: true},
				on(s, "", "b:1s"), on(s, "page-1", "c:1s"),
			}
		}, "0s +open, 2s +b, 2s +c, 2s -open, 3s -b, 3s -c"},
		{"the whole session waits for all and holds all up", func(s, _ string) []proto.Message {
			return []proto.Message{on(s, "p", "a:2s"), on(s, "q", "b:1s"), &browserv1.NewTabRequest{SessionId: s}, on(s, "q", "c:1s")}
		}, "0s +a, 0s +b, 1s -b, 2s +new, 2s -a, 4s +c, 4s -new, 5s -c"},
		{"closing a tab waits for nobody", func(s, _ string) []proto.Message {
			return []proto.Message{on(s, "p", "a:5s"), on(s, "p", "b:1s"), &browserv1.CloseTabRequest{SessionId: s, PageId: proto.String("p")}}
		}, "0s +a, 0s close, 5s +b, 5s -a, 6s -b"},
		{"a call that runs out of time in the lane gives its place up", func(s, _ string) []proto.Message {
			short := on(s, "p", "b:1s").(*browserv1.ClickRequest)
			short.TimeoutMs = proto.Int32(1000)
			return []proto.Message{on(s, "p", "a:3s"), short, on(s, "p", "c:1s")}
		}, "0s +a, 3s +c, 3s -a, 4s -c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newTrack()
				u := build(t, "", f.Fake).user("ann")
				s, other := u.ensure("a").GetSessionId(), u.ensure("b").GetSessionId()
				if got := f.story(u, tt.calls(s, other)...); got != tt.want {
					t.Errorf("\n got %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// Time spent waiting for a turn is not given to the provider again, and a call that is given up while it waits returns at
// once and was never sent.
func TestWaitingForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTrack()
		u := build(t, "", f.Fake).user("ann")
		s := u.ensure("a").GetSessionId()
		second := on(s, "p", "b:1s").(*browserv1.ClickRequest)
		second.TimeoutMs = proto.Int32(8000)
		f.story(u, on(s, "p", "a:3s"), second)
		if got := f.Calls("page.click")[1].(*browserv1.ClickRequest).GetTimeoutMs(); got != 5000 {
			t.Errorf("the provider was given %d ms", got)
		}

		u.aside(on(s, "p", "c:9s"))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := u.try(ctx, on(s, "p", "d:1s"))
		isFault(t, err, fault.NotReady, "cancelled")
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
		third := on(s, "p", "e:1s").(*browserv1.ClickRequest)
		third.TimeoutMs = proto.Int32(1000)
		if e := u.fails(third, fault.NotReady, "deadline_exceeded"); !e.Retryable {
			t.Error("a call that never left can be tried again")
		}
		if n := len(f.Calls("page.click")); n != 3 {
			t.Errorf("%d calls were sent", n)
		}
	})
}

// For random stories no two calls on one page ever run at once, none runs before an earlier one on its page, and all end.
func TestLanesNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, last := map[string]int{}, map[string]int{}
		f := cdp().On("page.click", func(_ context.Context, req proto.Message) (proto.Message, error) {
			r := req.(*browserv1.ClickRequest)
			page := r.GetPageId()
			n, _ := strconv.Atoi(r.GetTarget().GetSelector())
			if page == "" {
				page = "page-1"
			}
			mu.Lock()
			running[page]++
			if running[page] > 1 || n <= last[page] {
				t.Errorf("call %d on %s runs beside or before another", n, page)
			}
			last[page] = n
			mu.Unlock()
			<-time.After(time.Duration(n%7) * time.Millisecond)
			mu.Lock()
			running[page]--
			mu.Unlock()
			return &browserv1.ClickResponse{PageId: page}, nil
		})
		u := build(t, "", f).user("ann")
		s := u.ensure("a").GetSessionId()
		var wg sync.WaitGroup
		m, _ := catalog.Lookup("page.click")
		for n := range 20 {
			for i, page := range []string{"page-1", "", "q", "r", ""} {
				r := on(s, page, strconv.Itoa(1+n*5+i))
				hasPlace := make(chan struct{})
				tell := sync.OnceFunc(func() { close(hasPlace) })
				wg.Go(func() {
					defer tell()
					_, _ = u.Call(broker.WithPlaced(t.Context(), tell), m, r)
				})
				<-hasPlace
			}
		}
		wg.Wait()
	})
}
