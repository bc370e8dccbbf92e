package inpage_test

import (
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

// What a field did not take is told: digits that a page sends on to other fields, lines where there is one, letters where
// there are numbers. A mask that adds to the text is no loss.
func TestTextThatAFieldDoesNotTake(t *testing.T) {
	s := stage(t, `<title>T</title><input class=d maxlength=1><input class=d maxlength=1><input id=one><input id=num type=number><input id=range type=range step=5>
<input id=phone><input id=up><textarea id=area></textarea><script>
for (const d of document.querySelectorAll('.d')) d.oninput = () => d.nextElementSibling.focus();
phone.oninput = () => { phone.value = phone.value.replace(/^(\d\d)(\d+)/, '($1) $2') }; up.oninput = () => { up.value = up.value.toUpperCase() }</script>`)
	for _, c := range []struct {
		sel, text string
		warns     bool
	}{
		{".d", "12", true},
		{"#one", "a\nb", true},
		{"#num", "abc", true},
		{"#range", "7", true},
		{"#one", "a b\n", false},
		{"#num", "12", false},
		{"#range", "10", false},
		{"#phone", "0123", false},
		{"#up", "ab c", false},
		{"#area", "a\nb", false},
	} {
		got, err := s.Type(s.ctx(5*time.Second), &browserv1.TypeRequest{Target: css(c.sel), Text: c.text, Replace: true})
		if err != nil {
			t.Fatalf("%s: %v", c.sel, err)
		}
		if warned := len(got.Warnings) == 1 && got.Warnings[0].GetCode() == "value_differs"; warned != c.warns {
			t.Errorf("%q in %s: value %v, warnings %v", c.text, c.sel, *got.Value, got.Warnings)
		}
	}
}

// What is there to be pressed takes no text; what has a role may.
func TestTextForWhatIsPressed(t *testing.T) {
	s := stage(t, `<title>T</title><button>B</button><input type=submit><a href="#x">A</a><details><summary>S</summary></details><button role=combobox onkeydown="log.push(event.key)">C</button>`)
	for _, sel := range []string{"button", "input", "a", "summary"} {
		_, err := s.Type(s.ctx(5*time.Second), &browserv1.TypeRequest{Target: css(sel), Text: "x"})
		s.fails(err, fault.UnsupportedTarget, "")
	}
	if _, err := s.Type(s.ctx(5*time.Second), &browserv1.TypeRequest{Target: css("[role]"), Text: "x"}); err != nil {
		t.Error(err)
	}
	s.want("log.join()", `"x"`)
}

// A forced press says what it went to when that is not the element.
func TestForcedPressTellsWhatItHit(t *testing.T) {
	s := stage(t, `<title>T</title><button id=b style="position:absolute;left:20px;top:20px">B</button><div id=lid style="position:absolute;inset:0" onclick="log.push('lid')"></div>
<button id=free style="position:absolute;left:20px;top:120px;z-index:2">F</button>`)
	w, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("#b"), Force: true})
	if err != nil || len(w) != 1 || w[0].GetCode() != "covered" {
		t.Errorf("the forced click said %v, %v", w, err)
	}
	s.want("log.join()", `"lid"`)
	if w, err := s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("#free"), Force: true}); err != nil || len(w) != 0 {
		t.Errorf("a click that needed no force said %v, %v", w, err)
	}
}

// A drawing without a filling is pressed on its line.
func TestRing(t *testing.T) {
	s := stage(t, `<title>T</title><svg width=200 height=200><g role=button aria-label=Ring tabindex=0 onclick="log.push('ring')">
<path d="M100 20 a80 80 0 1 1 -1 0" fill=none stroke=red stroke-width=6 /></g></svg>`)
	s.click(css("path"))
	s.click(css("g"))
	s.want("log.join()", `"ring,ring"`)
}
