package policy

import (
	"fmt"
	"math"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// value is what a part of a condition comes to; which field holds it is known from the type that the check found.
type value struct {
	text string
	yes  bool
	num  float64
	list []string
	dict map[string]string
}

// program computes a part of a condition. HCL's own evaluator takes some 40 µs for a condition, which is too long for thirty
// of them asked about ten providers; a test compares the two.
type program func(*view) (value, error)

// compile makes a program of a part that was checked.
func compile(e hclsyntax.Expression, ctx *hcl.EvalContext) program {
	switch e := e.(type) {
	case *hclsyntax.LiteralValueExpr:
		return constant(e.Val)
	case *hclsyntax.ParenthesesExpr:
		return compile(e.Expression, ctx)
	case *hclsyntax.TemplateWrapExpr:
		return compile(e.Wrapped, ctx)
	case *hclsyntax.TemplateExpr:
		return compileTemplate(e, ctx)
	case *hclsyntax.ScopeTraversalExpr:
		return compileVariable(e)
	case *hclsyntax.UnaryOpExpr:
		of := compile(e.Val, ctx)
		not := e.Op == hclsyntax.OpLogicalNot
		return func(v *view) (value, error) {
			x, err := of(v)
			if not {
				return value{yes: !x.yes}, err
			}
			return value{num: -x.num}, err
		}
	case *hclsyntax.BinaryOpExpr:
		return compileBinary(e, ctx)
	case *hclsyntax.ConditionalExpr:
		c, a, b := compile(e.Condition, ctx), compile(e.TrueResult, ctx), compile(e.FalseResult, ctx)
		return func(v *view) (value, error) {
			x, err := c(v)
			if err != nil {
				return x, err
			}
			if x.yes {
				return a(v)
			}
			return b(v)
		}
	case *hclsyntax.FunctionCallExpr:
		do, args := functionNamed(e.Name).do, compileAll(e.Args, ctx)
		return func(v *view) (value, error) {
			var room [4]value
			in, err := evaluate(v, args, room[:0])
			if err != nil {
				return value{}, err
			}
			return do(in)
		}
	case *hclsyntax.TupleConsExpr:
		parts := compileAll(e.Exprs, ctx)
		return func(v *view) (value, error) {
			in, err := evaluate(v, parts, nil)
			out := make([]string, len(in))
			for i, x := range in {
				out[i] = x.text
			}
			return value{list: out}, err
		}
	case *hclsyntax.IndexExpr:
		of, key := compile(e.Collection, ctx), compile(e.Key, ctx)
		return func(v *view) (value, error) {
			x, err := of(v)
			if err != nil {
				return x, err
			}
			k, err := key(v)
			return value{text: x.dict[k.text]}, err
		}
	}
	return func(*view) (value, error) { return value{}, fmt.Errorf("it has a part that cannot be computed") }
}

func compileAll(list []hclsyntax.Expression, ctx *hcl.EvalContext) []program {
	out := make([]program, len(list))
	for i, e := range list {
		out[i] = compile(e, ctx)
	}
	return out
}

func evaluate(v *view, parts []program, into []value) ([]value, error) {
	for _, p := range parts {
		x, err := p(v)
		if err != nil {
			return nil, err
		}
		into = append(into, x)
	}
	return into, nil
}

func constant(c cty.Value) program {
	var x value
	switch c.Type() {
	case cty.String:
		x.text = c.AsString()
	case cty.Bool:
		x.yes = c.True()
	case cty.Number:
		x.num, _ = c.AsBigFloat().Float64()
	}
	return func(*view) (value, error) { return x, nil }
}

func compileTemplate(e *hclsyntax.TemplateExpr, ctx *hcl.EvalContext) program {
	parts := compileAll(e.Parts, ctx)
	if len(parts) == 1 {
		return parts[0]
	}
	return func(v *view) (value, error) {
		in, err := evaluate(v, parts, nil)
		var b strings.Builder
		for _, x := range in {
			b.WriteString(x.text)
		}
		return value{text: b.String()}, err
	}
}

func compileVariable(e *hclsyntax.ScopeTraversalExpr) program {
	attr, _ := e.Traversal[1].(hcl.TraverseAttr)
	found, _ := find(e.Traversal.RootName(), attr.Name)
	get := found.get
	if len(e.Traversal) < 3 {
		return func(v *view) (value, error) { return get(v), nil }
	}
	key, _ := keyOf(e.Traversal[2])
	return func(v *view) (value, error) { return value{text: get(v).dict[key]}, nil }
}

func compileBinary(e *hclsyntax.BinaryOpExpr, ctx *hcl.EvalContext) program {
	a, b := compile(e.LHS, ctx), compile(e.RHS, ctx)
	switch e.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		ends := e.Op == hclsyntax.OpLogicalOr
		return func(v *view) (value, error) {
			if x, err := a(v); err != nil || x.yes == ends {
				return x, err
			}
			return b(v)
		}
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		l, _ := e.LHS.Value(ctx)
		same, equal := equality(l.Type()), e.Op == hclsyntax.OpEqual
		return both(a, b, func(x, y value) value { return value{yes: same(x, y) == equal} })
	}
	do := arithmetic[e.Op]
	return both(a, b, func(x, y value) value { return do(x.num, y.num) })
}

func both(a, b program, f func(x, y value) value) program {
	return func(v *view) (value, error) {
		x, err := a(v)
		if err != nil {
			return x, err
		}
		y, err := b(v)
		return f(x, y), err
	}
}

func equality(t cty.Type) func(a, b value) bool {
	switch {
	case t == cty.Bool:
		return func(a, b value) bool { return a.yes == b.yes }
	case t == cty.Number:
		return func(a, b value) bool { return a.num == b.num }
	default:
		return func(a, b value) bool { return a.text == b.text }
	}
}

var arithmetic = map[*hclsyntax.Operation]func(a, b float64) value{
	hclsyntax.OpGreaterThan:        func(a, b float64) value { return value{yes: a > b} },
	hclsyntax.OpGreaterThanOrEqual: func(a, b float64) value { return value{yes: a >= b} },
	hclsyntax.OpLessThan:           func(a, b float64) value { return value{yes: a < b} },
	hclsyntax.OpLessThanOrEqual:    func(a, b float64) value { return value{yes: a <= b} },
	hclsyntax.OpAdd:                func(a, b float64) value { return value{num: a + b} },
	hclsyntax.OpSubtract:           func(a, b float64) value { return value{num: a - b} },
	hclsyntax.OpMultiply:           func(a, b float64) value { return value{num: a * b} },
	hclsyntax.OpDivide:             func(a, b float64) value { return value{num: a / b} },
	hclsyntax.OpModulo:             func(a, b float64) value { return value{num: math.Mod(a, b)} },
}
