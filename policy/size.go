package policy

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// How large a config may be, and how deep blocks, lists and expressions may lie in one another. The parser does not end in a
// useful time over a file of braces alone.
const (
	maxBytes = 1 << 20
	maxDepth = 100
)

// tooLarge says where a config is larger or deeper than any that a person writes; nil for one that is not.
func tooLarge(filename string, src []byte) *hcl.Diagnostic {
	if len(src) > maxBytes {
		return &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Config too large", Detail: "A config has at most 1 MiB.",
			Subject: &hcl.Range{Filename: filename, Start: hcl.InitialPos, End: hcl.InitialPos},
		}
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos) // what is wrong with them is the parser's to say
	depth, signs := 0, 0                                            // signs in a row, each of which holds what follows
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			depth++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth--
		default:
		}
		if signs++; t.Type != hclsyntax.TokenBang && t.Type != hclsyntax.TokenMinus {
			signs = 0
		}
		if depth > maxDepth || signs > maxDepth {
			return tooDeep(t.Range)
		}
	}
	return nil
}

func tooDeep(at hcl.Range) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Nested too deep", Detail: "Blocks, lists and expressions lie in one another at most 100 deep.", Subject: &at,
	}
}
