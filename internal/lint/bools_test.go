package lint

import (
	"fmt"
	"go/ast"
	"testing"
)

// bareBools names the struct literals with two or more booleans whose fields are not named: which is which cannot be
// read there, and exchanging two of them compiles. Tables of tests are exempt, where the declaration is a few lines
// above.
func bareBools(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil || s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			bools := 0
			for _, x := range lit.Elts {
				if id, ok := x.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
					bools++
				}
			}
			if _, list := lit.Type.(*ast.ArrayType); bools > 1 && !list {
				out = append(out, fmt.Sprintf("%s: a literal with %d booleans: name its fields",
					s.at(lit.Pos()), bools))
			}
			return true
		})
	}
	return out
}

func TestBareBools(t *testing.T) { report(t, bareBools(tree(t))) }

func TestBareBoolsCanFail(t *testing.T) {
	refuse(t, bareBools, map[string]string{"model/x.go": "package model\nvar x = t{1, true, false}"})
	pass(t, bareBools, map[string]string{
		"model/x.go":      "package model\nvar x, y, z = t{a: true, b: true}, []bool{true, false}, t{1, true}",
		"model/x_test.go": "package model\nvar u = t{true, false}"})
}
