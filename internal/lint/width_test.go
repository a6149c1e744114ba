package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width of a line, with tabs of four columns.
const maxColumns = 120

func columns(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }

// wideLines names the lines of Go and CUDA, generated files aside, that are wider than that. A line of Go may be wider
// if a raw string (a struct tag is one) reaches beyond the last column, and only punctuation follows it.
func wideLines(all []*source) (out []string) {
	for _, s := range all {
		kind := path.Ext(s.path)
		if s.generated || !slices.Contains([]string{".go", ".cu", ".cuh"}, kind) {
			continue
		}
		lines := strings.Split(s.text, "\n")
		free := rawLines(s, lines)
		for i, line := range lines {
			if wide := columns(line); wide > maxColumns && !free[i+1] {
				out = append(out, fmt.Sprintf("%s:%d: %d columns, at most %d", s.path, i+1, wide, maxColumns))
			}
		}
	}
	return out
}

// rawLines are the lines on which a raw string reaches beyond the last column, and only punctuation follows.
func rawLines(s *source, lines []string) map[int]bool {
	free := map[int]bool{}
	if s.ast == nil {
		return free
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || !strings.HasPrefix(lit.Value, "`") {
			return true
		}
		first, end := s.line(lit.Pos()), s.fset.Position(lit.End())
		for n := first; n <= end.Line; n++ {
			text, rest := lines[n-1], ""
			if n == end.Line {
				text, rest = text[:end.Column-1], text[end.Column-1:]
			}
			free[n] = free[n] || columns(text) > maxColumns && strings.Trim(rest, "`)}],;:{+ ") == ""
		}
		return true
	})
	return free
}

func TestLineWidth(t *testing.T) { report(t, wideLines(tree(t))) }
