package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// condition is the `when` of a rule or guard, checked. Its zero value always holds.
type condition struct {
	run  program
	expr hclsyntax.Expression
	text string // as it was written, blanks apart
	// parts are what all has to hold, as it was written.
	parts []string
	// reads are the objects that it reads.
	reads map[string]bool
	// families says that it reads provider.family.
	families bool
	// against is the variable of which it asks what contradicts itself; "" for none.
	against string
	// never says that it holds for nothing whatsoever, always that it holds for everything.
	never, always bool
}

// condition checks an expression against the table of variables: every part of it, also those that HCL would not come to.
// scope are the objects that it may read.
func (l *loader) condition(attr *hcl.Attribute, scope []string, what string) condition {
	if attr == nil {
		return condition{always: true}
	}
	expr, ok := attr.Expr.(hclsyntax.Expression)
	if !ok {
		return condition{always: true}
	}
	r := attr.Expr.Range()
	c := condition{expr: expr, text: l.textOf(expr), reads: map[string]bool{}}
	for _, part := range conjuncts(expr) {
		c.parts = append(c.parts, l.textOf(part))
	}
	k := &checker{loader: l, scope: scope, what: what, cond: &c, ctx: &hcl.EvalContext{Variables: unknowns(), Functions: functions}}
	before := len(l.diags)
	k.walk(expr)
	if len(l.diags) > before {
		return c
	}
	v, diags := expr.Value(k.ctx)
	l.diags = append(l.diags, diags...)
	switch {
	case diags.HasErrors():
	case v.Type() != cty.Bool || v.IsNull():
		l.wrong(r, "Not a condition", "when must be true or false; this is a %s.", v.Type().FriendlyName())
	case v.IsKnown() && v.False():
		c.never = true
	case v.IsKnown():
		c.always = true
	}
	if !diags.HasErrors() && !v.IsKnown() {
		c.against = k.impossible(expr)
		c.never = c.never || c.against != ""
	}
	c.run = compile(expr, k.ctx)
	return c
}

// nothing says why it holds for nothing.
func (c *condition) nothing() string {
	if c.against == "" {
		return "holds for nothing"
	}
	return "holds for nothing: what it asks of " + c.against + " contradicts itself"
}

// covers says that this condition holds whenever another does, as far as that is plain: it always holds, or everything that
// it asks for is asked for by the other too.
func (c *condition) covers(o *condition) bool {
	if c.always {
		return true
	}
	return len(c.parts) > 0 && !slices.ContainsFunc(c.parts, func(p string) bool { return !slices.Contains(o.parts, p) })
}

// checker walks through a condition.
type checker struct {
	*loader
	scope []string
	what  string
	cond  *condition
	ctx   *hcl.EvalContext
}

// walk checks the parts of a node first, then the node itself when they were right.
func (k *checker) walk(e hclsyntax.Expression) {
	before := len(k.diags)
	switch e := e.(type) {
	case *hclsyntax.ForExpr, *hclsyntax.SplatExpr:
		k.wrong(e.Range(), "Not in a condition", "A condition has no for and no [*]; use contains or intersects.")
		return
	case *hclsyntax.ScopeTraversalExpr:
		k.traversal(e)
		return
	case *hclsyntax.BinaryOpExpr:
		k.walk(e.LHS)
		k.walk(e.RHS)
		if len(k.diags) == before {
			k.binary(e)
		}
	case *hclsyntax.UnaryOpExpr:
		k.walk(e.Val)
	case *hclsyntax.ParenthesesExpr:
		k.walk(e.Expression)
	case *hclsyntax.ConditionalExpr:
		k.walk(e.Condition)
		k.walk(e.TrueResult)
		k.walk(e.FalseResult)
	case *hclsyntax.FunctionCallExpr:
		for _, a := range e.Args {
			k.walk(a)
		}
		if len(k.diags) == before {
			k.call(e)
		}
	case *hclsyntax.TupleConsExpr:
		for _, x := range e.Exprs {
			k.walk(x)
		}
	case *hclsyntax.IndexExpr:
		k.walk(e.Collection)
		k.walk(e.Key)
	case *hclsyntax.TemplateExpr:
		for _, x := range e.Parts {
			k.walk(x)
		}
	case *hclsyntax.TemplateWrapExpr:
		k.walk(e.Wrapped)
	case *hclsyntax.LiteralValueExpr:
		return
	default:
		k.wrong(e.Range(), "Not in a condition", "A condition is made of variables, texts, numbers, lists, functions and operators.")
		return
	}
	if len(k.diags) > before {
		return
	}
	_, diags := e.Value(k.ctx)
	k.diags = append(k.diags, diags...)
}

// traversal checks the name of a variable.
func (k *checker) traversal(e *hclsyntax.ScopeTraversalExpr) {
	root := e.Traversal.RootName()
	if !slices.Contains(objects, root) {
		quoted := ""
		if len(e.Traversal) == 1 {
			quoted = fmt.Sprintf(" For the text, write %q with its quotes.", root)
		}
		k.wrong(e.Traversal[0].SourceRange(), "Unknown variable", "There is no variable %q.%s A condition reads %s.%s", root, didYouMean(root, objects), strings.Join(k.scope, ", "), quoted)
		return
	}
	if !slices.Contains(k.scope, root) {
		k.wrong(e.Range(), "Variable out of place", "The condition of a %s cannot read %s; it reads %s.", k.what, root, strings.Join(k.scope, ", "))
		return
	}
	k.cond.reads[root] = true
	if len(e.Traversal) < 2 {
		k.wrong(e.Range(), "Not a value", "%s is an object; say which of its attributes: %s.", root, strings.Join(attributes(root), ", "))
		return
	}
	attr, ok := e.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		k.wrong(e.Range(), "Not a value", "Write %s.NAME with one of %s.", root, strings.Join(attributes(root), ", "))
		return
	}
	v, ok := find(root, attr.Name)
	if !ok {
		k.wrong(attr.SourceRange(), "Unknown attribute", "%s has no attribute %q.%s It has %s.", root, attr.Name, didYouMean(attr.Name, attributes(root)), strings.Join(attributes(root), ", "))
		return
	}
	if root == "provider" && attr.Name == "family" {
		k.cond.families = true
	}
	if len(e.Traversal) > 2 {
		if v.Type != "map(string)" {
			k.wrong(e.Range(), "Not an object", "%s.%s is a %s and has no parts.", root, attr.Name, v.Type)
			return
		}
		if _, ok := keyOf(e.Traversal[2]); !ok || len(e.Traversal) > 3 {
			k.wrong(e.Range(), "Not a key", "Write %s.%s.KEY or %s.%s[\"KEY\"].", root, attr.Name, root, attr.Name)
			return
		}
	}
}

func keyOf(t hcl.Traverser) (string, bool) {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return t.Name, true
	case hcl.TraverseIndex:
		if t.Key.Type() == cty.String && t.Key.IsKnown() && !t.Key.IsNull() {
			return t.Key.AsString(), true
		}
	}
	return "", false
}

// binary refuses comparisons that can never be what was meant.
func (k *checker) binary(e *hclsyntax.BinaryOpExpr) {
	if e.Op != hclsyntax.OpEqual && e.Op != hclsyntax.OpNotEqual {
		for _, side := range []hclsyntax.Expression{e.LHS, e.RHS} {
			v, _ := side.Value(k.ctx)
			if want := operand(e.Op); v.Type() != want && v.Type() != cty.DynamicPseudoType {
				k.wrong(side.Range(), "Wrong type", "This operator takes a %s, not a %s.", want.FriendlyName(), v.Type().FriendlyName())
			}
		}
		return
	}
	a, _ := e.LHS.Value(k.ctx)
	b, _ := e.RHS.Value(k.ctx)
	if a.IsNull() || b.IsNull() {
		k.wrong(e.Range(), "Comparison with null", "No variable is ever null; compare with \"\", or leave it out.")
		return
	}
	if a.Type() != b.Type() {
		hint := ""
		for _, side := range [][2]hclsyntax.Expression{{e.LHS, e.RHS}, {e.RHS, e.LHS}} {
			if l, _ := side[0].Value(k.ctx); l.Type().IsListType() || l.Type().IsTupleType() {
				hint = fmt.Sprintf(" Write contains(%s, %s).", k.textOf(side[0]), k.textOf(side[1]))
			}
		}
		k.wrong(e.Range(), "Comparison of different types", "A %s never equals a %s.%s", a.Type().FriendlyName(), b.Type().FriendlyName(), hint)
		return
	}
	k.word(e.LHS, e.RHS, b)
	k.word(e.RHS, e.LHS, a)
}

// operand is the type that an operator takes.
func operand(op *hclsyntax.Operation) cty.Type {
	if op == hclsyntax.OpLogicalAnd || op == hclsyntax.OpLogicalOr {
		return cty.Bool
	}
	return cty.Number
}

// word refuses a word that a variable never has.
func (k *checker) word(variable, other hclsyntax.Expression, value cty.Value) {
	t, ok := variable.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 2 || !value.IsWhollyKnown() || value.Type() != cty.String {
		return
	}
	attr, ok := t.Traversal[1].(hcl.TraverseAttr)
	if !ok {
		return
	}
	name := t.Traversal.RootName() + "." + attr.Name
	v, _ := find(t.Traversal.RootName(), attr.Name)
	words := v.Words
	switch name {
	case "method.name":
		words = k.known.Methods
	case "provider.id":
		if len(k.config.Providers) > 0 {
			words = k.providerIDs()
		}
	}
	word := value.AsString()
	switch {
	case strings.ContainsAny(word, "*?") && slices.Contains(plain, name):
		k.wrong(other.Range(), "Not a pattern", "== compares letter by letter. Write glob(%s, %q).", name, word)
	case len(words) > 0 && !slices.Contains(words, word):
		k.wrong(other.Range(), "Unknown word", "%s is never %q.%s", name, word, suggest(word, words))
	case (name == "url.host" || name == "url.scheme") && (word != strings.ToLower(word) || strings.ContainsAny(word, ":/ ") && !strings.Contains(word, "::") || strings.HasSuffix(word, ".")):
		k.wrong(other.Range(), "Unknown word", "%s is never %q: it is %s.", name, word, shape[name])
	}
}

// plain are variables whose words have no star and no question mark.
var plain = []string{"method.name", "method.group", "method.custom", "url.scheme", "url.host", "url.domain", "client.name", "provider.id", "provider.plugin"}

// shape says what the words of a variable look like.
var shape = map[string]string{
	"url.host":   "a name in lower case, or an address, without scheme, port and path",
	"url.scheme": "a word in lower case such as https, without the colon",
}

// suggest names the nearest word, or all of them where they are few.
func suggest(word string, words []string) string {
	if s := didYouMean(word, words); s != "" {
		return s
	}
	switch {
	case len(words) == 0:
		return " There is none."
	case len(words) > 6:
		return ""
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return " It is one of " + strings.Join(quoted, ", ") + "."
}

// call checks a function's name, and what only shows when it is called.
func (k *checker) call(e *hclsyntax.FunctionCallExpr) {
	if _, ok := functions[e.Name]; !ok {
		var names []string
		for name := range functions {
			names = append(names, name)
		}
		slices.Sort(names)
		k.wrong(e.NameRange, "Unknown function", "There is no function %q.%s There are %s.", e.Name, didYouMean(e.Name, names), strings.Join(names, ", "))
		return
	}
	for i, a := range e.Args {
		v, _ := a.Value(k.ctx)
		p := functions[e.Name].Params()
		if i < len(p) && p[i].Type == cty.String && v.Type() != cty.String {
			k.wrong(a.Range(), "Wrong type", "%s takes a text here, not a %s.", functionNamed(e.Name).call, v.Type().FriendlyName())
		}
	}
	if e.Name == "domain" && len(e.Args) == 2 {
		v, _ := e.Args[1].Value(k.ctx)
		if v.IsWhollyKnown() && v.Type() == cty.String && !v.IsNull() && (v.AsString() != strings.ToLower(v.AsString()) || strings.ContainsAny(v.AsString(), "*?/: ") || strings.HasPrefix(v.AsString(), ".")) {
			k.wrong(e.Args[1].Range(), "Not a domain", "%q is no domain such as example.com, in lower case; names below it are meant too.", v.AsString())
		}
	}
	if (e.Name != "matches" && e.Name != "cidr") || len(e.Args) != 2 {
		return
	}
	v, _ := e.Args[1].Value(k.ctx)
	if !v.IsWhollyKnown() || v.Type() != cty.String || v.IsNull() {
		k.wrong(e.Args[1].Range(), "Not a fixed text", "The second argument of %s must be written in the file.", e.Name)
		return
	}
	var err error
	if e.Name == "matches" {
		_, err = regexp.Compile(v.AsString())
	} else {
		_, err = netip.ParsePrefix(v.AsString())
	}
	if err != nil {
		k.wrong(e.Args[1].Range(), "Wrong argument", "%v.", err)
	}
}
