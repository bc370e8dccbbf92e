package policy

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
)

// AdminLabel is the label of clients that see and close the sessions of others, and that drain and restart providers.
const AdminLabel = "admin"

// ClientBlock is what the config says of one client.
type ClientBlock struct {
	// Name is the name of a token, or of the local user.
	Name string
	// Labels come to those of the token.
	Labels []string
	// Limits are the client's own; zero fields leave the file's limits in force.
	Limits Limits
	// Where is the file and line of the block.
	Where string
}

type clientSpec struct {
	Name     string       `hcl:"name,label"`
	At       hcl.Range    `hcl:",def_range"`
	NameAt   hcl.Range    `hcl:"name,label_range"`
	Labels   []string     `hcl:"labels,optional"`
	LabelsAt hcl.Range    `hcl:"labels,attr_value_range"`
	Limits   []limitsSpec `hcl:"limits,block"`
}

type limitsSpec struct {
	At         hcl.Range `hcl:",def_range"`
	Sessions   *int      `hcl:"sessions,optional"`
	SessionsAt hcl.Range `hcl:"sessions,attr_value_range"`
	Calls      *int      `hcl:"calls,optional"`
	CallsAt    hcl.Range `hcl:"calls,attr_value_range"`
	Rate       *int      `hcl:"calls_per_second,optional"`
	RateAt     hcl.Range `hcl:"calls_per_second,attr_value_range"`
	Bytes      *string   `hcl:"bytes_per_minute,optional"`
	BytesAt    hcl.Range `hcl:"bytes_per_minute,attr_value_range"`
}

var (
	labelName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/-]{0,63}$`)
	byteCount = regexp.MustCompile(`^([0-9]{1,9})(B|KiB|MiB|GiB)$`)
)

func (l *loader) client(s *clientSpec) {
	c := &ClientBlock{Name: s.Name, Labels: s.Labels, Where: place(s.At)}
	l.named(s.Name, s.NameAt, "client")
	if o := l.config.Client(s.Name); o != nil {
		l.wrong(s.NameAt, "Duplicate client", "There is a client %q at %s already.", s.Name, o.Where)
	}
	for i, label := range s.Labels {
		if !labelName.MatchString(label) {
			l.wrong(s.LabelsAt, "Not a label", "%q cannot be a label: letters, digits, - _ . : and / only, at most 64.", label)
		} else if slices.Contains(s.Labels[:i], label) {
			l.wrong(s.LabelsAt, "Duplicate label", "%q stands twice in labels.", label)
		}
	}
	if b, ok := once(l, "limits", s.Limits, func(b limitsSpec) hcl.Range { return b.At }); ok {
		if b.Calls != nil {
			l.wrong(b.CallsAt, "Not a client's limit", "calls is of a connection; it stands in the limits of the file. calls_per_second is of a client.")
		}
		l.limits(b, &c.Limits)
	}
	l.config.Clients = append(l.config.Clients, c)
}

func (l *loader) limits(b limitsSpec, into *Limits) {
	l.count(b.Sessions, b.SessionsAt, "sessions", 0, &into.Sessions)
	l.count(b.Calls, b.CallsAt, "calls", 1, &into.Calls)
	l.count(b.Rate, b.RateAt, "calls_per_second", 1, &into.CallsPerSecond)
	if b.Bytes == nil {
		return
	}
	m := byteCount.FindStringSubmatch(*b.Bytes)
	if m == nil {
		l.wrong(b.BytesAt, "Not a size", "bytes_per_minute must be a size such as \"64MiB\" or \"1GiB\", not %q.", *b.Bytes)
		return
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // the expression lets nothing else through
	into.BytesPerMinute = n << map[string]int{"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
	if into.BytesPerMinute == 0 {
		l.wrong(b.BytesAt, "Not a size", "bytes_per_minute must be above zero.")
	}
}

// Client gives the block of a client; nil where there is none.
func (c *Config) Client(name string) *ClientBlock {
	for _, b := range c.Clients {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// Known gives a client with the labels that its block adds.
func (c *Config) Known(client Client) Client {
	b := c.Client(client.Name)
	if b == nil || len(b.Labels) == 0 {
		return client
	}
	client.Labels = slices.Compact(slices.Sorted(slices.Values(slices.Concat(client.Labels, b.Labels))))
	return client
}

// LimitsOf gives the limits of a client: its own, and the file's where it has none.
func (c *Config) LimitsOf(name string) Limits {
	out := c.Limits
	if b := c.Client(name); b != nil {
		if b.Limits.Sessions > 0 {
			out.Sessions = b.Limits.Sessions
		}
		if b.Limits.CallsPerSecond > 0 {
			out.CallsPerSecond = b.Limits.CallsPerSecond
		}
		if b.Limits.BytesPerMinute > 0 {
			out.BytesPerMinute = b.Limits.BytesPerMinute
		}
	}
	return out
}

// Audit says where the audit log goes.
type Audit struct {
	// File is the log, absolute; empty for none.
	File string
	// MaxMB is how many megabytes a file has at most before the next begins.
	MaxMB int
	// Keep is how many older files are kept.
	Keep int
	// Days is how long older files are kept; 0 for ever.
	Days int
}

type auditSpec struct {
	At     hcl.Range `hcl:",def_range"`
	File   string    `hcl:"file"`
	FileAt hcl.Range `hcl:"file,attr_value_range"`
	MaxMB  *int      `hcl:"max_mb,optional"`
	MaxAt  hcl.Range `hcl:"max_mb,attr_value_range"`
	Keep   *int      `hcl:"keep,optional"`
	KeepAt hcl.Range `hcl:"keep,attr_value_range"`
	Days   *int      `hcl:"days,optional"`
	DaysAt hcl.Range `hcl:"days,attr_value_range"`
}

func (l *loader) audit(b auditSpec) {
	a := Audit{File: b.File, MaxMB: 100, Keep: 5}
	if b.File == "" && b.FileAt.Filename != "" {
		l.wrong(b.FileAt, "Not an absolute path", "file must be an absolute path.")
	}
	l.absolute(b.File, b.FileAt, "file")
	l.count(b.MaxMB, b.MaxAt, "max_mb", 1, &a.MaxMB)
	l.count(b.Keep, b.KeepAt, "keep", 1, &a.Keep)
	l.count(b.Days, b.DaysAt, "days", 0, &a.Days)
	l.config.Audit = a
}
