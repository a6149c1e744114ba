package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "antiphase"

// kinds are the source files that rules look at; only Go files are parsed.
var kinds = []string{".go", ".s", ".h", ".cu", ".cuh"}

// source is one file of the tree.
type source struct {
	path      string // relative to the root, with slashes
	dir       string // the package: path.Dir(path)
	text      string
	test      bool
	generated bool
	fset      *token.FileSet
	ast       *ast.File // nil unless it is Go
}

// at is where a node stands, as path:line.
func (s *source) at(p token.Pos) string {
	pos := s.fset.Position(p)
	return pos.String()[:strings.LastIndex(pos.String(), ":")]
}

// line is the line of a position.
func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// lines counts the lines of the file.
func (s *source) lines() int { return strings.Count(s.text, "\n") }

// imports lists the imported paths.
func (s *source) imports() []string {
	if s.ast == nil {
		return nil
	}
	var out []string
	for _, i := range s.ast.Imports {
		out = append(out, strings.Trim(i.Path.Value, `"`))
	}
	return out
}

// parse makes a source of text; name decides what kind of file it is.
func parse(name, text string) (*source, error) {
	s := &source{
		path: name, dir: path.Dir(name), text: text, fset: token.NewFileSet(),
		test:      strings.HasSuffix(name, "_test.go"),
		generated: strings.HasPrefix(text, "// Code generated "),
	}
	if path.Ext(name) != ".go" {
		return s, nil
	}
	var err error
	s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// tree is every source of the module: all build tags, so that one machine checks them all; nested modules are not ours.
func tree(t *testing.T) []*source {
	t.Helper()
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// read walks the tree once for all tests.
var read = sync.OnceValues(func() (all []*source, err error) {
	root := filepath.Join("..", "..") // a test runs in its package's folder
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root {
			return enter(p, d.Name())
		}
		if d.IsDir() || !slices.Contains(kinds, filepath.Ext(p)) {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), string(text))
		all = append(all, s)
		return err
	})
	return all, err
})

// enter reports whether a folder holds sources of this module: nil, or fs.SkipDir.
func enter(dir, name string) error {
	if strings.HasPrefix(name, ".") || name == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// report fails with the offenders in a stable order, one per line.
func report(t *testing.T, offenders []string) {
	t.Helper()
	slices.Sort(offenders)
	for _, o := range slices.Compact(offenders) {
		t.Error(o)
	}
}
