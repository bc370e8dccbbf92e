package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
	"github.com/droverhq/drover/proto/catalog"
)

// Outcome is what a report says of a provider or of one of its methods.
type Outcome string

// The outcomes, the best one first. None means that nothing was judged.
const (
	Certified    Outcome = "certified"
	Compatible   Outcome = "compatible"
	Experimental Outcome = "experimental"
	None         Outcome = "candidate"
)

// Tier is the outcome as provider.describe tells it.
func (o Outcome) Tier() browserv1.CertificationTier {
	switch o {
	case Certified:
		return browserv1.CertificationTier_CERTIFICATION_TIER_CERTIFIED
	case Compatible:
		return browserv1.CertificationTier_CERTIFICATION_TIER_COMPATIBLE
	case Experimental:
		return browserv1.CertificationTier_CERTIFICATION_TIER_EXPERIMENTAL
	case None:
	}
	return browserv1.CertificationTier_CERTIFICATION_TIER_CANDIDATE
}

// Status is how a check went.
type Status string

// What a check can be. One is skipped when the provider does not list a method or feature that it needs.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Result is how one check went.
type Result struct {
	// ID is the check's name, METHOD/NAME or GROUP/NAME.
	ID string `json:"id"`
	// Method is the method that it judges; empty for one that is about the provider as a whole.
	Method string `json:"method,omitempty"`
	// Guards says what the check guards.
	Guards string `json:"guards"`
	Status Status `json:"status"`
	// Message says what was wrong, or why it was skipped.
	Message string `json:"message,omitempty"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS int64 `json:"duration_ms"`
}

// Report is what the suite found.
type Report struct {
	// Outcome is the provider's.
	Outcome Outcome `json:"outcome"`
	// Methods gives the outcome of every method that the provider lists and that was judged.
	Methods map[string]Outcome `json:"methods"`
	// Checks are all checks in the order they ran.
	Checks []Result `json:"checks"`

	// ProviderID, ProviderVersion and ProtocolVersion are what the provider says of itself.
	ProviderID      string `json:"provider_id"`
	ProviderVersion string `json:"provider_version,omitempty"`
	ProtocolVersion string `json:"protocol_version,omitempty"`
	// SuiteVersion is the version of the suite's checks.
	SuiteVersion string `json:"suite_version"`
	// SHA256 is the digest of the binary, in hexadecimal digits; empty where no binary was judged.
	SHA256 string `json:"sha256,omitempty"`
	// Only is the pattern of the methods that were judged, where not all were. Such a report certifies nothing.
	Only string `json:"only,omitempty"`
	// MTLS is false when the provider could only be reached without mutual TLS.
	MTLS bool `json:"mtls"`
	// At is when it was judged.
	At time.Time `json:"at"`
}

// SuiteVersion changes when the checks do, so that a report by an older suite can be told.
const SuiteVersion = "1"

// Count gives how many checks went each way.
func (r *Report) Count() (passed, failed, skipped int) {
	for _, c := range r.Checks {
		switch c.Status {
		case Pass:
			passed++
		case Fail:
			failed++
		case Skip:
			skipped++
		}
	}
	return passed, failed, skipped
}

// Failures lists the names of the checks that failed.
func (r *Report) Failures() []string {
	var out []string
	for _, c := range r.Checks {
		if c.Status == Fail {
			out = append(out, c.ID)
		}
	}
	return out
}

// judge fills in the outcomes from the checks. A method is certified when none of its checks failed, compatible when most
// passed, experimental otherwise. A provider is certified when it has every core method, and everything that it lists and
// everything about it as a whole is certified; compatible when its core methods are at least that; experimental otherwise.
func (r *Report) judge(listed []string) {
	passed, failed := map[string]int{}, map[string]int{}
	for _, c := range r.Checks {
		switch c.Status {
		case Pass:
			passed[c.Method]++
		case Fail:
			failed[c.Method]++
		case Skip:
		}
	}
	r.Methods = map[string]Outcome{}
	for _, name := range listed {
		if passed[name]+failed[name] > 0 {
			r.Methods[name] = outcomeOf(passed[name], failed[name])
		}
	}
	r.Outcome = r.overall(listed, failed[""])
}

func outcomeOf(passed, failed int) Outcome {
	switch {
	case failed == 0:
		return Certified
	case passed > failed:
		return Compatible
	}
	return Experimental
}

func (r *Report) overall(listed []string, wrong int) Outcome {
	out := Certified
	if wrong > 0 {
		out = Compatible
	}
	for _, o := range r.Methods {
		if o != Certified {
			out = Compatible
		}
	}
	ran := 0
	for _, m := range catalog.All() {
		if !m.Core() || !m.Routed() || r.Only != "" && r.Methods[m.Name] == "" {
			continue
		}
		ran++
		if !slices.Contains(listed, m.Name) || r.Methods[m.Name] == Experimental || r.Methods[m.Name] == "" {
			return Experimental
		}
	}
	if ran == 0 && len(r.Methods) == 0 {
		return Experimental
	}
	return out
}

// Summary is the report in one line for a person.
func (r *Report) Summary() string {
	p, f, s := r.Count()
	return fmt.Sprintf("%s is %s: %d checks passed, %d failed, %d do not apply", r.ProviderID, r.Outcome, p, f, s)
}

// JSON writes the report with a line break at its end.
func (r *Report) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	return append(data, '\n'), err
}

// methodMatches says whether a method is meant by a pattern: names or page.*, joined by commas; empty for all.
func methodMatches(pattern, method string) bool {
	if pattern == "" {
		return true
	}
	for _, p := range strings.Split(pattern, ",") {
		p = strings.TrimSpace(p)
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(method, prefix) || p == method {
			return true
		}
	}
	return false
}
