package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/droverhq/drover/broker"
)

// Guards that the explanation of 10 providers under 30 rules fits a terminal of 80 columns and names each rule's place.
func TestExplanationFitsATerminal(t *testing.T) {
	x := &broker.Explanation{Method: "session.ensure", Allowed: true, Provider: "provider-0", Why: strings.Repeat("the rule of many words prefers it ", 5)}
	for i := range 10 {
		c := broker.ExplainedCandidate{Provider: fmt.Sprintf("provider-%d", i), Browser: "Chromium", Kept: i < 3}
		for r := range 3 * i {
			c.Reasons = append(c.Reasons, broker.Reason{Code: "policy", Message: "the rule keeps it out: " + strings.Repeat("because ", r), Where: fmt.Sprintf("/etc/drover/config.hcl:%d", r)})
		}
		x.Candidates = append(x.Candidates, c)
	}
	var out bytes.Buffer
	(&app{out: &out, err: &out}).writeRoute("", x)
	for _, line := range strings.Split(out.String(), "\n") {
		if utf8.RuneCountInString(line) > routeWidth {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	for _, want := range []string{"/etc/drover/config.hcl:26", "1. provider-0, Chromium", "- provider-9, Chromium"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %s", want)
		}
	}
}
