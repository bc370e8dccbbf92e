package cdp

import (
	"encoding/json"

	"github.com/chromedp/cdproto"
	protocol "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	pagedomain "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// frame is one frame of a page and the document that it shows. Its id stays when the document changes, also when the
// document moves to another process.
type frame struct {
	id     protocol.FrameID
	parent protocol.FrameID
	loader protocol.LoaderID
	url    string
	ch     *channel // the session that its document lives in
	page   *world   // the page's own scripts
	engine *world   // the engine's isolated world
	broken string   // the address that could not be loaded, when this is an error page

	ready, loaded, idle bool              // how far the document got
	requested           bool              // a script or a link asked for a navigation that has not started yet
	pending             protocol.LoaderID // a navigation that has started and not ended
	moves               int               // documents and addresses it had
}

// world is an execution context. unique holds across processes, so a stale one never names another document.
type world struct {
	ch     *channel
	id     runtime.ExecutionContextID
	unique string
}

// onEvent sees every event of the page's sessions in order, on the reader's goroutine. It never blocks.
func (p *page) onEvent(ch *channel, m *cdproto.Message) {
	p.collect(m)
	switch string(m.Method) {
	case target.AttachedToTarget.Method:
		if e, ok := decode[target.EventAttachedToTarget](m); ok {
			p.onFrameTarget(e)
		}
		return
	case target.DetachedFromTarget.Method:
		if e, ok := decode[target.EventDetachedFromTarget](m); ok {
			p.b.link.drop(e.SessionID)
		}
		return
	case pagedomain.JavascriptDialogOpening.Method:
		if e, ok := decode[pagedomain.EventJavascriptDialogOpening](m); ok {
			p.onDialog(ch, e)
		}
		return
	case pagedomain.JavascriptDialogClosed.Method:
		if e, ok := decode[pagedomain.EventJavascriptDialogClosed](m); ok {
			p.onDialogClosed(e)
		}
		return
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method:
		p.onConsole(m)
		return
	case network.RequestWillBeSent.Method, network.ResponseReceived.Method, network.LoadingFinished.Method,
		network.LoadingFailed.Method, network.RequestServedFromCache.Method:
		p.onNetwork(m)
		return
	}
	p.b.mu.Lock()
	moved := p.onFrameEventLocked(ch, m)
	p.b.mu.Unlock()
	if moved != "" {
		p.s.emit("page.navigated", p, map[string]any{"url": moved})
	}
	if string(m.Method) == inspector.TargetCrashed.Method && ch == p.ch {
		p.s.emit("page.crashed", p, nil)
	}
}

// onFrameTarget takes in a frame whose document moved to another process.
func (p *page) onFrameTarget(e *target.EventAttachedToTarget) {
	p.b.mu.Lock()
	ch := p.b.link.open(e.SessionID, p.onEvent)
	id := protocol.FrameID(e.TargetInfo.TargetID)
	f := p.frameLocked(id)
	f.ch = ch
	f.page, f.engine = nil, nil
	if e.TargetInfo.ParentFrameID != "" {
		f.parent = e.TargetInfo.ParentFrameID
	}
	p.notifyLocked()
	p.b.mu.Unlock()
	p.setUp(ch, false)
}

func (p *page) frameLocked(id protocol.FrameID) *frame {
	f := p.frames[id]
	if f == nil {
		f = &frame{id: id}
		p.frames[id] = f
	}
	return f
}

// onFrameEventLocked keeps the frames, and gives the new address when the page itself moved.
func (p *page) onFrameEventLocked(ch *channel, m *cdproto.Message) (moved string) {
	switch string(m.Method) {
	case runtime.ExecutionContextCreated.Method:
		if e, ok := decode[runtime.EventExecutionContextCreated](m); ok {
			p.onWorldLocked(ch, e.Context)
		}
	case runtime.ExecutionContextDestroyed.Method:
		if e, ok := decode[runtime.EventExecutionContextDestroyed](m); ok {
			p.dropWorldsLocked(func(w *world) bool { return w.unique == e.ExecutionContextUniqueID })
		}
	case runtime.ExecutionContextsCleared.Method:
		p.dropWorldsLocked(func(w *world) bool { return w.ch == ch })
	case pagedomain.FrameAttached.Method:
		if e, ok := decode[pagedomain.EventFrameAttached](m); ok {
			f := p.frameLocked(e.FrameID)
			f.parent, f.ch = e.ParentFrameID, ch
		}
	case pagedomain.FrameDetached.Method:
		if e, ok := decode[pagedomain.EventFrameDetached](m); ok && e.Reason != pagedomain.FrameDetachedReasonSwap {
			p.removeLocked(e.FrameID)
		}
	case pagedomain.FrameNavigated.Method:
		if e, ok := decode[pagedomain.EventFrameNavigated](m); ok {
			moved = p.onNavigatedLocked(ch, e)
		}
	case pagedomain.NavigatedWithinDocument.Method:
		if e, ok := decode[pagedomain.EventNavigatedWithinDocument](m); ok {
			f := p.frameLocked(e.FrameID)
			f.url, f.requested = e.URL, false
			f.moves++
			if e.FrameID == p.main {
				moved = e.URL
			}
		}
	case pagedomain.LifecycleEvent.Method:
		if e, ok := decode[pagedomain.EventLifecycleEvent](m); ok {
			p.frameLocked(e.FrameID).reach(e)
		}
	default:
		p.onProgressLocked(ch, m)
	}
	p.notifyLocked()
	return moved
}

// The events of scheduled navigations are deprecated and not in the protocol package, but the browser sends them.
const (
	scheduledEvent = "Page.frameScheduledNavigation"
	clearedEvent   = "Page.frameClearedScheduledNavigation"

	soon = 0.2 // seconds; what is scheduled for then belongs to the navigation under way
)

type scheduled struct {
	FrameID protocol.FrameID `json:"frameId"`
	Delay   float64          `json:"delay"`
}

// onProgressLocked follows navigations on their way.
func (p *page) onProgressLocked(ch *channel, m *cdproto.Message) {
	switch string(m.Method) {
	case pagedomain.FrameRequestedNavigation.Method:
		if e, ok := decode[pagedomain.EventFrameRequestedNavigation](m); ok {
			switch e.Disposition {
			case pagedomain.ClientNavigationDispositionCurrentTab:
				p.frameLocked(e.FrameID).requested = true
			case pagedomain.ClientNavigationDispositionNewTab, pagedomain.ClientNavigationDispositionNewWindow:
				p.opening++
			case pagedomain.ClientNavigationDispositionDownload:
			}
		}
	case pagedomain.WindowOpen.Method:
		p.opening++
	case pagedomain.FrameStartedNavigating.Method:
		if e, ok := decode[pagedomain.EventFrameStartedNavigating](m); ok {
			f := p.frameLocked(e.FrameID)
			f.requested = false
			switch e.NavigationType {
			case pagedomain.FrameStartedNavigatingNavigationTypeSameDocument,
				pagedomain.FrameStartedNavigatingNavigationTypeHistorySameDocument:
			default:
				f.pending = e.LoaderID
			}
		}
	case scheduledEvent: // A refresh by a meta tag has no other sign before it starts.
		if e, ok := decode[scheduled](m); ok && e.Delay < soon {
			p.frameLocked(e.FrameID).requested = true
		}
	case clearedEvent:
		if e, ok := decode[scheduled](m); ok {
			p.frameLocked(e.FrameID).requested = false
		}
	case pagedomain.FrameStoppedLoading.Method:
		if e, ok := decode[pagedomain.EventFrameStoppedLoading](m); ok {
			f := p.frameLocked(e.FrameID)
			f.requested = false
			if f.pending == "" {
				f.ready, f.loaded = true, true
			}
		}
	case inspector.TargetCrashed.Method:
		if ch == p.ch {
			p.crashed = true
			p.dropWorldsLocked(func(*world) bool { return true })
			p.interruptLocked(p.errCrashed())
		}
	}
}

func (p *page) onNavigatedLocked(ch *channel, e *pagedomain.EventFrameNavigated) (moved string) {
	f := p.frameLocked(e.Frame.ID)
	f.parent, f.loader, f.ch = e.Frame.ParentID, e.Frame.LoaderID, ch
	f.url, f.broken = e.Frame.URL+e.Frame.URLFragment, e.Frame.UnreachableURL
	f.requested = false
	f.ready, f.loaded, f.idle = false, false, false
	if e.Type == pagedomain.NavigationTypeBackForwardCacheRestore {
		// The document kept its loader's id, which the navigation to it was not told under.
		f.ready, f.loaded, f.idle, f.pending = true, true, true, ""
	}
	if f.pending == f.loader {
		f.pending = ""
	}
	f.moves++
	if e.Frame.ID != p.main {
		return ""
	}
	p.crashed = false
	for id := range p.statuses {
		if id != f.loader && id != f.pending {
			delete(p.statuses, id)
		}
	}
	return f.url
}

// reach notes how far the current document got.
func (f *frame) reach(e *pagedomain.EventLifecycleEvent) {
	if f.loader == "" {
		f.loader = e.LoaderID // The first empty document commits without an event of its own.
	}
	if e.LoaderID != f.loader {
		return
	}
	switch e.Name {
	case "DOMContentLoaded":
		f.ready = true
	case "load":
		f.ready, f.loaded = true, true
	case "networkIdle":
		f.idle = true
	}
}

// removeLocked drops a frame with those inside it.
func (p *page) removeLocked(id protocol.FrameID) {
	delete(p.frames, id)
	for _, f := range p.frames {
		if f.parent == id {
			p.removeLocked(f.id)
		}
	}
}

func (p *page) onWorldLocked(ch *channel, c *runtime.ExecutionContextDescription) {
	var aux struct {
		FrameID   protocol.FrameID `json:"frameId"`
		IsDefault bool             `json:"isDefault"`
	}
	if json.Unmarshal(c.AuxData, &aux) != nil || aux.FrameID == "" {
		return
	}
	f := p.frameLocked(aux.FrameID)
	w := &world{ch: ch, id: c.ID, unique: c.UniqueID}
	switch {
	case aux.IsDefault:
		f.page, f.ch = w, ch
	case c.Name == worldName:
		f.engine, f.ch = w, ch
	}
}

func (p *page) dropWorldsLocked(gone func(*world) bool) {
	for _, f := range p.frames {
		if f.page != nil && gone(f.page) {
			f.page = nil
		}
		if f.engine != nil && gone(f.engine) {
			f.engine = nil
		}
	}
}
