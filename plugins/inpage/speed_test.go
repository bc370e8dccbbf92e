package inpage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/droverhq/drover/plugins/inpage"
	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

// What a snapshot costs in the page is told in bare walkers: a walker that visits the same nodes once, asks of each element
// no more than whether it is rendered and what its tag, role and label are, gives controls a number, and writes one line a
// node as JSON. Both run on the same page in turn, and are measured by the processor time of the page's thread, so that
// neither the machine nor what else runs on it decides.
const walker = `(() => {
	const numbers = new WeakMap(), out = [];
	let n = 0;
	const go = (el, depth) => {
		for (const c of el.childNodes) {
			if (c.nodeType === 3) { const s = c.data.trim(); if (s) out.push('  '.repeat(depth) + s); continue; }
			if (c.nodeType !== 1 || !c.checkVisibility()) continue;
			const tag = c.localName;
			let ref = '';
			if (tag === 'a' || tag === 'button' || tag === 'input') {
				let r = numbers.get(c);
				if (!r) numbers.set(c, r = 'e' + ++n);
				ref = ' [ref=' + r + ']';
			}
			out.push('  '.repeat(depth) + tag + (c.getAttribute('aria-label') ?? '') + (c.getAttribute('role') ?? '') + ref);
			go(c, depth + 1);
		}
	};
	go(document.body, 0);
	return String(JSON.stringify(out).length);
})()`

// The pages have about 35,000 nodes each: a table whose rows hold links and buttons, and styled cards.
var large = map[string]string{
	"table": "<title>Table</title><h1>Inventory</h1><table><tbody>" + many(3900, `<tr><td>Item %[1]d</td><td><a href="#%[1]d">details %[1]d</a></td><td><button>Add %[1]d</button></td></tr>`) + "</tbody></table>",
	"cards": `<title>Cards</title><style>.card{display:block;padding:4px}.tag{color:red}.card h3{margin:0}.btn{cursor:pointer}.icon::before{content:"*"}.up{text-transform:uppercase}</style><h1>Cards</h1><div class=grid>` +
		many(1520, `<div class="card" data-id="%[1]d"><h3><a href="#c%[1]d">Card %[1]d</a></h3><div class=meta><span class=tag>tag %[1]d</span><span>by <em>author %[1]d</em></span></div><p>Some text about card %[1]d with <strong>bold</strong> words.</p><label>Qty <input value="%[1]d"></label><button class=btn><i class=icon></i><span class=up>Buy %[1]d</span></button></div>`) + "</div>",
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// race measures the walker and the engine on the page in turn, and gives the medians in milliseconds of processor time.
func race(t testing.TB, s *scene, want string, rounds int) (bare, engine float64) {
	t.Helper()
	read := fmt.Sprintf(`String(__drover.call('read', {want: {%s: true}, roots: true}, 1).length)`, want)
	ctx := t.Context()
	must(t, browser.send(ctx, s.tab.session, "Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil))
	frame, err := s.tab.MainFrame(ctx)
	must(t, err)
	_, err = s.tab.Eval(ctx, frame, inpage.NewSession().Script())
	must(t, err)
	busy := func() float64 {
		var got struct {
			Metrics []struct {
				Name  string
				Value float64
			}
		}
		must(t, browser.send(ctx, s.tab.session, "Performance.getMetrics", nil, &got))
		for _, m := range got.Metrics {
			if m.Name == "TaskDuration" {
				return m.Value * 1000
			}
		}
		t.Fatal("the browser measures no TaskDuration")
		return 0
	}
	took := map[string][]float64{}
	for i := range rounds + 2 { // The first rounds warm the compiler up.
		for _, script := range []string{walker, read} {
			before := busy()
			size, err := s.tab.Eval(ctx, frame, script)
			must(t, err)
			if n, _ := strconv.Atoi(size); n < 100_000 {
				t.Fatalf("only %s bytes were read", size)
			}
			if i >= 2 {
				took[script] = append(took[script], busy()-before)
			}
		}
	}
	for _, times := range took {
		slices.Sort(times)
	}
	return took[walker][rounds/2], took[read][rounds/2]
}

// Reading a large page costs a small multiple of visiting its nodes, whatever the page is made of. The bound is generous: it
// is there for work that grows with the square of the page, or asks for the style of every element. BenchmarkRead tells
// the real ratio.
func TestReadingCostsLittleMoreThanWalking(t *testing.T) {
	for name, page := range large {
		for _, want := range []string{"outline", "nodes"} {
			bare, engine := race(t, stage(t, page), want, 5)
			t.Logf("%s, %s: walker %.0f ms, engine %.0f ms, ratio %.2f", name, want, bare, engine, engine/bare)
			if engine > 4*bare {
				t.Errorf("%s, %s: the engine takes %.2f times what a bare walker takes", name, want, engine/bare)
			}
		}
	}
}

// BenchmarkRead measures reading 35,000 nodes in the page, in processor time and in bare walkers.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"table", "cards"} {
		for _, want := range []string{"outline", "nodes"} {
			b.Run(name+"/"+want, func(b *testing.B) {
				s := stage(b, large[name])
				bare, engine := race(b, s, want, max(b.N, 9))
				b.ReportMetric(0, "ns/op") // Half of it is the walker's, and setting up.
				b.ReportMetric(engine, "ms-engine")
				b.ReportMetric(bare, "ms-walker")
				b.ReportMetric(engine/bare, "walkers")
			})
		}
	}
}

// BenchmarkSnapshot measures the driver's whole way on 10,000 nodes: the engine, the browser's wire, decoding and stitching.
func BenchmarkSnapshot(b *testing.B) {
	page := "<title>Table</title><h1>Inventory</h1><table><tbody>" + many(1111, `<tr><td>Item %[1]d</td><td><a href="#%[1]d">details %[1]d</a></td><td><button>Add %[1]d</button></td></tr>`) + "</tbody></table>"
	for name, req := range snapshotForms {
		b.Run(name, func(b *testing.B) {
			s := stage(b, page)
			s.snap(req)
			for b.Loop() {
				s.snap(req)
			}
		})
	}
}

// snapshotForms are the two ways to ask for a whole page.
var snapshotForms = map[string]*browserv1.SnapshotRequest{
	"nodes":   {MaxNodes: new(int32), IncludeText: new(bool)},
	"outline": {MaxNodes: new(int32), IncludeText: new(bool), Format: browserv1.SnapshotFormat_SNAPSHOT_FORMAT_OUTLINE.Enum()},
}

// The engine's nodes say nothing that is empty or does not hold: half of a large answer would be that.
func TestNodesSayNoMoreThanTheyMust(t *testing.T) {
	s := stage(t, `<title>Few</title><p>Words</p><button disabled>No</button><button>Yes</button>`)
	s.snap(snapshotForms["nodes"])
	frame, err := s.tab.MainFrame(t.Context())
	must(t, err)
	text, err := s.tab.Eval(t.Context(), frame, `__drover.call('read', {want: {nodes: true}}, 1)`)
	must(t, err)
	var got struct {
		Value struct{ Nodes []map[string]any }
	}
	must(t, json.Unmarshal([]byte(text), &got))
	var keys []string
	for _, n := range got.Value.Nodes {
		ks := []string{}
		for k := range n {
			ks = append(ks, k)
		}
		slices.Sort(ks)
		keys = append(keys, strings.Join(ks, " "))
	}
	want := []string{"children name role", "name ref role text", "disabled name ref role selector_hint", "actionable name ref role selector_hint"}
	if !slices.Equal(keys, want) {
		t.Errorf("the nodes say %q, want %q", keys, want)
	}
}
