package lint

import (
	"fmt"
	"go/ast"
	"testing"
)

// A function fits a screen and a bit; a file fits one sitting.
const (
	maxFunc = 60
	maxFile = 400
)

// longFuncs names the functions above the bound, those of tests too; exempt holds those of generated files, which are
// shown only.
func longFuncs(all []*source) (out, exempt []string) {
	for _, s := range all {
		if s.ast == nil {
			continue
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := s.line(f.End()) - s.line(f.Pos()) + 1
			if n <= maxFunc {
				continue
			}
			line := fmt.Sprintf("%s: %s has %d lines, at most %d", s.at(f.Pos()), f.Name.Name, n, maxFunc)
			if s.generated {
				exempt = append(exempt, line)
			} else {
				out = append(out, line)
			}
		}
	}
	return out, exempt
}

// longFiles names the files above the bound; generated ones are shown only, since nobody reads them from top to bottom.
func longFiles(all []*source) (out, exempt []string) {
	for _, s := range all {
		n := s.lines()
		if n <= maxFile {
			continue
		}
		line := fmt.Sprintf("%s has %d lines, at most %d", s.path, n, maxFile)
		if s.generated {
			exempt = append(exempt, line)
		} else {
			out = append(out, line)
		}
	}
	return out, exempt
}

func TestFunctionLength(t *testing.T) {
	out, exempt := longFuncs(tree(t))
	for _, e := range exempt {
		t.Log("exempt: ", e)
	}
	report(t, out)
}

func TestFileLength(t *testing.T) {
	out, exempt := longFiles(tree(t))
	for _, e := range exempt {
		t.Log("exempt: ", e)
	}
	report(t, out)
}
