package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// unguarded names the goroutines that do not begin with "defer fault.Guard()()": a panic there would end the program
// with the runtime's exit code 2, which means wrong usage. Started with go, or with the Go method of a wait group.
func unguarded(all []*source) (out []string) {
	named := map[string][]*ast.BlockStmt{} // package and name of a function → its bodies: methods share names
	for _, s := range all {
		if s.ast == nil || s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				key := s.dir + "." + f.Name.Name
				named[key] = append(named[key], f.Body)
			}
		}
	}
	for _, s := range all {
		if s.ast == nil || s.test || strings.HasPrefix(s.dir, "tools") || strings.HasSuffix(s.dir, "test") ||
			s.dir == "internal/simd/gen" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if bodies, ok := started(s, n, named); ok && !slices.ContainsFunc(bodies, guarded) {
				out = append(out, fmt.Sprintf("%s: a goroutine that does not begin with \"defer fault.Guard()()\"",
					s.at(n.Pos())))
			}
			return true
		})
	}
	return out
}

// started are the bodies that the function may have which a statement runs in a new goroutine.
func started(s *source, n ast.Node, named map[string][]*ast.BlockStmt) ([]*ast.BlockStmt, bool) {
	var f ast.Expr
	switch x := n.(type) {
	case *ast.GoStmt:
		f = x.Call.Fun
	case *ast.CallExpr:
		if sel, ok := x.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(x.Args) == 1 {
			f = x.Args[0]
		}
	}
	switch f := f.(type) {
	case nil:
		return nil, false
	case *ast.FuncLit:
		return []*ast.BlockStmt{f.Body}, true
	case *ast.SelectorExpr:
		return named[s.dir+"."+f.Sel.Name], true
	case *ast.Ident:
		return named[s.dir+"."+f.Name], true
	}
	return nil, true
}

// guarded reports that a body begins with defer fault.Guard()().
func guarded(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	d, ok := body.List[0].(*ast.DeferStmt)
	if !ok {
		return false
	}
	call, ok := d.Call.Fun.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Guard" && fmt.Sprint(sel.X) == "fault"
}

func TestGuarded(t *testing.T) { report(t, unguarded(tree(t))) }
