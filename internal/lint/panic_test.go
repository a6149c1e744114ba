package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// readers are the packages that read what users and other programs wrote: a bad file is an error there, never a panic.
var readers = []string{"hf", "tokenizer", "data", "checkpoint", "recipe", "internal/safetensors"}

// panics names the calls of panic in readers that no comment on the same line or the line before explains.
func panics(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil || s.test || !slices.Contains(readers, s.dir) {
			continue
		}
		explained := map[int]bool{}
		for _, g := range s.ast.Comments {
			explained[s.line(g.Pos())] = true // beside the call
			explained[s.line(g.End())+1] = true
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" && !explained[s.line(call.Pos())] {
				out = append(out, fmt.Sprintf(
					"%s: panic in %s, which reads input: return an error, or say in a comment why it cannot happen",
					s.at(call.Pos()), s.dir))
			}
			return true
		})
	}
	return out
}

func TestPanics(t *testing.T) { report(t, panics(tree(t))) }
