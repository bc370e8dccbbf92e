package firefox

import (
	"net/url"
	"strings"
	"time"
)

// navEvent is a step of a navigation (MDN, webNavigation).
type navEvent struct {
	Step       string  `json:"step"` // begun, committed, parsed, loaded, failed, fragment or history
	Tab        int64   `json:"tab"`
	Frame      int64   `json:"frame"`
	Parent     int64   `json:"parent"`
	URL        string  `json:"url"`
	Document   string  `json:"document"`
	Error      string  `json:"error"`
	Transition string  `json:"transition"`
	At         float64 `json:"at"`
}

// onNav notes a step of a navigation.
func (b *browser) onNav(e *navEvent) {
	b.mu.Lock()
	p := b.pages[e.Tab]
	if p == nil {
		b.mu.Unlock()
		return
	}
	moved := false
	if e.Frame != 0 {
		p.stepOfFrameLocked(e)
	} else {
		moved = p.stepLocked(e)
	}
	p.notifyLocked()
	url := p.url
	b.mu.Unlock()
	if moved {
		p.s.emit("page.navigated", p, map[string]any{"url": url})
	}
}

func (p *page) stepOfFrameLocked(e *navEvent) {
	if e.Step == "committed" || e.Step == "begun" {
		p.frames[e.Frame] = true
	}
	if e.Step == "committed" {
		delete(p.docs, e.Frame)
	}
}

// idleGrace is how long a tab that has stopped loading may have a navigation under way: Firefox tells of the two on their own.
const idleGrace = 250 * time.Millisecond

// movingLocked says whether a navigation is under way. One that brought no document ends with its tab's loading.
func (p *page) movingLocked() bool {
	return p.pending && (p.idle.IsZero() || time.Since(p.idle) < idleGrace)
}

// stepLocked notes a step of the top document and says whether the page's address is another now.
func (p *page) stepLocked(e *navEvent) (moved bool) {
	if e.URL == "about:blank" && p.loads == 0 && p.url == "about:blank" && !p.found {
		return false // The empty document that every tab begins with is nobody's navigation.
	}
	switch e.Step {
	case "begun":
		p.pending, p.idle, p.broken, p.breaking = true, time.Time{}, "", false
	case "committed":
		p.pending, p.idle, p.ready, p.loaded = false, time.Time{}, false, false
		p.url, p.document = e.URL, e.Document
		p.loads++
		p.moves++
		clear(p.frames)
		clear(p.docs)
		p.traffic.leave()
		return true
	case "fragment", "history":
		p.url = e.URL
		p.pending = false
		p.moves++
		return true
	case "parsed", "loaded":
		if e.Document != p.document {
			return false // A download ends like this, too, beside the document that stays.
		}
		p.ready = true
		p.loaded = p.loaded || e.Step == "loaded"
		if kind := errorPage(e.URL); kind != "" {
			p.broken, p.loaded, p.breaking = kind, true, false
		}
	case "failed":
		if brokenOff(e.Error) {
			return false // Firefox says so, too, of a navigation that goes on in another process.
		}
		p.pending = false
		if !strings.HasPrefix(strings.ToLower(e.URL), "http") {
			return false // An address for another program, which the page named by itself; the page stays.
		}
		p.broken, p.breaking = netError(e.Error), true
		p.fails++
	}
	return false
}

// errorPage gives the kind of one of Firefox's error pages, "" for any other address.
func errorPage(address string) string {
	for _, kind := range []string{"about:neterror", "about:certerror", "about:httpsonlyerror", "about:blocked"} {
		if !strings.HasPrefix(address, kind) {
			continue
		}
		_, query, _ := strings.Cut(address, "?")
		if values, err := url.ParseQuery(query); err == nil && values.Get("e") != "" {
			return values.Get("e")
		}
		return kind
	}
	return ""
}
