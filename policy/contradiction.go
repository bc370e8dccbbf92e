package policy

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// conjuncts gives the parts of a condition that all have to hold.
func conjuncts(e hclsyntax.Expression) []hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return conjuncts(e.Expression)
	case *hclsyntax.BinaryOpExpr:
		if e.Op == hclsyntax.OpLogicalAnd {
			return append(conjuncts(e.LHS), conjuncts(e.RHS)...)
		}
	}
	return []hclsyntax.Expression{e}
}

// claims are what the conjuncts of a condition say of one variable.
type claims struct {
	is, not     map[string]bool
	above, upTo float64
	open        bool // one of the bounds is not itself allowed
}

// impossible says that a condition contradicts itself, so that it holds for nothing: a variable that is two things, or
// something and not that, or beyond its own bounds. It gives the variable, or "" for a condition that may hold, and for what
// it cannot tell.
func (k *checker) impossible(e hclsyntax.Expression) string {
	said := map[string]*claims{}
	of := func(name string) *claims {
		if said[name] == nil {
			said[name] = &claims{is: map[string]bool{}, not: map[string]bool{}, above: math.Inf(-1), upTo: math.Inf(1)}
		}
		return said[name]
	}
	for _, part := range conjuncts(e) {
		negated := false
		for {
			if u, ok := part.(*hclsyntax.UnaryOpExpr); ok && u.Op == hclsyntax.OpLogicalNot {
				part, negated = u.Val, !negated
			} else if p, ok := part.(*hclsyntax.ParenthesesExpr); ok {
				part = p.Expression
			} else {
				break
			}
		}
		b, ok := part.(*hclsyntax.BinaryOpExpr)
		switch {
		case !ok: // a variable or a function that holds, or does not
			of(k.textOf(part)).claim(cty.True, negated)
		case b.Op == hclsyntax.OpLogicalOr:
			if why := k.impossible(b.LHS); !negated && why != "" && k.impossible(b.RHS) != "" {
				return why
			}
		default:
			k.compare(of, b, negated)
		}
	}
	if name, group := said["method.name"], said["method.group"]; name != nil && group != nil {
		for n := range name.is {
			g, _, _ := strings.Cut(n, ".")
			group.is[g] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if said[name].contradict() {
			return name
		}
	}
	return ""
}

// compare notes a comparison of a variable with something that is written in the file.
func (k *checker) compare(of func(string) *claims, b *hclsyntax.BinaryOpExpr, negated bool) {
	variable, other, op := b.LHS, b.RHS, b.Op
	if _, ok := variable.(*hclsyntax.ScopeTraversalExpr); !ok {
		variable, other, op = b.RHS, b.LHS, mirrored(b.Op)
	}
	if _, ok := variable.(*hclsyntax.ScopeTraversalExpr); !ok {
		return
	}
	v, diags := other.Value(k.ctx)
	if diags.HasErrors() || !v.IsWhollyKnown() || v.IsNull() {
		return
	}
	c := of(k.textOf(variable))
	switch op {
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		c.claim(v, negated != (op == hclsyntax.OpNotEqual))
	case hclsyntax.OpGreaterThan, hclsyntax.OpGreaterThanOrEqual, hclsyntax.OpLessThan, hclsyntax.OpLessThanOrEqual:
		if v.Type() != cty.Number {
			return
		}
		n, _ := v.AsBigFloat().Float64()
		up := op == hclsyntax.OpLessThan || op == hclsyntax.OpLessThanOrEqual
		strict := op == hclsyntax.OpLessThan || op == hclsyntax.OpGreaterThan
		if negated {
			up, strict = !up, !strict
		}
		if up {
			c.upTo = min(c.upTo, n)
		} else {
			c.above = max(c.above, n)
		}
		c.open = c.open || strict
	}
}

// mirrored is the operation with its sides changed.
func mirrored(op *hclsyntax.Operation) *hclsyntax.Operation {
	switch op {
	case hclsyntax.OpGreaterThan:
		return hclsyntax.OpLessThan
	case hclsyntax.OpGreaterThanOrEqual:
		return hclsyntax.OpLessThanOrEqual
	case hclsyntax.OpLessThan:
		return hclsyntax.OpGreaterThan
	case hclsyntax.OpLessThanOrEqual:
		return hclsyntax.OpGreaterThanOrEqual
	}
	return op
}

func (c *claims) claim(v cty.Value, not bool) {
	var word string
	switch v.Type() {
	case cty.Bool: // is true and is not false are the same
		word, not = "true", not == v.True()
	case cty.String:
		word = v.AsString()
	case cty.Number:
		word = v.AsBigFloat().Text('g', -1)
	default:
		return
	}
	if not {
		c.not[word] = true
	} else {
		c.is[word] = true
	}
}

func (c *claims) contradict() bool {
	for word := range c.is {
		if c.not[word] {
			return true
		}
	}
	return len(c.is) > 1 || c.above > c.upTo || (c.above == c.upTo && c.open)
}

// textOf is a part of a condition as it was written, blanks apart.
func (l *loader) textOf(e hcl.Expression) string {
	r := e.Range()
	return strings.Join(strings.Fields(string(r.SliceBytes(l.files[r.Filename].Bytes))), " ")
}
