package mcp

import (
	"encoding/json"
	"testing"
)

func TestBytes(t *testing.T) {
	total := 0
	n := 0
	for _, tl := range tools() {
		b, _ := json.Marshal(tl.lean)
		if tl.in([]string{"core"}) {
			total += len(b) + 1
			n++
			p, _ := json.Marshal(tl.whole)
			t.Log(tl.name, len(b), len(p), string(b))
		}
	}
	t.Log("total", total, n)
}
