package extension

import (
	"strings"
	"testing"
)

// press presses a key in a page, as on a keyboard.
func (c *chrome) press(session, key string, code int, text string) {
	c.t.Helper()
	down := map[string]any{"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if text != "" {
		down["type"], down["text"] = "keyDown", text
	}
	c.must(session, "Input.dispatchKeyEvent", down, nil)
	c.must(session, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// tabTo presses Tab until an element has the focus.
func (c *chrome) tabTo(session, id string) {
	c.t.Helper()
	for range 12 {
		if c.eval(session, `document.activeElement.id`) == id {
			return
		}
		c.press(session, "Tab", 9, "")
	}
	c.t.Fatalf("Tab does not reach #%s", id)
}

// Pairing by keyboard alone, and that the token is in no address and in no storage that is synchronised.
func TestPairByKeyboard(t *testing.T) {
	at := newPlace(t)
	r := newRig(t, at, nil)
	c := startChrome(t, unpacked(t))
	page := c.open(at.url() + "/pair")
	c.until(page, `document.getElementById('state')?.dataset.state === 'installed'`)
	c.must(page, "Page.bringToFront", map[string]any{}, nil)
	c.tabTo(page, "connect")
	c.press(page, "Enter", 13, "\r")
	c.until(page, `document.getElementById('state').dataset.state === 'offered'`)
	popup := c.page("popup.html")
	c.until(popup, `document.getElementById('pairCard')?.hidden === false`)
	if text := c.eval(popup, `document.body.innerText`).(string); !strings.Contains(text, "Drover wants to connect") || !strings.Contains(text, at.url()) {
		t.Errorf("the popup says %q", text)
	}
	c.must(popup, "Page.bringToFront", map[string]any{}, nil)
	c.tabTo(popup, "pairAcceptBtn")
	c.press(popup, "Enter", 13, "\r")
	c.until(page, `document.getElementById('state').dataset.state === 'connected'`)
	eventually(t, "the browser is connected", func() bool { return len(r.browsers()) == 1 })
	if got := c.eval(page, `location.href + history.length + JSON.stringify(sessionStorage) + JSON.stringify(localStorage) + document.documentElement.outerHTML`).(string); strings.Contains(got, "drv_") {
		t.Error("the pairing page shows the token")
	}
	if got := c.eval(popup, `chrome.storage.sync.get(null).then(all => JSON.stringify(all))`); got != "{}" {
		t.Errorf("synchronised storage holds %v", got)
	}
}

// The options page says what is wrong with a connection, at the field, and keeps a good one.
func TestOptionsPage(t *testing.T) {
	c := startChrome(t, unpacked(t))
	o := c.page("options.html")
	c.until(o, `document.getElementById('commandPath')?.value === '/browser/events'`)
	submit := func(url, token string) {
		c.eval(o, `serverUrl.value = `+quoted(url)+`, token.value = `+quoted(token)+`, form.requestSubmit(), true`)
	}
	submit("http://127.0.0.1:1", "t")
	c.until(o, `msg.textContent.includes('ws://') && serverUrl.getAttribute('aria-invalid') === 'true' && document.activeElement === serverUrl`)
	submit("ws://example.com", "t")
	c.until(o, `msg.textContent.includes('wss://')`)
	submit("ws://127.0.0.1:1/", "")
	c.until(o, `msg.textContent.includes('token')`)
	submit("ws://127.0.0.1:1/", "secret")
	c.until(o, `msg.textContent === 'Saved.' && token.value === ''`)
	popup := c.page("popup.html")
	c.until(popup, `['connecting', 'waiting'].includes(document.getElementById('statusCard').dataset.phase) && !document.body.innerText.includes('secret')`)
	c.eval(o, `resetBtn.click(), true`)
	c.until(o, `msg.textContent === 'Forgotten.' && serverUrl.value === ''`)
}

func quoted(s string) string { return `"` + s + `"` }
