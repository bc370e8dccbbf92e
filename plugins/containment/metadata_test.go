package containment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/plugins/containment"
	"github.com/droverhq/drover/proto/forbidden"
)

// Guards that Chromium is told of every place that no caller may open, in the spellings it has for them, and that rules of
// the configuration stay in force.
func TestWithoutMetadata(t *testing.T) {
	args := containment.WithoutMetadata([]string{"--a", "--host-resolver-rules=MAP x.test 127.0.0.1", "--b"})
	if len(args) != 3 || !slices.Equal(args[:2], []string{"--a", "--b"}) {
		t.Fatalf("the arguments are %v", args)
	}
	rules := strings.Split(strings.TrimPrefix(args[2], "--host-resolver-rules="), " , ")
	want := []string{"MAP x.test 127.0.0.1", "MAP ::ffff:a9fe:a9fe ~NOTFOUND", "MAP ::a9fe:a9fe ~NOTFOUND"}
	for _, h := range forbidden.Hosts {
		want = append(want, "MAP "+h+" ~NOTFOUND")
	}
	for _, a := range forbidden.Addrs {
		want = append(want, "MAP "+a.String()+" ~NOTFOUND")
	}
	for _, w := range want {
		if !slices.Contains(rules, w) {
			t.Errorf("%q is missing of %q", w, rules)
		}
	}
}
