package conformance

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	browserv1 "github.com/droverhq/drover/proto/browser/v1"
)

//go:embed reports
var shippedFiles embed.FS

// Store keeps reports by the digest of the binary that they are about. Another build has another digest, and no report.
type Store struct {
	// Dir is the folder of the reports that were made here, a file each.
	Dir string
	// Shipped gives the names of the providers that were built with this program, by their digests: their reports are
	// embedded.
	Shipped map[string]string

	mu    sync.Mutex
	known map[string]cached
}

// cached is what a digest's file said when it was last looked at.
type cached struct {
	looked time.Time
	tier   browserv1.CertificationTier
}

// again is how long a tier is taken for what it was.
const again = time.Second

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseShipped reads "cdp=DIGEST,bidi=DIGEST" into names by digest; what is not of that form is passed over.
func ParseShipped(text string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(text, ",") {
		if name, digest, ok := strings.Cut(strings.TrimSpace(part), "="); ok && digestPattern.MatchString(digest) {
			out[digest] = name
		}
	}
	return out
}

// Save keeps a report. One of a part of the methods, or of no binary, is refused.
func (s *Store) Save(r *Report) error {
	switch {
	case !digestPattern.MatchString(r.SHA256):
		return fmt.Errorf("the report is about no binary")
	case r.Only != "":
		return fmt.Errorf("the report is about %s alone", r.Only)
	}
	data, err := r.JSON()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.Dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), s.file(r.SHA256))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	s.mu.Lock()
	delete(s.known, r.SHA256)
	s.mu.Unlock()
	return err
}

func (s *Store) file(digest string) string { return filepath.Join(s.Dir, digest+".json") }

// Report gives what is known of a binary: the report that was made here, or the one that was shipped; false when there is
// none.
func (s *Store) Report(digest string) (*Report, bool) {
	if !digestPattern.MatchString(digest) {
		return nil, false
	}
	if s.Dir != "" {
		if data, err := os.ReadFile(s.file(digest)); err == nil {
			r := &Report{}
			if json.Unmarshal(data, r) == nil && r.SHA256 == digest && r.Only == "" {
				return r, true
			}
		}
	}
	if name, ok := s.Shipped[digest]; ok {
		if r, ok := ShippedReport(name); ok {
			r.SHA256 = digest
			return r, true
		}
	}
	return nil, false
}

// Tier gives the tier of a binary: what its report says, and candidate without one. A report that was made a moment ago is
// seen within a second.
func (s *Store) Tier(digest string) browserv1.CertificationTier {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.known[digest]; ok && time.Since(c.looked) < again {
		return c.tier
	}
	tier := None.Tier()
	if r, ok := s.Report(digest); ok {
		tier = r.Outcome.Tier()
	}
	if s.known == nil {
		s.known = map[string]cached{}
	}
	s.known[digest] = cached{time.Now(), tier}
	return tier
}

// ShippedReport gives the embedded report of a provider of this repository. Its tests run the suite and fail when the report
// says anything else.
func ShippedReport(name string) (*Report, bool) {
	data, err := shippedFiles.ReadFile("reports/" + name + ".json")
	if err != nil {
		return nil, false
	}
	r := &Report{}
	if json.Unmarshal(data, r) != nil {
		return nil, false
	}
	return r, true
}
