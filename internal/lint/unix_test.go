package lint

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"slices"
	"strings"
	"testing"
)

// unixCalls are what only Unix does without a privilege, or at all, with what a test for all systems uses instead.
var unixCalls = map[string]string{
	"os.Symlink": "vfstest.Symlink, which skips where links need a privilege", "os.Link": "a file of Unix",
	"os.Chmod": "a file of Unix",
	"os.Chown": "a file of Unix", "syscall.Kill": "a file of Unix", "syscall.Mkfifo": "a file of Unix",
}

// onUnix reports whether a file is compiled on Unix only: by its name, or by its build tag.
func (s *source) onUnix() bool {
	base := strings.TrimSuffix(s.path, "_test.go")
	if strings.HasSuffix(base, "_linux") || strings.HasSuffix(base, "_darwin") {
		return true
	}
	for _, line := range strings.Split(s.text, "\n") {
		if constraint.IsGoBuild(line) {
			x, err := constraint.Parse(line)
			return err == nil && !x.Eval(func(tag string) bool { return tag == "windows" })
		}
	}
	return false
}

// unixTests names the calls of unixCalls in tests that every system compiles.
func unixTests(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil || !s.test || s.onUnix() {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok {
				name := pkg.Name + "." + sel.Sel.Name
				if use, found := unixCalls[name]; found {
					out = append(out, fmt.Sprintf("%s: %s in a test of all systems: use %s",
						s.at(sel.Pos()), name, use))
				}
			}
			return true
		})
	}
	slices.Sort(out)
	return out
}

func TestUnixTests(t *testing.T) { report(t, unixTests(tree(t))) }

func TestUnixTestsCanFail(t *testing.T) {
	const call = "package model\nvar x = os.Symlink"
	refuse(t, unixTests, map[string]string{"model/x_test.go": call})
	refuse(t, unixTests, map[string]string{"model/x_test.go": "//go:build !linux\n\n" + call})
	pass(t, unixTests, map[string]string{"model/x.go": call, "model/x_linux_test.go": call,
		"model/x_unix_test.go": "//go:build unix\n\n" + call,
		"model/y_test.go":      "//go:build !windows\n\n" + call,
		"model/z_test.go":      "package model\nvar x = vfstest.Symlink"})
}
