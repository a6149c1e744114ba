// Command typecheck type-checks the module and its tests for other systems, from source. Compiling for a system takes
// two minutes of processor time from an empty cache, this takes seconds.
//
//	go run tools/typecheck/main.go darwin/arm64 windows/amd64 linux/amd64,purego
//
// Besides types it checks what only a linker would notice: a function without a body must be in one of its package's
// assembly files.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// unit is what the compiler would compile at once: a package, a package with its tests, or its external tests.
type unit struct {
	ImportPath, Dir, ForTest string
	Standard                 bool
	GoFiles, SFiles          []string
	ImportMap                map[string]string
	Module                   *struct{ Main bool }
	Error                    *struct{ Err string }
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "typecheck: want GOOS/GOARCH[,TAG]...")
		os.Exit(2)
	}
	failed := false
	for _, target := range os.Args[1:] {
		n, err := check(target)
		if err != nil {
			failed = true
			fmt.Printf("%s: %v\n", target, err)
			continue
		}
		fmt.Printf("%s: %d packages and tests are well typed\n", target, n)
	}
	if failed {
		os.Exit(1)
	}
}

// check type-checks all units of a target and returns how many are the module's own.
func check(target string) (int, error) {
	system, tags, _ := strings.Cut(target, ",")
	goos, arch, ok := strings.Cut(system, "/")
	if !ok {
		return 0, errors.New("want GOOS/GOARCH[,TAG]")
	}
	units, err := list(goos, arch, tags)
	if err != nil {
		return 0, err
	}
	c := &checker{fset: token.NewFileSet(), done: map[string]*types.Package{"unsafe": types.Unsafe}, arch: arch}
	own := 0
	for _, u := range units { // dependencies come first
		if strings.HasSuffix(u.ImportPath, ".test") || u.ImportPath == "unsafe" {
			continue // a generated main
		}
		if err := c.unit(&u); err != nil {
			return own, err
		}
		if u.own() {
			own++
		}
	}
	return own, nil
}

func list(goos, arch, tags string) (units []unit, err error) {
	c := exec.Command("go", "list", "-deps", "-test", "-tags="+tags,
		"-json=ImportPath,Dir,ForTest,Standard,GoFiles,SFiles,ImportMap,Module,Error", "./...")
	c.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var u unit
		if err := d.Decode(&u); errors.Is(err, io.EOF) {
			return units, nil
		} else if err != nil {
			return nil, err
		}
		if u.Error != nil {
			return nil, fmt.Errorf("%s: %s", u.ImportPath, u.Error.Err)
		}
		units = append(units, u)
	}
}

// own reports whether the bodies of a unit's functions are checked: it belongs to the module, and is not a package
// that is compiled again only because another one's tests need it so.
func (u *unit) own() bool {
	path, _, _ := strings.Cut(u.ImportPath, " ")
	return u.Module != nil && u.Module.Main && (u.ForTest == "" || strings.TrimSuffix(path, "_test") == u.ForTest)
}

type checker struct {
	fset *token.FileSet
	done map[string]*types.Package
	arch string
	of   *unit // being checked
}

// Import implements types.Importer for the unit that is being checked.
func (c *checker) Import(path string) (*types.Package, error) {
	if to, ok := c.of.ImportMap[path]; ok {
		path = to
	}
	if p := c.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed before %s", path, c.of.ImportPath)
}

func (c *checker) unit(u *unit) error {
	c.of = u
	var files []*ast.File
	for _, name := range u.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(u.Dir, name)
		}
		f, err := parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	var faults []error
	conf := types.Config{Importer: c, Sizes: types.SizesFor("gc", c.arch), IgnoreFuncBodies: !u.own(),
		Error: func(err error) { faults = append(faults, err) }}
	path, _, _ := strings.Cut(u.ImportPath, " ")
	p, _ := conf.Check(path, c.fset, files, nil) // its error is the first of faults
	c.done[u.ImportPath] = p
	if !u.own() {
		return nil // a dependency that compiles elsewhere
	}
	return errors.Join(append(faults, c.bodies(u, files))...)
}

var inAssembly = regexp.MustCompile(`(?m)^TEXT\s+·(\w+)\(SB\)`)

// bodies finds functions that are nowhere.
func (c *checker) bodies(u *unit, files []*ast.File) error {
	found := map[string]bool{}
	for _, name := range u.SFiles {
		b, err := os.ReadFile(filepath.Join(u.Dir, name))
		if err != nil {
			return err
		}
		for _, m := range inAssembly.FindAllSubmatch(b, -1) {
			found[string(m[1])] = true
		}
	}
	var missing []error
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body != nil || found[fn.Name.Name] || linked(fn) {
				continue
			}
			missing = append(missing, fmt.Errorf("%s: %s has no body, and no assembly file has it",
				c.fset.Position(fn.Pos()), fn.Name.Name))
		}
	}
	return errors.Join(missing...)
}

// linked reports whether a function's body is another package's.
func linked(fn *ast.FuncDecl) bool {
	if fn.Doc == nil {
		return false
	}
	for _, c := range fn.Doc.List {
		if strings.HasPrefix(c.Text, "//go:linkname ") {
			return true
		}
	}
	return false
}
