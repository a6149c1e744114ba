package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// Where the ops are declared, who implements them beside the oracle, and where their conformance cases are.
const (
	interfaceDir = "device"
	oracleDir    = "device/ref"
	casesDir     = "device/devicetest"
)

var implementations = []string{"device/cpu", "device/cuda"}

// housekeeping is the part of the interface that is not ops.
var housekeeping = []string{"Name", "Types", "Alloc", "Free", "Write", "Read", "Sync", "Close"}

// ops lists the methods of device.Device, housekeeping aside.
func ops(all []*source) (out []string) {
	for _, s := range all {
		if s.dir != interfaceDir || s.ast == nil || s.test {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != "Device" {
				return true
			}
			face, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			for _, m := range face.Methods.List {
				for _, name := range m.Names {
					if !slices.Contains(housekeeping, name.Name) {
						out = append(out, name.Name)
					}
				}
			}
			return false
		})
	}
	return out
}

// stems maps each method of a package, whatever its type, to the stem of the file that declares it: a device may group
// its ops in types of its own.
func stems(all []*source, dir string) map[string]string {
	out := map[string]string{}
	for _, s := range all {
		if s.dir != dir || s.ast == nil || s.test {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				out[f.Name.Name] = strings.TrimSuffix(path.Base(s.path), ".go")
			}
		}
	}
	return out
}

// strayStems names the ops whose file on a device, or whose conformance case, is not called as the oracle's is. A
// device may split an op's file with a suffix: attention.go, attention_backward.go.
func strayStems(all []*source) (out []string) {
	files := map[string]bool{}
	for _, s := range all {
		files[s.path] = true
	}
	oracle := stems(all, oracleDir)
	for _, op := range ops(all) {
		stem, ok := oracle[op]
		if !ok {
			out = append(out, fmt.Sprintf("%s has no oracle in %s", op, oracleDir))
			continue
		}
		for _, dir := range implementations {
			there := stems(all, dir)
			got, ok := there[op]
			if len(there) > 0 && !ok {
				out = append(out, fmt.Sprintf("%s is not in %s: want it in %s.go", op, dir, stem))
			}
			if ok && got != stem && !strings.HasPrefix(got, stem+"_") {
				out = append(out, fmt.Sprintf("%s is in %s/%s.go, but its oracle is in %s/%s.go: one stem per op", op,
					dir, got, oracleDir, stem))
			}
		}
		if name := casesDir + "/" + stem + ".go"; !files[name] {
			out = append(out, fmt.Sprintf("%s has no conformance case: want %s", op, name))
		}
	}
	return out
}

func TestOneStemPerOp(t *testing.T) {
	all := tree(t)
	if len(ops(all)) < 20 {
		t.Fatalf("found only %d ops in %s.Device: %v", len(ops(all)), interfaceDir, ops(all))
	}
	report(t, strayStems(all))
}
