package inpage_test

import (
	"strings"
	"testing"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// A page of thirty thousand elements is still read, searched and clicked within the time of a call, on a busy machine too:
// work that grows with the square of the page would not be.
func TestBigPage(t *testing.T) {
	s := stage(t, `<h1>Ledger</h1><table id=t><tbody></tbody></table><p>End</p><script>let h='';for(let i=0;i<5000;i++)h+='<tr><td>Row '+i+'</td><td><a href="#r'+i+'">Entry '+i+'</a></td><td><button>Edit '+i+'</button></td></tr>';t.tBodies[0].innerHTML=h</script>`)
	took := func(what string, most time.Duration, fn func()) {
		t.Helper()
		began := time.Now()
		fn()
		d := time.Since(began)
		t.Logf("%s: %v", what, d)
		if d > most {
			t.Errorf("%s took %v", what, d)
		}
	}
	took("click by text", 6*time.Second, func() { s.click(words("Entry 4999")) })
	s.want("location.hash", `"#r4999"`)
	took("click by part of a text", 6*time.Second, func() { s.click(words("try 4998")) })
	took("click by selector", 5*time.Second, func() { s.click(css("tr:last-child a")) })
	all := int32(0)
	took("whole snapshot", 20*time.Second, func() {
		r := s.snap(&browserv1.SnapshotRequest{MaxNodes: &all})
		if n := len(r.GetElements()); n != 10000 {
			t.Errorf("%d elements", n)
		}
	})
	took("snapshot", 10*time.Second, func() { s.snap(&browserv1.SnapshotRequest{}) })
	took("outline", 10*time.Second, func() {
		r := s.snap(&browserv1.SnapshotRequest{MaxNodes: &all, Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum()})
		if !strings.Contains(r.GetOutline(), "Edit 4999") {
			t.Error("the outline has no end")
		}
	})
	took("wait for text", 5*time.Second, func() {
		if w, err := s.Wait(s.ctx(5*time.Second), &browserv1.WaitRequest{TextPresent: new("Row 4999")}, nil); err != nil || !w.Satisfied {
			t.Errorf("%+v %v", w, err)
		}
	})
}
