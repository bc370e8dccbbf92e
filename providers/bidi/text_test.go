package bidi

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

const fieldsPage = `<!doctype html><meta charset="utf-8"><title>T</title><input id="one"><textarea id="many" onkeydown="if(event.key=='Enter')document.title='sent'"></textarea>
<div id="rich" contenteditable role="textbox" aria-label="Rich"></div><script>window.n=0;addEventListener('keydown',()=>n++,true)</script>`

// Any script arrives whole, line breaks do not submit, and a long text arrives in time, with a word about how.
func TestText(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": fieldsPage})
		u := r.session("text", prefer(family))
		u.open(base + "/")
		write := func(selector, text string) *browserv1.TypeResponse {
			t.Helper()
			began := time.Now()
			resp := ask[*browserv1.TypeResponse](r, &browserv1.TypeRequest{SessionId: u.id, Target: bySelector(selector), Text: text, Replace: true, TimeoutMs: ptr(int32(20000))})
			t.Logf("%d bytes took %v", len(text), time.Since(began))
			return resp
		}
		for _, text := range []string{
			"plain", "漢字かな交じり", "שלום עולם", "नमस्ते दुनिया", "👨‍👩‍👧 🇩🇪 👍🏽 é e\u0301", "\u00a0x\u200by", "a\tb", "\ue007 is no key",
		} {
			if got := write("#many", text); got.GetValue() != text {
				t.Errorf("%q arrived as %q", text, got.GetValue())
			}
		}
		if got := write("#many", "line one\nline two"); got.GetValue() != "line one\nline two" || u.eval("document.title") != `"T"` {
			t.Errorf("two lines arrived as %q, the page is %s", got.GetValue(), u.eval("document.title"))
		}
		write("#rich", "bold é 漢")
		if got := u.eval("document.getElementById('rich').innerText.trim()"); got != `"bold é 漢"` {
			t.Errorf("the editor holds %s", got)
		}
		medium := strings.Repeat("0123456789", 100)
		if got := write("#one", medium); got.GetValue() != medium || len(got.GetWarnings()) > 0 {
			t.Errorf("%d of %d characters arrived, with %v", len(got.GetValue()), len(medium), got.GetWarnings())
		}
		long := strings.Repeat("0123456789", 2000)
		got := write("#one", long)
		if got.GetValue() != long {
			t.Errorf("%d of %d characters arrived", len(got.GetValue()), len(long))
		}
		if told := len(got.GetWarnings()) == 1 && got.GetWarnings()[0].GetCode() == "reduced_fidelity"; told != (family == familyFirefox) {
			t.Errorf("the warnings of a long text are %v", got.GetWarnings())
		}
	})
}

// Keys, chords and double clicks are what the page sees, and two single clicks are no double click.
func TestKeysAndClicks(t *testing.T) {
	each(t, func(t *testing.T, r *rig, family string) {
		base := site(t, map[string]string{"/": `<!doctype html><title>K</title><input id="i" value="hello"><button ondblclick="d++" onclick="c++">B</button>
<script>window.c=0;window.d=0;window.keys=[];addEventListener('keydown',e=>keys.push((e.ctrlKey?'C+':'')+(e.shiftKey?'S+':'')+e.key+'/'+e.code+(e.isTrusted?'':'!')),true)</script>`})
		u := r.session("keys", prefer(family))
		u.open(base + "/")
		press := func(key string) {
			t.Helper()
			ask[*browserv1.PressResponse](r, &browserv1.PressRequest{SessionId: u.id, Target: bySelector("#i"), Key: key})
		}
		for _, key := range []string{"Control+a", "Shift+A", "Escape", "F5", "ArrowLeft"} {
			if key == "F5" {
				key = "F9" // F5 would load the page again.
			}
			press(key)
		}
		want := `"C+Control/ControlLeft C+a/KeyA S+Shift/ShiftLeft S+A/KeyA Escape/Escape F9/F9 ArrowLeft/ArrowLeft"`
		if got := u.eval("keys.join(' ')"); got != want {
			t.Errorf("the keys are %s", got)
		}
		if got := u.eval("document.getElementById('i').value"); got != `"A"` {
			t.Errorf("the field holds %s", got)
		}
		for range 2 {
			u.click(bySelector("button"))
		}
		if got := u.eval("[c,d].join()"); got != `"2,0"` {
			t.Errorf("two clicks are %s", got)
		}
		ask[*browserv1.ClickResponse](r, &browserv1.ClickRequest{SessionId: u.id, Target: bySelector("button"), ClickCount: ptr(int32(2))})
		if got := u.eval("[c,d].join()"); got != `"4,1"` {
			t.Errorf("with a double click they are %s", got)
		}
	})
}
