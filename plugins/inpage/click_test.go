package inpage_test

import (
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/fault"
)

func TestClickPlain(t *testing.T) {
	s := stage(t, `<button onclick="log.push('a:'+event.isTrusted)">Save</button>`)
	r := s.snap(&browserv1.SnapshotRequest{})
	s.click(byRef(s.ref(r, "button", "Save")))
	s.click(words("Save"))
	s.click(css("button"))
	s.want("log.join()", `"a:true,a:true,a:true"`)
	before := s.tab.evals
	s.click(css("button"))
	t.Logf("evaluations of a click: %d", s.tab.evals-before)
}

func TestClickMissing(t *testing.T) {
	s := stage(t, `<p>nothing`)
	began := time.Now()
	_, err := s.Click(s.ctx(500*time.Millisecond), &browserv1.ClickRequest{Target: css("#nothing")})
	s.fails(err, fault.ElementNotFound, "")
	if took := time.Since(began); took < 350*time.Millisecond || took > 650*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	_, err = s.Click(s.ctx(5*time.Second), &browserv1.ClickRequest{Target: css("p[")})
	s.fails(err, fault.InvalidSelector, "")
}
