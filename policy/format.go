package policy

import "github.com/hashicorp/hcl/v2/hclwrite"

// Format gives a config file in its one layout. What it means does not change.
func Format(src []byte) []byte { return hclwrite.Format(src) }

// Mistake is one thing that is wrong with a config file, for programs.
type Mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
}

// Mistakes gives every mistake with its place.
func (e *LoadError) Mistakes() []Mistake {
	var out []Mistake
	for _, d := range e.Diagnostics {
		m := Mistake{Summary: d.Summary, Detail: d.Detail}
		if d.Subject != nil {
			m.File, m.Line, m.Column = d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column
		}
		out = append(out, m)
	}
	return out
}

// Syntax says that the file could not even be parsed.
func (e *LoadError) Syntax() bool { return e.syntax }
