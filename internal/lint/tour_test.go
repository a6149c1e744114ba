package lint

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tourRow is a line of a table of the tour: a file, and names in quotes that it declares.
var (
	tourRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|([^|]*)\\|")
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// stale lists the tour's errors: files that do not exist, and names that a file does not declare.
func stale(tour string, all []*source, exists func(path string) bool) (out []string) {
	for _, m := range tourRow.FindAllStringSubmatch(tour, -1) {
		if !exists(m[1]) {
			out = append(out, m[1]+" does not exist")
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(m[2], -1) {
			i := slices.IndexFunc(all, func(s *source) bool { return s.path == m[1] })
			if i < 0 || all[i].ast == nil || !slices.Contains(declared(all[i].ast), name[1]) {
				out = append(out, fmt.Sprintf("%s declares no %s", m[1], name[1]))
			}
		}
	}
	return out
}

// declared are the functions, methods, types, variables and constants of a file.
func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func TestTourCanFail(t *testing.T) {
	all := sources(t, map[string]string{"layer/x.go": "package layer\ntype T int\nfunc (T) m() {}\nvar v = 1"})
	here := func(path string) bool { return path == "layer/x.go" }
	for row, bad := range map[string]int{
		"| `layer/x.go` | `T`, `m`, `v` | part |": 0, "| `layer/x.go` | | part |": 0, "| `layer/y.go` | | part |": 1,
		"| `layer/x.go` | `T`, `n` | part |": 1,
	} {
		if got := stale(row, all, here); len(got) != bad {
			t.Errorf("%s: %q", row, got)
		}
	}
}

// CONTRIBUTING's tour answers six questions, and what it names is there.
func TestTour(t *testing.T) {
	b, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tour, ok := strings.Cut(string(b), "\n## The tour")
	tour, _, end := strings.Cut(tour, "\n## ")
	if !ok || !end || len(regexp.MustCompile(`(?m)^\*\*\d\. `).FindAllString(tour, -1)) != 6 ||
		len(tourRow.FindAllString(tour, -1)) < 20 {
		t.Fatal("CONTRIBUTING.md has no tour of six questions with tables of files")
	}
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path)))
		return err == nil
	}
	for _, s := range stale(tour, tree(t), exists) {
		t.Error("CONTRIBUTING.md: the tour: " + s)
	}
}
