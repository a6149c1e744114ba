package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// ownReads are the files that may use os.ReadFile, because users do not name what they read.
var ownReads = []string{
	"device/cpu/cores_linux.go", "device/cpu/processor_linux.go", "internal/hostmem/hostmem_linux.go",
	"internal/quota/files.go", "internal/simd/cpu_linux_arm64.go", // the kernel's own files
	"internal/cu/cubin.go",        // our cache
	"internal/browser/browser.go", // tests only
}

// bounds are the readers that io.ReadAll may read from.
var bounds = []string{"io.LimitReader", "http.MaxBytesReader"}

// unboundedReads names whole files and streams that are read without a limit: a device has no end.
func unboundedReads(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil || s.test || strings.HasPrefix(s.path, "tools/") || slices.Contains(ownReads, s.path) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name := called(call); {
			case name == "os.ReadFile":
				out = append(out, fmt.Sprintf("%s: os.ReadFile has no limit: use vfs.ReadFile", s.at(call.Pos())))
			case name == "io.ReadAll" && !slices.Contains(bounds, called(call.Args[0])):
				out = append(out, fmt.Sprintf("%s: io.ReadAll of a reader without a limit", s.at(call.Pos())))
			}
			return true
		})
	}
	return out
}

// called is the package and the name of the function that x calls, "" if it is no such call.
func called(x ast.Expr) string {
	if call, ok := x.(*ast.CallExpr); ok {
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				return pkg.Name + "." + sel.Sel.Name
			}
		}
	}
	return ""
}

func TestUnboundedReads(t *testing.T) { report(t, unboundedReads(tree(t))) }

func TestUnboundedReadsCanFail(t *testing.T) {
	for _, bad := range []string{"os.ReadFile(name)", "io.ReadAll(f)", "io.ReadAll(bufio.NewReader(f))"} {
		text := "package model\nfunc f() { g(" + bad + ") }"
		refuse(t, unboundedReads, map[string]string{"model/x.go": text})
		pass(t, unboundedReads, map[string]string{"model/x_test.go": text, "tools/x/main.go": text})
	}
	pass(t, unboundedReads, map[string]string{ownReads[0]: "package cpu\nvar x, _ = os.ReadFile(y)",
		"model/x.go": "package model\nvar x, _ = io.ReadAll(io.LimitReader(f, 9))"})
}
