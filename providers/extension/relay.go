package extension

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover/providers/cdp"
	"github.com/droverhq/drover/providers/extension/bridge"
)

// relay stands for a browser of the DevTools Protocol in front of one that connects through our extension: what is meant
// for the browser at large is answered with the extension's tools for tabs, what is meant for a page goes to the page's tab.
// It knows the tabs of its own session alone.
type relay struct {
	node   *bridge.Node
	target string
	stop   func() // no more events

	mu     sync.Mutex
	tabs   map[int]*tab
	loads  map[string]string // downloads under way, with their addresses
	frames map[string]int    // sessions of frames in other processes, with their tab
	queue  [][]byte
	wake   chan struct{}
	done   chan struct{}
	once   sync.Once
	wg     sync.WaitGroup
}

// tab is a tab of the session.
type tab struct {
	id     int
	target string // the id of its main frame
	opener string
	setup  []message // what was switched on, in order, to do it again
	torn   []message // commands that were under way when the debugger was torn off
}

func (t *tab) session() string { return "tab-" + strconv.Itoa(t.id) }

var _ cdp.Wire = (*relay)(nil)

// message is a message of the DevTools Protocol.
type message struct {
	ID        int64           `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// The codes of errors that are not the browser's own.
const (
	codeServer       = -32000
	codeNoMethod     = -32601
	codeDisconnected = -32090 // the link was down before the command went
	codeLost         = -32091 // the link was lost while the command was under way
	codeCapacity     = -32092
	codeRevoked      = -32093
)

func newRelay(node *bridge.Node, target string) *relay {
	r := &relay{
		node: node, target: target, tabs: map[int]*tab{}, frames: map[string]int{}, loads: map[string]string{}, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	r.stop = node.Hear(r.hear)
	node.Lease(target, 1)
	r.wg.Go(r.watch)
	return r
}

// Read gives the next message.
func (r *relay) Read(ctx context.Context) ([]byte, error) {
	for {
		r.mu.Lock()
		if len(r.queue) > 0 {
			next := r.queue[0]
			r.queue = r.queue[1:]
			r.mu.Unlock()
			return next, nil
		}
		r.mu.Unlock()
		select {
		case <-r.wake:
		case <-r.done:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close ends the relay; its tabs stay.
func (r *relay) Close() error {
	r.end()
	r.wg.Wait()
	return nil
}

func (r *relay) end() {
	r.once.Do(func() {
		r.stop()
		r.node.Lease(r.target, -1)
		close(r.done)
	})
}

// push queues a message for the reader. It never blocks.
func (r *relay) push(m message) {
	data, err := json.Marshal(m)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.queue = append(r.queue, data)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *relay) event(session, method string, params any) {
	data, err := json.Marshal(params)
	if err == nil {
		r.push(message{SessionID: session, Method: method, Params: data})
	}
}

func (r *relay) answer(to message, result any, err error) {
	m := message{ID: to.ID, SessionID: to.SessionID}
	if err != nil {
		m.Error = failureOf(err)
		r.push(m)
		return
	}
	data, err := json.Marshal(result)
	if err != nil || string(data) == "null" {
		data = []byte("{}")
	}
	m.Result = data
	r.push(m)
}

// failureOf gives an error of the bridge as one of the protocol. What the debugger refused is told by the extension as
// "devtools failed: {code, message}".
func failureOf(err error) *failure {
	said, refused := bridge.Refused(err)
	if !refused {
		return failureOfBridge(err)
	}
	_, rest, _ := strings.Cut(said, " failed: ")
	var own failure
	if json.Unmarshal([]byte(rest), &own) == nil && own.Message != "" {
		return &own
	}
	if rest == "" {
		rest = said
	}
	return &failure{Code: codeServer, Message: rest}
}

// Write sends a message.
func (r *relay) Write(ctx context.Context, data []byte) error {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	select {
	case <-r.done:
		return io.ErrClosedPipe
	default:
	}
	if m.SessionID == "" {
		r.browser(ctx, m)
		return nil
	}
	r.mu.Lock()
	var id int
	var child string
	if n, ok := strings.CutPrefix(m.SessionID, "tab-"); ok {
		id, _ = strconv.Atoi(n)
	} else {
		id, child = r.frames[m.SessionID], m.SessionID
	}
	t := r.tabs[id]
	known := t != nil
	if known && child == "" && setups[m.Method] {
		t.setup = append(t.setup, m)
	}
	r.mu.Unlock()
	if !known {
		r.answer(m, nil, errNoSession)
		return nil
	}
	args := map[string]any{"tabId": id, "method": m.Method}
	if child != "" {
		args["sessionId"] = child
	}
	if len(m.Params) > 0 && string(m.Params) != "{}" {
		args["params"] = m.Params
	}
	r.call(ctx, "devtools", args, func(res *bridge.Result, err error) {
		switch {
		case err != nil && strings.Contains(err.Error(), "Detached while handling command") && r.tear(id, m):
		case err != nil:
			r.answer(m, nil, err)
		default:
			r.answer(m, res.Value, nil)
		}
	})
	return nil
}

// setups are the commands that switch something on in a tab for as long as the debugger is attached.
var setups = map[string]bool{
	"Page.enable": true, "Page.setLifecycleEventsEnabled": true, "Runtime.enable": true, "Network.enable": true, "Inspector.enable": true,
	"Page.addScriptToEvaluateOnNewDocument": true, "Target.setAutoAttach": true, "Emulation.setFocusEmulationEnabled": true,
	"Emulation.setDeviceMetricsOverride": true,
}

// tear keeps the answer to a command back until it is known whether its tab went or only its debugger; false when the tab
// is gone already.
func (r *relay) tear(id int, m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tabs[id]
	if t != nil {
		t.torn = append(t.torn, m)
	}
	return t != nil
}

// mend sets a tab up again whose debugger was torn off and is back. What was under way is answered as a page does that went
// to another document meanwhile.
func (r *relay) mend(id int) {
	r.mu.Lock()
	t := r.tabs[id]
	if t == nil {
		r.mu.Unlock()
		return
	}
	setup, torn := t.setup, t.torn
	t.torn = nil
	r.mu.Unlock()
	r.push(message{SessionID: t.session(), Method: "Runtime.executionContextsCleared", Params: json.RawMessage("{}")})
	for _, m := range torn {
		r.push(message{ID: m.ID, SessionID: m.SessionID, Error: &failure{Code: codeServer, Message: "Inspected target navigated or closed"}})
	}
	for _, m := range setup {
		r.later(id, m.Method, m.Params)
	}
}

var errNoSession = errors.New("Session with given id not found.") //nolint:staticcheck // the browser's own words, which callers look for

// call starts a tool, after waiting a little for a browser that is away; then is called once in any case.
func (r *relay) call(ctx context.Context, tool string, args any, then func(*bridge.Result, error)) {
	err := r.node.Wait(ctx, r.target, graceTime)
	if err == nil {
		_, err = r.node.Start(r.target, tool, args, then)
	}
	if err != nil {
		then(nil, err)
	}
}

// graceTime is how long a command waits for a browser that is away.
const graceTime = 1500 * time.Millisecond

// opened is what tab_open and tab_watch give.
type opened struct {
	TabID   int    `json:"tabId"`
	FrameID string `json:"frameId"`
	URL     string `json:"url"`
}

// take takes a tab in and tells of it.
func (r *relay) take(o opened, opener string) *tab {
	t := &tab{id: o.TabID, target: o.FrameID, opener: opener}
	r.mu.Lock()
	r.tabs[t.id] = t
	r.mu.Unlock()
	info := map[string]any{"targetId": t.target, "type": "page", "title": "", "url": o.URL, "attached": true, "canAccessOpener": opener != ""}
	if opener != "" {
		info["openerId"] = opener
	}
	r.event("", "Target.attachedToTarget", map[string]any{"sessionId": t.session(), "targetInfo": info, "waitingForDebugger": false})
	return t
}

// leave lets a tab go and tells of it.
func (r *relay) leave(id int) {
	r.mu.Lock()
	t := r.tabs[id]
	delete(r.tabs, id)
	maps.DeleteFunc(r.frames, func(_ string, of int) bool { return of == id })
	r.mu.Unlock()
	if t != nil {
		r.event("", "Target.detachedFromTarget", map[string]any{"sessionId": t.session(), "targetId": t.target})
	}
}

func (r *relay) byTarget(target string) *tab {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tabs {
		if t.target == target {
			return t
		}
	}
	return nil
}

// hear takes in what the extension tells.
func (r *relay) hear(e bridge.Event) {
	if e.Browser != r.target {
		return
	}
	var p struct {
		TabID     int             `json:"tabId"`
		OpenerID  int             `json:"openerTabId"`
		SessionID string          `json:"sessionId"`
		Method    string          `json:"method"`
		Params    json.RawMessage `json:"params"`
	}
	if json.Unmarshal(e.Payload, &p) != nil {
		return
	}
	r.mu.Lock()
	t, opener := r.tabs[p.TabID], r.tabs[p.OpenerID]
	r.mu.Unlock()
	switch {
	case e.Name == "tab.gone":
		r.leave(p.TabID)
	case e.Name == "tab.back":
		r.mend(p.TabID)
	case e.Name == "tab.opened" && opener != nil && t == nil:
		_, _ = r.node.Start(r.target, "tab_watch", map[string]any{"tabId": p.TabID}, func(res *bridge.Result, err error) {
			var o opened
			if err == nil && json.Unmarshal(res.Value, &o) == nil {
				r.take(o, opener.target)
			}
		})
	case e.Name == "cdp" && t != nil:
		r.forward(t, p.SessionID, p.Method, p.Params)
	}
}

// forward passes an event of a tab on. Downloads are the browser's to tell, in the words of another domain.
func (r *relay) forward(t *tab, child, method string, params json.RawMessage) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	switch method {
	case "Target.attachedToTarget", "Target.detachedFromTarget":
		var p struct {
			SessionID string `json:"sessionId"`
		}
		if json.Unmarshal(params, &p) == nil {
			r.mu.Lock()
			if method == "Target.attachedToTarget" {
				r.frames[p.SessionID] = t.id
			} else {
				defer func() {
					r.mu.Lock()
					delete(r.frames, p.SessionID)
					r.mu.Unlock()
				}()
			}
			r.mu.Unlock()
		}
	case "Page.downloadWillBegin", "Page.downloadProgress":
		r.download(method, params)
	}
	session := t.session()
	if child != "" {
		session = child
	}
	r.push(message{SessionID: session, Method: method, Params: params})
}

// watch sees to it that tabs which went while the browser was away are told of, and that a browser whose pairing was
// revoked is lost for good.
func (r *relay) watch() {
	was := true
	for {
		changed := r.node.Changed()
		list := r.node.Browsers()
		i := slices.IndexFunc(list, func(b bridge.Browser) bool { return b.Target == r.target })
		is := i >= 0 && list[i].Connected
		if !is && was {
			if all, err := r.node.Store().List(); err == nil && slices.ContainsFunc(all, func(p bridge.Pairing) bool { return p.Target == r.target && p.Revoked }) {
				r.end()
				return
			}
		}
		if is && !was {
			r.compare()
		}
		was = is
		select {
		case <-changed:
		case <-r.done:
			return
		}
	}
}

// compare asks the extension which tabs there are and lets those go that are not.
func (r *relay) compare() {
	_, _ = r.node.Start(r.target, "tab_list", nil, func(res *bridge.Result, err error) {
		var list []struct {
			TabID int `json:"tabId"`
		}
		if err != nil || json.Unmarshal(res.Value, &list) != nil {
			return
		}
		r.mu.Lock()
		ids := slices.Collect(maps.Keys(r.tabs))
		r.mu.Unlock()
		for _, id := range ids {
			found := false
			for _, t := range list {
				found = found || t.TabID == id
			}
			if !found {
				r.leave(id)
			}
		}
	})
}
