package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/plugins/conformance"
	"github.com/droverhq/drover/plugins/host"
)

// Guards that the embedded report of every provider in this tree says what the conformance suite finds of it on its real
// browser, so that the tier which a shipped binary gets is what it earned and not what someone wrote.
func TestShippedReportsAreTrue(t *testing.T) {
	for name, binary := range map[string]string{"cdp": "drover-provider-cdp", "bidi": "judged-bidi"} {
		t.Run(name, func(t *testing.T) {
			h := setHomes(t)
			path, err := exec.LookPath(binary)
			if err != nil {
				t.Fatal(err)
			}
			r, err := conformance.JudgeBinary(t.Context(), findPlaces().runs(), host.Spec{ID: name, Path: path}, conformance.Options{ID: name})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if c.Status == conformance.Fail {
					t.Logf("%s: %s", c.ID, c.Message)
				}
			}
			if *update {
				writeShipped(t, name, r)
			}
			want, ok := conformance.ShippedReport(name)
			if !ok && !*update {
				t.Fatalf("there is no report of %s; run this test with -update", name)
			}
			if !*update && (r.Outcome != want.Outcome || !cmp.Equal(r.Methods, want.Methods)) {
				t.Errorf("%s is %s; the embedded report says %s (-report +found):\n%s", name, r.Outcome, want.Outcome, cmp.Diff(want.Methods, r.Methods))
			}
			if err := h.gone(true); err != nil {
				t.Error(err)
			}
		})
	}
}

// writeShipped writes a report without what differs from run to run.
func writeShipped(t *testing.T, name string, r *conformance.Report) {
	t.Helper()
	slim := *r
	slim.SHA256, slim.At = "", time.Time{}
	slim.Checks = nil
	for _, c := range r.Checks {
		c.DurationMS = 0
		slim.Checks = append(slim.Checks, c)
	}
	data, err := json.MarshalIndent(&slim, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "..", "plugins", "conformance", "reports", name+".json"), append(data, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
