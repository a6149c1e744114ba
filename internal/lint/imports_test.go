package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// row lists what the files of one package, except tests, may import: packages of this module, which are above it in the
// table, and other modules by a prefix of the path. The standard library is free.
type row struct {
	pkg     string
	ours    string
	foreign string
}

// table is ordered from the leaves up: imports point downwards only, because a row may name nothing but earlier rows.
var table = []row{
	{pkg: "internal/half"},
	{pkg: "internal/escape"},
	{pkg: "internal/fault"},
	{pkg: "internal/cores"},
	{pkg: "internal/handlers"},
	{pkg: "internal/near"},
	{pkg: "internal/surrogate"},
	{pkg: "internal/hostmem", foreign: "golang.org/x/sys"},
	{pkg: "internal/simd", foreign: "golang.org/x/sys/cpu golang.org/x/sys/windows"},
	{pkg: "internal/simd/gen"},
	{pkg: "internal/vfs", foreign: "golang.org/x/sys"},
	{pkg: "internal/vfs/vfstest", ours: "internal/vfs"},
	{pkg: "internal/flock", ours: "internal/vfs", foreign: "golang.org/x/sys"},
	{pkg: "internal/safetensors", ours: "internal/half internal/vfs"},
	{pkg: "internal/cu", ours: "internal/handlers", foreign: "github.com/ebitengine/purego golang.org/x/sys"},
	{pkg: "internal/cu/cutest", ours: "internal/cu"},
	{pkg: "internal/golden"},
	{pkg: "internal/quota"},
	{pkg: "internal/kill"},
	{pkg: "internal/quiet", foreign: "golang.org/x/sys"},
	{pkg: "internal/browser"},
	{pkg: "internal/lint"},

	{pkg: "metrics", ours: "internal/cores internal/vfs"},
	{pkg: "tensor"},
	{pkg: "device", ours: "tensor internal/half"},
	{pkg: "device/ref", ours: "device tensor internal/half"},
	{pkg: "device/cpu/attn", ours: "device internal/simd"},
	{pkg: "device/cpu", ours: "device device/cpu/attn tensor internal/half internal/hostmem internal/simd",
		foreign: "golang.org/x/sys github.com/klauspost/cpuid/v2"},
	{pkg: "device/cuda", ours: "device tensor internal/half internal/cu"},
	{pkg: "device/cuda/cudatest", ours: "device/cuda"},
	{pkg: "device/devicetest", ours: "device device/ref tensor internal/half"},

	{pkg: "dist", ours: "tensor internal/cu internal/handlers", foreign: "github.com/ebitengine/purego"},
	{pkg: "dist/disttest", ours: "dist tensor"},
	{pkg: "layer", ours: "device tensor internal/cores"},
	{pkg: "model", ours: "layer device tensor internal/safetensors"},
	{pkg: "model/modeltest", ours: "model layer device"},
	{pkg: "optim", ours: "model layer device tensor"},
	{pkg: "tokenizer", ours: "internal/vfs", foreign: "github.com/dlclark/regexp2/v2 golang.org/x/text"},
	{pkg: "tokenizer/chat", foreign: "golang.org/x/text"},
	{pkg: "data", ours: "internal/cores internal/vfs internal/surrogate",
		foreign: "github.com/klauspost/compress github.com/parquet-go/parquet-go golang.org/x/sync"},
	{pkg: "recipe", ours: "internal/near model layer optim", foreign: "github.com/goccy/go-yaml"},
	{pkg: "checkpoint", ours: "internal/vfs"},
	{pkg: "hf", ours: "model layer device tokenizer internal/safetensors internal/vfs"},
	{pkg: "pair", ours: "model layer tokenizer internal/safetensors"},
	{pkg: "train", ours: "recipe model layer optim data tokenizer checkpoint device metrics tensor internal/flock " +
		"internal/safetensors internal/vfs"},
	{pkg: "infer", ours: "model tokenizer"},
	{pkg: "grammar"},
	{pkg: "lab", ours: "model layer tensor"},
	{pkg: "web"},
	{pkg: "server",
		ours:    "grammar infer internal/near internal/surrogate lab layer metrics model tokenizer tokenizer/chat",
		foreign: "github.com/prometheus/client_golang"},
	{pkg: "bench", ours: "infer train recipe model layer optim device tensor internal/vfs"},
	{pkg: "eval", ours: "infer model layer data tokenizer internal/escape internal/vfs"},
	{pkg: "eval/task", ours: "eval model layer data tokenizer device tensor internal/cores internal/vfs"},
	{pkg: "eval/harness", ours: "eval eval/task data tokenizer/chat internal/near internal/vfs",
		foreign: "github.com/goccy/go-yaml github.com/dlclark/regexp2/v2 golang.org/x/text"},
	{pkg: "eval/report", ours: "eval eval/task layer metrics internal/vfs"},
	{pkg: "experiment", ours: "recipe model layer data tokenizer train metrics device tensor eval eval/task " +
		"eval/report internal/escape internal/flock internal/vfs"},

	{pkg: "results"},
	{pkg: "examples/service", ours: "*"},
	{pkg: "cmd/antiphase", ours: "*", foreign: "github.com/spf13 golang.org/x/term"},
}

// onlyTests may be imported by tests and by each other: an oracle or a fake must never end up in the product.
var onlyTests = []string{"device/ref", "device/devicetest", "device/cuda/cudatest", "model/modeltest",
	"internal/vfs/vfstest", "internal/cu/cutest", "dist/disttest", "internal/golden", "internal/browser",
	"internal/kill", "internal/lint", "internal/quiet", "internal/quota"}

// onlyCommand may be imported by cmd/antiphase, examples, tests and by what is theirs: everything else takes the device
// it is given.
var onlyCommand = []string{"device/cpu", "device/cuda"}

// hostReaders may look at a tensor's memory from the host; everyone else asks the device, or a GPU could not be one.
// MPI (dist) carries the host's memory alone.
var hostReaders = []string{"tensor", "device/cpu", "device/ref", "dist", "dist/disttest"}

// find returns the row of a package.
func find(pkg string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.pkg == pkg })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// allows reports why the package may not import path, or "".
func (r row) allows(imported string) string {
	ours, inside := strings.CutPrefix(imported, module+"/")
	switch {
	case inside && slices.Contains(onlyTests, ours):
		if slices.Contains(onlyTests, r.pkg) && slices.Contains(strings.Fields(r.ours), ours) {
			return ""
		}
		return "which only tests may import"
	case inside && slices.Contains(onlyCommand, ours) && !strings.HasPrefix(r.pkg, "cmd/") &&
		!strings.HasPrefix(r.pkg, "examples/") && !slices.Contains(onlyTests, r.pkg):
		return "which only cmd and tests may import"
	case inside && ours == "internal/fault": // every goroutine begins with its guard
		return ""
	case inside && (r.ours == "*" || slices.Contains(strings.Fields(r.ours), ours)):
		return ""
	case inside:
		return fmt.Sprintf("but may import only [%s] of this module", r.ours)
	case !strings.Contains(strings.Split(imported, "/")[0], "."):
		return "" // the standard library
	}
	for _, prefix := range strings.Fields(r.foreign) {
		if imported == prefix || strings.HasPrefix(imported, prefix+"/") {
			return ""
		}
	}
	return fmt.Sprintf("but may import only [%s] of other modules", r.foreign)
}

// wrongImports names each import that the table refuses. Tests are free: they build what they need from any height.
func wrongImports(all []*source) (out []string) {
	for _, s := range all {
		if s.test || s.ast == nil {
			continue
		}
		r, ok := find(s.dir)
		if !ok {
			out = append(out, fmt.Sprintf(
				"package %s is not in the table of internal/lint/imports_test.go: add it to the table", s.dir))
			continue
		}
		for _, i := range s.imports() {
			if why := r.allows(i); why != "" {
				out = append(out, fmt.Sprintf("%s imports %s, %s", s.path, i, why))
			}
		}
	}
	return out
}

// hostMemory names each use of tensor.Host or of a buffer's Host bytes where memory may not be the host's.
func hostMemory(all []*source) (out []string) {
	for _, s := range all {
		if s.test || s.ast == nil || slices.Contains(hostReaders, s.dir) {
			continue
		}
		seesTensors := slices.Contains(s.imports(), module+"/tensor")
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Host" {
				return true
			}
			if inner, ok := sel.X.(*ast.SelectorExpr); seesTensors || ok && inner.Sel.Name == "Buf" {
				out = append(out, fmt.Sprintf("%s: %s looks at host memory; read it through the device",
					s.at(sel.Pos()), s.dir))
			}
			return true
		})
	}
	return out
}

func TestImports(t *testing.T)    { report(t, wrongImports(tree(t))) }
func TestHostMemory(t *testing.T) { report(t, hostMemory(tree(t))) }

// TestTablePointsDown holds the table itself to its order.
func TestTablePointsDown(t *testing.T) {
	var seen []string
	for _, r := range table {
		for _, o := range strings.Fields(r.ours) {
			if o != "*" && !slices.Contains(seen, o) {
				t.Errorf("the row of %s allows %s, which does not stand above it", r.pkg, o)
			}
		}
		if r.pkg != path.Clean(r.pkg) || slices.Contains(seen, r.pkg) {
			t.Errorf("the row of %q is unclean or there twice", r.pkg)
		}
		seen = append(seen, r.pkg)
	}
}
