package inpage

import (
	"strings"
	"testing"
)

// What an extension brings along is the engine with its version left open, and the driver's version begins with its digest.
func TestBundle(t *testing.T) {
	script, engine := Bundle()
	if strings.Contains(script, "@VERSION@") || !strings.HasPrefix(script, "globalThis.__droverEngine = version => (") {
		t.Errorf("the bundle begins %.60q", script)
	}
	if !strings.HasPrefix(NewSession().version, engine+".") {
		t.Errorf("the engine is %s, a session's version %s", engine, NewSession().version)
	}
}

// The ref comes out of the expression that it went into, and out of no other.
func TestElementRef(t *testing.T) {
	for _, ref := range []string{"d1e4", `d"1`, "é"} {
		if got, ok := ElementRef(element(ref)); !ok || got != ref {
			t.Errorf("%q came back as %q", ref, got)
		}
	}
	for _, other := range []string{"", "document.body", `__drover.element("d1e4").parentNode`, `__drover.element(x)`} {
		if got, ok := ElementRef(other); ok {
			t.Errorf("%q gave the ref %q", other, got)
		}
	}
}
