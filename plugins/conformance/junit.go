package conformance

import (
	"encoding/xml"
	"fmt"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report as the XML that build servers read.
func (r *Report) JUnit() ([]byte, error) {
	s := junitSuite{Name: "drover conformance: " + r.ProviderID, Tests: len(r.Checks)}
	_, s.Failures, s.Skipped = r.Count()
	for _, c := range r.Checks {
		class := c.Method
		if class == "" {
			class = "provider"
		}
		e := junitCase{Class: class, Name: c.ID, Time: fmt.Sprintf("%.3f", float64(c.DurationMS)/1000)}
		switch c.Status {
		case Fail:
			e.Failure = &junitMessage{Message: c.Message, Text: c.Guards}
		case Skip:
			e.Skipped = &junitMessage{Message: c.Message}
		case Pass:
		}
		s.Cases = append(s.Cases, e)
	}
	data, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
