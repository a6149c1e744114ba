package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"
)

// readBeside names the returns of a variable beside a call that gets its address: Go does not say whether the variable
// is read before the call or after it.
func readBeside(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			r, ok := n.(*ast.ReturnStmt)
			if !ok {
				return true
			}
			read := map[string]bool{}
			for _, x := range r.Results {
				if id, ok := x.(*ast.Ident); ok {
					read[id.Name] = true
				}
			}
			for _, x := range r.Results {
				if name := addressed(x); read[name] {
					out = append(out,
						fmt.Sprintf("%s: %s is returned beside a call with its address: call first, then return",
							s.at(r.Pos()), name))
				}
			}
			return true
		})
	}
	return out
}

// addressed is the variable whose address, or an element's, is taken in a call of x outside function literals, "" if
// none is.
func addressed(x ast.Expr) (name string) {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return ""
	}
	ast.Inspect(call, func(n ast.Node) bool {
		if _, literal := n.(*ast.FuncLit); literal {
			return false
		}
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.AND {
			y := u.X
			for {
				if e, ok := y.(*ast.IndexExpr); ok {
					y = e.X
				} else if e, ok := y.(*ast.SelectorExpr); ok {
					y = e.X
				} else {
					break
				}
			}
			if id, ok := y.(*ast.Ident); ok {
				name = id.Name
			}
		}
		return true
	})
	return name
}

func TestReadBeside(t *testing.T) { report(t, readBeside(tree(t))) }

func TestReadBesideCanFail(t *testing.T) {
	for _, body := range []string{"return x, f(&x)", "return x, g.check(1, call(p(&x[0])))", "return f(&x.y), x"} {
		refuse(t, readBeside, map[string]string{"model/x.go": "package model\nfunc a() (int, error) { var x int; " +
			body + " }"})
	}
	for _, body := range []string{"return &x, f(&x)", "return y, f(&x)", "return x, f(x)",
		"return x, f(func() { g(&x[0]) })", "err := f(&x); return x, err"} {
		pass(t, readBeside, map[string]string{"model/x.go": "package model\nfunc a() (int, error) { var x int; " +
			body + " }"})
	}
}
