package policy

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// LoadError is everything that is wrong with a config file.
type LoadError struct {
	// Diagnostics are the mistakes, each with its place.
	Diagnostics hcl.Diagnostics

	files  map[string]*hcl.File
	syntax bool // it could not be parsed
}

var _ error = (*LoadError)(nil)

// Error tells every mistake with file, line and snippet, 80 columns wide.
func (e *LoadError) Error() string {
	var b bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&b, e.files, 80, false).WriteDiagnostics(e.Diagnostics); err != nil {
		return e.Diagnostics.Error()
	}
	return strings.TrimSpace(b.String())
}
