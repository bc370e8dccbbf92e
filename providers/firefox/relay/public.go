package relay

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/droverhq/drover/providers/firefox/native"
)

// publicRequest is a request as the public bridge's add-on takes it, and publicMessage everything that it sends.
type publicRequest struct {
	ID     string          `json:"id"`
	Action string          `json:"action"`
	Params json.RawMessage `json:"params,omitempty"`
}

type publicMessage struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      *bool           `json:"ok"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Version string          `json:"version"`
	Browser string          `json:"browser"`
}

// fromPublic passes an answer of the public add-on to the connection that asked. What nobody waits for any more is dropped:
// a late answer is nobody else's business.
func (r *Relay) fromPublic(data []byte) {
	var m publicMessage
	if err := json.Unmarshal(data, &m); err != nil {
		r.Logger.Warn("the add-on sent what is no message")
		return
	}
	if m.Type == "hello" {
		text, err := json.Marshal(map[string]any{"kind": "public", "protocol": Protocol, "version": m.Version, "browser": m.Browser})
		if err == nil {
			r.greet(text)
		}
		return
	}
	r.mu.Lock()
	a, ok := r.waiting[m.ID]
	delete(r.waiting, m.ID)
	r.mu.Unlock()
	if !ok {
		r.Logger.Debug("an answer came that nobody waits for")
		return
	}
	out := message{ID: a.id, Result: m.Result}
	if m.OK == nil || !*m.OK {
		text, err := json.Marshal(map[string]string{"code": "bridge_error", "message": m.Error})
		if err != nil {
			return
		}
		out = message{ID: a.id, Error: text}
	}
	if out.Error == nil && out.Result == nil {
		out.Result = json.RawMessage("null")
	}
	r.send(a.client, out)
}

// toPublic sends a request to the public add-on under an id that no other connection uses.
func (r *Relay) toPublic(c *client, m message) {
	id := fmt.Sprintf("drover-%d-%d", c.number, r.transfers.Add(1))
	data, err := json.Marshal(publicRequest{ID: id, Action: m.Method, Params: m.Params})
	if err == nil && len(data) > r.MaxToBrowser {
		err = native.ErrTooLarge // This add-on knows no pieces, and Firefox ends the connection at a longer message.
	}
	if err == nil {
		r.mu.Lock()
		r.waiting[id] = asked{client: c, id: m.ID}
		r.mu.Unlock()
		if err = r.write(data); err == nil {
			return
		}
		r.mu.Lock()
		delete(r.waiting, id)
		r.mu.Unlock()
	}
	if !errors.Is(err, native.ErrTooLarge) {
		r.Logger.Warn("a request could not be passed on")
	}
	r.send(c, refusal(m.ID, err))
}
