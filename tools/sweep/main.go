// Command sweep plants every small change of a few kinds in a package, one at a time, and prints those that no test of
// the package notices.
//
//	go run tools/sweep/*.go ./data                       # all kinds, from the repository's root
//	go run tools/sweep/*.go -kinds cond,bound ./grammar  # some of them
//	go run tools/sweep/*.go -files 'estimate|split' ./data
//
// All changes are compiled into one test binary as an overlay, each behind a switch that a variable turns on, so
// nothing in the tree changes and a change costs only the tests that reach it. The kinds:
//
//	cond    one side of && or || is left out
//	if      a branch without else is never taken (but for the checks of errors)
//	bound   < and <=, > and >= change places
//	pick    min and max of two give always one of them
//	off     the number in x + 1 or x − 1 is left out
//	drop    an assignment, one of several in a line, a call or a jump is left out
//
// What it prints is a list of candidates: many changes have no effect that anybody could see. Tests that take over
// -slow are left out.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// change is one place that can be changed.
type change struct {
	kind string
	file string
	line int
	what string
}

// edit is a text for a place of a file.
type edit struct {
	at, cut int // offset, and the bytes that it replaces
	text    string
	end     bool // of a node, not its beginning
	n       int  // outer nodes come before the nodes in them
}

type sweep struct {
	dir     string // of the package
	kinds   map[string]bool
	changes []change          // by number
	edits   map[string][]edit // by file
	skip    map[string]bool   // file:line that did not compile

	src  []byte // of the file that is read
	path string
	set  *token.FileSet
	n    int // edits
}

func main() {
	kinds := flag.String("kinds", "cond,if,bound,pick,off,drop", "which changes")
	files := flag.String("files", ".", "only files whose name matches this expression")
	slow := flag.Duration("slow", 20*time.Second, "leave out tests that take longer")
	jobs := flag.Int("jobs", 2, "changes that are tried at once")
	short := flag.Bool("short", false, "run the tests with -short")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sweep: one package, for example ./data")
		os.Exit(2)
	}
	s := &sweep{kinds: map[string]bool{}, skip: map[string]bool{}}
	for k := range strings.SplitSeq(*kinds, ",") {
		s.kinds[k] = true
	}
	if err := s.run(flag.Arg(0), regexp.MustCompile(*files), *slow, *jobs, *short); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(2)
	}
}

// run builds the binary, measures the tests and tries every change.
func (s *sweep) run(pkg string, files *regexp.Regexp, slow time.Duration, jobs int, short bool) error {
	tmp, err := os.MkdirTemp("", "sweep")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	out, err := exec.Command("go", "list", "-f", "{{.Dir}} {{.Name}} {{join .GoFiles \" \"}}", pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s", out)
	}
	words := strings.Fields(string(out))
	s.dir = words[0]
	binary := filepath.Join(tmp, "test")
	for try := 0; ; try++ {
		if err := s.read(words[2:], files); err != nil {
			return err
		}
		message, err := s.build(tmp, binary, pkg, words[1])
		if err == nil {
			break
		}
		if try == 50 || !s.exclude(message) {
			return fmt.Errorf("does not compile: %s", message)
		}
	}
	r := runner{binary: binary, dir: s.dir, tmp: tmp, short: short, reach: map[int][]test{}}
	if err := r.measure(slow); err != nil {
		return err
	}
	s.report(&r, jobs)
	return nil
}

// report tries the changes and prints those that live.
func (s *sweep) report(r *runner, jobs int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next, reached, lived := 0, 0, 0
	for range jobs {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(s.changes) {
					return
				}
				noticed := r.try(i)
				mu.Lock()
				c := s.changes[i]
				switch {
				case len(r.reach[i]) == 0:
					fmt.Printf("unreached %s:%d %s %s\n", c.file, c.line, c.kind, c.what)
				case !noticed:
					lived++
					fmt.Printf("lived     %s:%d %s %s\n", c.file, c.line, c.kind, c.what)
				}
				if len(r.reach[i]) > 0 {
					reached++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	fmt.Printf("%d changes, %d reached by tests, %d of them lived\n", len(s.changes), reached, lived)
}

// read finds the changes of all files.
func (s *sweep) read(names []string, files *regexp.Regexp) error {
	s.changes, s.edits, s.set = nil, map[string][]edit{}, token.NewFileSet()
	for _, name := range names {
		if !files.MatchString(name) {
			continue
		}
		s.path = filepath.Join(s.dir, name)
		src, err := os.ReadFile(s.path)
		if err != nil {
			return err
		}
		s.src = src
		f, err := parser.ParseFile(s.set, s.path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(f) {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Name.Name != "init" {
				ast.Inspect(fn.Body, s.visit)
			}
		}
	}
	return nil
}

func (s *sweep) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType: // a length is constant
		return false
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "min" || f.Name == "max") && len(n.Args) == 2 &&
			n.Ellipsis == 0 {
			a, b := s.add("pick", n, "first"), s.add("pick", n, "second")
			if a >= 0 && b >= 0 {
				s.replace(f.Pos(), f.End(), "sweep_"+f.Name)
				s.begin(n.Lparen+1, fmt.Sprintf("%d, %d, ", a, b))
			}
		}
	case *ast.IfStmt:
		if n.Else == nil && !checksError(n.Cond) {
			s.wrap("if", n.Cond, "never", "!sweep_on(%d) && (", ")")
		}
	case *ast.BlockStmt:
		s.list(n.List)
	case *ast.CaseClause:
		s.list(n.Body)
	case *ast.CommClause:
		s.list(n.Body)
	}
	return true
}

// names of the functions that stand for operators.
var names = map[token.Token]string{token.LSS: "lss", token.LEQ: "leq", token.GTR: "gtr", token.GEQ: "geq",
	token.ADD: "add", token.SUB: "sub"}

func (s *sweep) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND:
		s.wrap("cond", n.X, "without", "(sweep_on(%d) || (", "))")
		s.wrap("cond", n.Y, "without", "(sweep_on(%d) || (", "))")
	case token.LOR:
		s.wrap("cond", n.X, "without", "(!sweep_on(%d) && (", "))")
		s.wrap("cond", n.Y, "without", "(!sweep_on(%d) && (", "))")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if i := s.add("bound", n, ""); i >= 0 {
			s.begin(n.X.Pos(), fmt.Sprintf("sweep_%s(%d, ", names[n.Op], i))
			s.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), ",")
			s.finish(n.Y.End(), ")")
		}
	case token.ADD, token.SUB:
		if y, ok := n.Y.(*ast.BasicLit); ok && y.Kind == token.INT {
			if i := s.add("off", n, ""); i >= 0 {
				s.begin(n.X.Pos(), fmt.Sprintf("sweep_%s(%d, ", names[n.Op], i))
				s.replace(n.OpPos, n.OpPos+1, ",")
				s.finish(y.End(), ")")
			}
		}
	}
}

// list plants changes that leave statements out.
func (s *sweep) list(list []ast.Stmt) {
	for _, x := range list {
		switch x := x.(type) {
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE || len(x.Lhs) == 1 && isBlank(x.Lhs[0]) {
				continue
			}
			s.each(x)
		case *ast.IncDecStmt:
		case *ast.ExprStmt:
			if call, ok := x.X.(*ast.CallExpr); !ok || named(call, "panic") || named(call, "fail") {
				continue
			}
		case *ast.BranchStmt:
			if x.Label != nil || x.Tok == token.FALLTHROUGH {
				continue
			}
		default:
			continue
		}
		s.wrap("drop", x, "", "if !sweep_on(%d) { ", " }")
	}
}

// each plants changes that leave out one of several assignments.
func (s *sweep) each(x *ast.AssignStmt) {
	for i, y := range x.Rhs {
		if len(x.Rhs) == 1 || isBlank(x.Lhs[i]) {
			continue
		}
		from, to := s.set.Position(x.Lhs[i].Pos()).Offset, s.set.Position(x.Lhs[i].End()).Offset
		s.wrap("drop", y, string(s.src[from:to])+" =", "sweep_keep(%d, "+string(s.src[from:to])+", ", ")")
	}
}

// wrap inserts texts around a node; the first has the change's number.
func (s *sweep) wrap(kind string, n ast.Node, what, before, after string) {
	if i := s.add(kind, n, what); i >= 0 {
		s.begin(n.Pos(), fmt.Sprintf(before, i))
		s.finish(n.End(), after)
	}
}

// add notes a change; −1 if its kind is not asked for or its line does not compile.
func (s *sweep) add(kind string, n ast.Node, what string) int {
	p := s.set.Position(n.Pos())
	place := fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
	if !s.kinds[kind] || s.skip[place] {
		return -1
	}
	text := strings.Join(strings.Fields(string(s.src[p.Offset:s.set.Position(n.End()).Offset])), " ")
	s.changes = append(s.changes, change{kind, filepath.Base(p.Filename), p.Line,
		strings.TrimSpace(what + " " + text[:min(len(text), 120)])})
	return len(s.changes) - 1
}

func (s *sweep) begin(at token.Pos, text string)         { s.edit(at, at, text, false) }
func (s *sweep) finish(at token.Pos, text string)        { s.edit(at, at, text, true) }
func (s *sweep) replace(from, to token.Pos, text string) { s.edit(from, to, text, false) }

func (s *sweep) edit(from, to token.Pos, text string, end bool) {
	s.n++
	at := s.set.Position(from).Offset
	s.edits[s.path] = append(s.edits[s.path], edit{at, int(to - from), text, end, s.n})
}

func isBlank(x ast.Expr) bool { id, ok := x.(*ast.Ident); return ok && id.Name == "_" }

func named(c *ast.CallExpr, name string) bool {
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == name
}

// checksError reports whether a condition is x != nil: a lost error is a change of its own kind.
func checksError(x ast.Expr) bool {
	b, ok := x.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	id, ok := b.Y.(*ast.Ident)
	return ok && id.Name == "nil"
}

var place = regexp.MustCompile(`(?m)^\S*?([^/\s]+\.go):(\d+):\d+: `)

// exclude leaves out the lines that the compiler complains about. No edit adds a line, so they are those of the source.
func (s *sweep) exclude(message string) (more bool) {
	for _, m := range place.FindAllStringSubmatch(message, -1) {
		if at := m[1] + ":" + m[2]; !s.skip[at] {
			s.skip[at], more = true, true
		}
	}
	return more
}
