package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The shape of the file. Ranges are kept where a value can be wrong in a way that HCL does not see.
type fileShape struct {
	Prefer      []string       `hcl:"prefer,optional"`
	PreferAt    hcl.Range      `hcl:"prefer,attr_value_range"`
	Providers   []providerSpec `hcl:"provider,block"`
	Listen      []listenSpec   `hcl:"listen,block"`
	Sessions    []sessionsSpec `hcl:"sessions,block"`
	Files       []filesSpec    `hcl:"files,block"`
	Passthrough []passSpec     `hcl:"passthrough,block"`
	Limits      []limitsSpec   `hcl:"limits,block"`
	Audit       []auditSpec    `hcl:"audit,block"`
	Clients     []clientSpec   `hcl:"client,block"`
	Guards      []guardSpec    `hcl:"guard,block"`
	Rules       []ruleSpec     `hcl:"rule,block"`
	Tests       []testSpec     `hcl:"test,block"`
}

type providerSpec struct {
	ID      string    `hcl:"id,label"`
	At      hcl.Range `hcl:",def_range"`
	LabelAt hcl.Range `hcl:"id,label_range"`
	Plugin  string    `hcl:"plugin,optional"`
	PlugAt  hcl.Range `hcl:"plugin,attr_value_range"`
	Path    string    `hcl:"path,optional"`
	PathAt  hcl.Range `hcl:"path,attr_value_range"`
	Env     []string  `hcl:"env,optional"`
	EnvAt   hcl.Range `hcl:"env,attr_value_range"`
	MTLS    *bool     `hcl:"mtls,optional"`
	Enabled *bool     `hcl:"enabled,optional"`
	Body    hcl.Body  `hcl:",remain"`
}

type listenSpec struct {
	At      hcl.Range `hcl:",def_range"`
	HTTP    string    `hcl:"http,optional"`
	HTTPAt  hcl.Range `hcl:"http,attr_value_range"`
	Socket  string    `hcl:"socket,optional"`
	SockAt  hcl.Range `hcl:"socket,attr_value_range"`
	Hosts   []string  `hcl:"hosts,optional"`
	Origins []string  `hcl:"origins,optional"`
}

type sessionsSpec struct {
	At         hcl.Range `hcl:",def_range"`
	Idle       *string   `hcl:"idle,optional"`
	IdleAt     hcl.Range `hcl:"idle,attr_value_range"`
	Grace      *string   `hcl:"grace,optional"`
	GraceAt    hcl.Range `hcl:"grace,attr_value_range"`
	Provider   *string   `hcl:"provider_idle,optional"`
	ProviderAt hcl.Range `hcl:"provider_idle,attr_value_range"`
	Exit       *string   `hcl:"exit,optional"`
	ExitAt     hcl.Range `hcl:"exit,attr_value_range"`
}

type filesSpec struct {
	At         hcl.Range `hcl:",def_range"`
	Upload     []string  `hcl:"upload,optional"`
	UploadAt   hcl.Range `hcl:"upload,attr_value_range"`
	Download   string    `hcl:"download,optional"`
	DownloadAt hcl.Range `hcl:"download,attr_value_range"`
}

// Known is what a file may name beside what it says itself. Empty lists are not checked.
type Known struct {
	// Methods are the protocol's methods, Features its features.
	Methods, Features []string
	// ReadOnly are the methods that change nothing.
	ReadOnly []string
	// Plugins are the names of the provider binaries that were found.
	Plugins []string
}

// Load reads a config file whole, or refuses it: the error is a *LoadError that tells every mistake with file, line and
// snippet. The filename is only told, nothing is read from it.
func Load(filename string, src []byte) (*Config, error) { return LoadWith(filename, src, Known{}) }

// LoadWith is Load that also checks the names of methods, features and plugins.
func LoadWith(filename string, src []byte, known Known) (*Config, error) {
	l := &loader{files: map[string]*hcl.File{}, config: Default(), known: known}
	if d := tooLarge(filename, src); d != nil {
		l.files[filename] = &hcl.File{Bytes: src[:min(len(src), maxBytes)]}
		return nil, &LoadError{Diagnostics: hcl.Diagnostics{d}, files: l.files, syntax: true}
	}
	file, diags := hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
	l.files[filename] = file
	l.diags = diags
	syntax := diags.HasErrors()
	if !syntax {
		var shape fileShape
		l.diags = append(l.diags, gohcl.DecodeBody(file.Body, nil, &shape)...)
		l.read(&shape)
	}
	if l.diags.HasErrors() {
		l.diags = slices.DeleteFunc(l.diags, func(d *hcl.Diagnostic) bool { return follows(d, l.diags) })
		for _, d := range l.diags {
			l.explain(d)
		}
		slices.SortStableFunc(l.diags, func(a, b *hcl.Diagnostic) int { return cmp.Compare(at(a), at(b)) })
		return nil, &LoadError{Diagnostics: l.diags, files: l.files, syntax: syntax}
	}
	sum := sha256.Sum256(src)
	l.config.File, l.config.Hash = filename, hex.EncodeToString(sum[:])
	return l.config, nil
}

// blocks are the kinds that a file has.
var blocks = []string{"provider", "listen", "sessions", "files", "passthrough", "limits", "audit", "client", "guard", "rule", "test"}

// explain says more than HCL's own words where a mistake is a common one.
func (l *loader) explain(d *hcl.Diagnostic) {
	if d.Subject == nil {
		return
	}
	text := l.files[d.Subject.Filename].Bytes
	switch {
	case d.Summary == "Unsupported block type" && d.Subject.Start.Column == 1:
		word := string(d.Subject.SliceBytes(text))
		d.Detail = fmt.Sprintf("There are no %q blocks.%s There are %s.", word, didYouMean(word, blocks), strings.Join(blocks, ", "))
	case d.Summary == "Missing newline after argument" && strings.HasPrefix(string(text[d.Subject.Start.Byte:]), "="):
		d.Detail += " To compare, write == in place of =."
	}
}

// at is where a diagnostic is about, in bytes.
func at(d *hcl.Diagnostic) int {
	if d.Subject == nil {
		return 0
	}
	return d.Subject.Start.Byte
}

// follows says that a diagnostic only repeats in HCL's words that a value is not known, which another one explains.
func follows(d *hcl.Diagnostic, all hcl.Diagnostics) bool {
	return d.Detail == "Unsuitable value: value must be known" && slices.ContainsFunc(all, func(o *hcl.Diagnostic) bool {
		return o != d && o.Subject != nil && d.Subject != nil && o.Subject.Start.Line == d.Subject.Start.Line
	})
}

type loader struct {
	files  map[string]*hcl.File
	diags  hcl.Diagnostics
	config *Config
	known  Known

	providerNames []string // of the blocks
}

func (l *loader) wrong(at hcl.Range, summary, detail string, args ...any) {
	l.diags = append(l.diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(detail, args...), Subject: at.Ptr(),
	})
}

// once refuses the second and later blocks of a kind that may stand once.
func once[T any](l *loader, kind string, blocks []T, at func(T) hcl.Range) (T, bool) {
	var none T
	if len(blocks) == 0 {
		return none, false
	}
	for _, b := range blocks[1:] {
		l.wrong(at(b), "Duplicate "+kind+" block", "There is a %s block at line %d already; a file has one.", kind, at(blocks[0]).Start.Line)
	}
	return blocks[0], true
}

func (l *loader) read(s *fileShape) {
	c := l.config
	for i := range s.Providers {
		l.provider(&s.Providers[i])
	}
	if b, ok := once(l, "listen", s.Listen, func(b listenSpec) hcl.Range { return b.At }); ok {
		l.listen(b)
	}
	if b, ok := once(l, "sessions", s.Sessions, func(b sessionsSpec) hcl.Range { return b.At }); ok {
		l.duration(b.Idle, b.IdleAt, "idle", &c.Sessions.Idle)
		l.duration(b.Grace, b.GraceAt, "grace", &c.Sessions.Grace)
		l.duration(b.Provider, b.ProviderAt, "provider_idle", &c.Sessions.ProviderIdle)
		l.duration(b.Exit, b.ExitAt, "exit", &c.Sessions.Exit)
	}
	if b, ok := once(l, "files", s.Files, func(b filesSpec) hcl.Range { return b.At }); ok {
		for _, dir := range b.Upload {
			l.absolute(dir, b.UploadAt, "upload")
		}
		l.absolute(b.Download, b.DownloadAt, "download")
		c.Files = Files{Upload: b.Upload, Download: b.Download, Where: place(b.At)}
	}
	if b, ok := once(l, "limits", s.Limits, func(b limitsSpec) hcl.Range { return b.At }); ok {
		l.limits(b, &c.Limits)
	}
	if b, ok := once(l, "audit", s.Audit, func(b auditSpec) hcl.Range { return b.At }); ok {
		l.audit(b)
	}
	for _, p := range s.Providers {
		l.providerNames = append(l.providerNames, p.ID)
	}
	l.prefer(s)
	for _, b := range s.Passthrough {
		l.passthrough(b)
	}
	for i := range s.Clients {
		l.client(&s.Clients[i])
	}
	for i := range s.Guards {
		l.guard(&s.Guards[i])
	}
	for i := range s.Rules {
		l.rule(&s.Rules[i])
	}
	for i := range s.Tests {
		l.test(&s.Tests[i])
	}
}

var (
	providerID = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`)
	customGlob = regexp.MustCompile(`^[a-z0-9_*?]+(\.[a-zA-Z0-9_*?]+)+$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// ownID is the provider_id of the broker itself.
const ownID = "drover"

func (l *loader) prefer(s *fileShape) {
	if s.Prefer != nil && len(s.Prefer) == 0 {
		l.wrong(s.PreferAt, "Empty prefer", "A list that prefers nothing says nothing; leave it out.")
	}
	known := make([]string, len(s.Providers))
	for i, p := range s.Providers {
		known[i] = p.ID
	}
	for i, id := range s.Prefer {
		switch {
		case slices.Contains(s.Prefer[:i], id):
			l.wrong(s.PreferAt, "Duplicate provider", "%q stands twice in prefer.", id)
		case len(known) > 0 && !slices.Contains(known, id):
			l.wrong(s.PreferAt, "Unknown provider", "There is no provider block %q.%s", id, didYouMean(id, known))
		case !providerID.MatchString(id):
			l.wrong(s.PreferAt, "Not a provider", "%q cannot be the name of a provider.", id)
		}
	}
	l.config.Prefer = s.Prefer
}

func (l *loader) listen(b listenSpec) {
	if b.HTTP != "" && b.HTTP != "off" && !hostPort(b.HTTP) {
		l.wrong(b.HTTPAt, "Not an address", "%q is no address to listen on; write 127.0.0.1:7333, :0 for any port, or off.", b.HTTP)
	}
	if b.Socket != "" && b.Socket != "off" {
		l.absolute(b.Socket, b.SockAt, "socket")
	}
	l.config.Listen = Listen{HTTP: b.HTTP, Socket: b.Socket, Hosts: b.Hosts, Origins: b.Origins}
}

func (l *loader) duration(text *string, at hcl.Range, name string, into *time.Duration) {
	if text == nil {
		return
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d <= 0 {
		l.wrong(at, "Not a duration", "%s must be a time above zero such as \"90s\", \"30m\" or \"1h\", not %q.", name, *text)
		return
	}
	*into = d
}

func (l *loader) count(n *int, at hcl.Range, name string, least int, into *int) {
	if n == nil {
		return
	}
	if *n < least {
		l.wrong(at, "Not a limit", "%s must be at least %d, not %d.", name, least, *n)
		return
	}
	*into = *n
}

func (l *loader) absolute(dir string, at hcl.Range, name string) {
	if dir != "" && !filepath.IsAbs(dir) {
		l.wrong(at, "Not an absolute path", "%s must be an absolute path, not %q.", name, dir)
	}
}

func didYouMean(word string, known []string) string {
	if n := nearest(word, known); n != "" {
		return fmt.Sprintf(" Did you mean %q?", n)
	}
	return ""
}
