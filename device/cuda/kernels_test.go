package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// clang checks CUDA's syntax without a toolkit; it does not read inline PTX.
func clang(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"clang-19", "clang-20", "clang-21", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no clang to check the kernels with")
	return ""
}

// definition is a function without a result in LLVM IR: its name and its parameters. Each parameter ends with its
// number, as in "i64 noundef %3".
var definition = regexp.MustCompile(`(?m)^define .*void @(\w+)\((.*)\)[^()]*\{$`)

// checkUnit compiles a unit to LLVM IR and gives the number of parameters of each function; a kernel's name is not
// mangled. Generating PTX as well would double the time, and nothing here reads it.
func checkUnit(t testing.TB, compiler, unit, options string) (map[string]int, error) {
	s, err := source(unit, options, nil)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(t.TempDir(), unit+".cu")
	if err := os.WriteFile(file, []byte(s.Text), 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90a", "-nocudainc",
		"-nocudalib", "-std=c++17", "-O0", "-Wall", "-Werror", "-Wno-pass-failed", "-Wno-unused-function",
		"-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-o", "-"}, s.Options...)
	text, err := exec.Command(compiler, append(args, file)...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			return nil, fmt.Errorf("%s: %v\n%.3000s", s.Name, err, exit.Stderr)
		}
		return nil, err
	}
	params := map[string]int{}
	for _, f := range definition.FindAllStringSubmatch(string(text), -1) {
		params[f[1]] = strings.Count(f[2], " %")
	}
	return params, nil
}

var parameters = sync.OnceValue(func() map[string]map[string]int { return map[string]map[string]int{} })

// allParams checks every unit of the registry, once for all tests, and gives the parameters of every kernel by its
// name. Kernels of one name in several units (other options) have the same parameters.
func allParams(t testing.TB) map[string]int {
	t.Helper()
	compiler, all := clang(t), map[string]int{}
	for _, r := range registry {
		key := r.unit + " " + r.options
		if parameters()[key] == nil {
			params, err := checkUnit(t, compiler, r.unit, r.options)
			if err != nil {
				t.Fatal(err)
			}
			parameters()[key] = params
		}
		n, ok := parameters()[key][r.name]
		if !ok {
			t.Errorf("%s.cu (%s) has no kernel %s", r.unit, r.options, r.name)
		}
		if old, ok := all[r.name]; ok && old != n {
			t.Errorf("kernel %s has %d parameters with %q, and %d elsewhere", r.name, n, r.options, old)
		}
		all[r.name] = n
	}
	return all
}

func TestKernelsCompile(t *testing.T) {
	for name, n := range allParams(t) {
		if n == 0 || n > maxArgs {
			t.Errorf("kernel %s has %d parameters", name, n)
		}
	}
}

// atStart is the number of kernels that launchers registered; tests register variants after them.
var atStart int

func init() { atStart = len(registry) }

// A source that no launcher uses is dead, and a kernel that is registered twice is built twice.
func TestEverySourceIsUsed(t *testing.T) {
	files, err := sources.ReadDir("kernels")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		stem, ok := strings.CutSuffix(f.Name(), ".cu")
		if ok && !slices.ContainsFunc(registry, func(r kernelRef) bool { return r.unit == stem }) {
			t.Errorf("no launcher uses kernels/%s", f.Name())
		}
	}
	seen := map[kernelRef]bool{}
	for _, r := range registry[:atStart] {
		if seen[r] {
			t.Errorf("%v is registered twice", r)
		}
		seen[r] = true
	}
}
