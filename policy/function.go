package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Function is one function that a condition may call, with its line of documentation.
type Function struct{ Call, Doc string }

// Functions lists the functions that a condition may call.
func Functions() []Function {
	out := make([]Function, len(functionTable))
	for i, f := range functionTable {
		out[i] = Function{f.call, f.doc}
	}
	return out
}

// functionRow is a function with the types that it takes and gives.
type functionRow struct {
	call, doc string
	gives     cty.Type
	takes     []cty.Type
	do        func([]value) (value, error)
}

var (
	texts = cty.List(cty.String)
	twice = []cty.Type{cty.String, cty.String}
)

var functionTable = []functionRow{
	{"contains(list, word)", "The word stands in the list.", cty.Bool, []cty.Type{texts, cty.String}, test(func(a, b value) bool { return slices.Contains(a.list, b.text) })},
	{"intersects(list, list)", "The lists have a word in common.", cty.Bool, []cty.Type{texts, texts}, test(func(a, b value) bool {
		return slices.ContainsFunc(a.list, func(w string) bool { return slices.Contains(b.list, w) })
	})},
	{"startswith(text, prefix)", "The text begins with the prefix.", cty.Bool, twice, test(func(a, b value) bool { return strings.HasPrefix(a.text, b.text) })},
	{"endswith(text, suffix)", "The text ends with the suffix.", cty.Bool, twice, test(func(a, b value) bool { return strings.HasSuffix(a.text, b.text) })},
	{"matches(text, regexp)", "The regular expression (RE2) matches somewhere in the text.", cty.Bool, twice, func(in []value) (value, error) {
		return matches(in[0].text, in[1].text)
	}},
	{"glob(text, pattern)", "The glob matches the whole text: * stands for any run of characters, ? for one.", cty.Bool, twice, test(func(a, b value) bool { return Glob(b.text, a.text) })},
	{"cidr(address, network)", "The text is an address of the network, such as 10.0.0.0/8; a name is of none.", cty.Bool, twice, func(in []value) (value, error) {
		return inCIDR(in[0].text, in[1].text)
	}},
	{"domain(host, domain)", "The host is the domain or lies below it.", cty.Bool, twice, test(func(a, b value) bool { return a.text == b.text || strings.HasSuffix(a.text, "."+b.text) })},
	{"lower(text)", "The text in lower case.", cty.String, twice[:1], func(in []value) (value, error) { return value{text: strings.ToLower(in[0].text)}, nil }},
	{"upper(text)", "The text in upper case.", cty.String, twice[:1], func(in []value) (value, error) { return value{text: strings.ToUpper(in[0].text)}, nil }},
	{"length(list)", "How many words the list has.", cty.Number, []cty.Type{texts}, func(in []value) (value, error) { return value{num: float64(len(in[0].list))}, nil }},
	{"split(separator, text)", "The parts of the text, as a list.", texts, twice, func(in []value) (value, error) { return value{list: strings.Split(in[1].text, in[0].text)}, nil }},
	{"replace(text, part, by)", "The text with every such part replaced.", cty.String, []cty.Type{cty.String, cty.String, cty.String}, func(in []value) (value, error) {
		return value{text: strings.ReplaceAll(in[0].text, in[1].text, in[2].text)}, nil
	}},
}

func test(f func(a, b value) bool) func([]value) (value, error) {
	return func(in []value) (value, error) { return value{yes: f(in[0], in[1])}, nil }
}

// name is the function's own, without its arguments.
func (f *functionRow) name() string {
	name, _, _ := strings.Cut(f.call, "(")
	return name
}

func functionNamed(name string) *functionRow {
	for i := range functionTable {
		if functionTable[i].name() == name {
			return &functionTable[i]
		}
	}
	return nil
}

// functions are those of the table as HCL checks them.
var functions = func() map[string]function.Function {
	out := map[string]function.Function{}
	for _, f := range functionTable {
		spec := &function.Spec{
			Type:         function.StaticReturnType(f.gives),
			RefineResult: func(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() },
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				in := make([]value, len(args))
				for i, a := range args {
					in[i] = fromCty(a)
				}
				x, err := f.do(in)
				return x.cty(f.gives), err
			},
		}
		for i, t := range f.takes {
			spec.Params = append(spec.Params, function.Parameter{Name: strings.TrimSpace(strings.Split(strings.TrimSuffix(f.call[len(f.name())+1:], ")"), ",")[i]), Type: t})
		}
		out[f.name()] = function.New(spec)
	}
	return out
}()

func fromCty(v cty.Value) value {
	switch {
	case v.Type() == cty.Bool:
		return value{yes: v.True()}
	case v.Type() == cty.Number:
		n, _ := v.AsBigFloat().Float64()
		return value{num: n}
	case v.Type() == cty.String:
		return value{text: v.AsString()}
	}
	var out []string
	for _, w := range v.AsValueSlice() {
		out = append(out, w.AsString())
	}
	return value{list: out}
}

func (x value) cty(t cty.Type) cty.Value {
	switch {
	case t == cty.Bool:
		return cty.BoolVal(x.yes)
	case t == cty.Number:
		return cty.NumberFloatVal(x.num)
	case t == cty.String:
		return cty.StringVal(x.text)
	case t.IsMapType():
		if len(x.dict) == 0 {
			return cty.MapValEmpty(cty.String)
		}
		out := map[string]cty.Value{}
		for k, w := range x.dict {
			out[k] = cty.StringVal(w)
		}
		return cty.MapVal(out)
	}
	if len(x.list) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	out := make([]cty.Value, len(x.list))
	for i, w := range x.list {
		out[i] = cty.StringVal(w)
	}
	return cty.ListVal(out)
}

// Glob says whether a glob matches a whole text: * stands for any run of characters, ? for one.
func Glob(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

func inCIDR(text, network string) (value, error) {
	n, err := netip.ParsePrefix(network)
	if err != nil {
		return value{}, fmt.Errorf("%q is no network such as 10.0.0.0/8", network)
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return value{yes: err == nil && n.Contains(unmap(a))}, nil
}

// compiled holds the regular expressions that conditions have used; they are few, being written in the file.
var compiled sync.Map

func matches(text, expr string) (value, error) {
	if re, ok := compiled.Load(expr); ok {
		return value{yes: re.(*regexp.Regexp).MatchString(text)}, nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return value{}, fmt.Errorf("%q is no regular expression: %w", expr, err)
	}
	compiled.Store(expr, re)
	return value{yes: re.MatchString(text)}, nil
}
