package lint

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// undocumented names the exported names that have no comment. A comment on a group speaks for its members.
func undocumented(all []*source) (out []string) {
	for _, s := range all {
		if s.ast == nil || s.test || s.generated {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && visible(d.Recv) {
					out = append(out, missing(s, d.Name))
				}
			case *ast.GenDecl:
				if d.Doc == nil {
					out = append(out, members(s, d)...)
				}
			}
		}
	}
	return out
}

// members names the undocumented exported members of a declaration that has no comment of its own.
func members(s *source, d *ast.GenDecl) (out []string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil {
				out = append(out, missing(s, spec.Name))
			}
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				if n.IsExported() && spec.Doc == nil && spec.Comment == nil {
					out = append(out, missing(s, n))
				}
			}
		}
	}
	return out
}

// visible reports whether a method's receiver is exported; a plain function has none.
func visible(recv *ast.FieldList) bool { return recv == nil || ast.IsExported(receiver(recv)) }

// receiver is the name of a method's type.
func receiver(recv *ast.FieldList) string {
	x := recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.Name
		default:
			return ""
		}
	}
}

func missing(s *source, n *ast.Ident) string {
	return fmt.Sprintf("%s: exported %s has no comment", s.at(n.Pos()), n.Name)
}

// packageDocs names the packages that do not introduce themselves, or do it in two files.
func packageDocs(all []*source) (out []string) {
	docs := map[string][]string{}
	for _, s := range all {
		if s.ast == nil || s.test {
			continue
		}
		docs[s.dir] = append(docs[s.dir], "")
		if s.ast.Doc == nil {
			continue
		}
		docs[s.dir] = append(docs[s.dir], s.path)
		want := "Package " + s.ast.Name.Name + " "
		if s.ast.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(s.ast.Doc.Text(), want) {
			out = append(out, fmt.Sprintf("%s: the package comment begins %.30q, want %q", s.path,
				s.ast.Doc.Text(), want))
		}
	}
	for dir, files := range docs {
		files = strings.Fields(strings.Join(files, " "))
		if len(files) != 1 {
			out = append(out, fmt.Sprintf("package %s has %d package comments %v, want 1", dir, len(files), files))
		}
	}
	return out
}

func TestExportedNamesAreDocumented(t *testing.T) { report(t, undocumented(tree(t))) }
func TestPackageDocs(t *testing.T)                { report(t, packageDocs(tree(t))) }
