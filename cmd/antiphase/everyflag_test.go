package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// assertion shows what a flag does: run fails the test when the flag has no effect, or another one.
type assertion func(f *flagRig)

// assertions are those of every verb, by "VERB --flag". Each verb's are in a file of their own.
var assertions = []map[string]assertion{ofAll, ofTrain, ofEval, ofGenerate, ofFolders, ofServe, ofCompare, ofBench,
	ofChat, ofRest, ofExperiment, ofSpeedrun, ofEndpoints}

// TestEveryFlag walks all verbs: a flag is asserted, cannot be shown in a test (its entry says why), or is on the list
// of those that wait. The list may only shrink. The short form runs the assertions of serve alone, which has the most
// goroutines.
func TestEveryFlag(t *testing.T) {
	flags := everyFlag()
	entries := map[string]assertion{}
	for _, m := range assertions {
		maps.Copy(entries, m)
	}
	for name := range entries {
		if flags[name] == nil {
			t.Errorf("%s has an assertion, and there is no such flag", name)
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		switch waits := slices.Contains(waiting, name); {
		case entries[name] == nil && !waits:
			t.Errorf("%s: nothing asserts what it does; give it an entry in everyflag_*_test.go", name)
		case entries[name] != nil && waits:
			t.Errorf("%s has an assertion: take it off the list of those that wait", name)
		case waits:
			missing = append(missing, name)
		}
	}
	for _, name := range waiting {
		if flags[name] == nil {
			t.Errorf("%s waits for an assertion, and there is no such flag", name)
		}
	}
	t.Logf("%d flags, %d with an assertion, %d without", len(flags), len(entries), len(missing))
	rig := newFlagRig(t)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if testing.Short() && !strings.HasPrefix(name, "serve") {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			f := *rig
			f.T, f.name, f.flag = t, name, flags[name]
			entries[name](&f)
		})
	}
}

// everyFlag lists the flags of all verbs, help and completion apart; those of all verbs are under "--flag" alone.
func everyFlag() map[string]*pflag.Flag {
	out := map[string]*pflag.Flag{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "completion" || c.Name() == "help" {
			return
		}
		name := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "antiphase") + " ")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, refused := f.Value.(notComputing); !refused && f.Name != "help" && f.Name != "version" {
				out[strings.TrimSpace(name+" --"+f.Name)] = f
			}
		})
		for _, s := range c.Commands() {
			walk(s)
		}
	}
	walk((&app{}).command(nil))
	return out
}

// flagRig runs the program in this process, in a folder that holds run, a small model of 20 steps.
type flagRig struct {
	*testing.T
	name string
	flag *pflag.Flag
	dir  string
}

func newFlagRig(t *testing.T) *flagRig {
	t.Helper()
	f := &flagRig{T: t, dir: t.TempDir()}
	t.Setenv("ANTIPHASE_HOME", t.TempDir())
	t.Setenv("ANTIPHASE_API_KEY", "")
	t.Chdir(f.dir)
	turn, read := ceilingTime, ceilingBytes
	t.Cleanup(func() { ceilingTime, ceilingBytes = turn, read })
	ceilingTime, ceilingBytes = time.Millisecond, 4<<20 // the values are not looked at here
	f.ok("train", "--size", "nano", "--dir", "run", "-q", "--set", "model.context=256")
	f.write("text.txt", strings.Repeat("the heron waits in the shallow water\n", 200))
	f.write("t.jinja", "{% for m in messages %}<{{ m.content }}>{% endfor %}")
	return f
}

// both runs a command line that must end with code, and gives what it printed.
func (f *flagRig) both(code int, args ...string) (stdout, stderr string) {
	f.Helper()
	var out, errw bytes.Buffer
	if got := run(args, strings.NewReader(""), &out, &errw); got != code {
		f.Fatalf("antiphase %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, errw.String())
	}
	return out.String(), errw.String()
}

// ok is what a command printed that must succeed, fails what one said that must be refused as wrong usage.
func (f *flagRig) ok(args ...string) string { f.Helper(); out, _ := f.both(0, args...); return out }

func (f *flagRig) fails(args ...string) string {
	f.Helper()
	_, text := f.both(exitUsage, args...)
	return text
}

// has and lacks hold text to a pattern.
func (f *flagRig) has(text, pattern string) {
	f.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		f.Errorf("no match of %q in\n%s", pattern, tailOf(text, 2000))
	}
}

func (f *flagRig) lacks(text, pattern string) {
	f.Helper()
	if regexp.MustCompile(pattern).MatchString(text) {
		f.Errorf("a match of %q in\n%s", pattern, tailOf(text, 2000))
	}
}

func (f *flagRig) write(name, text string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o666); err != nil {
		f.Fatal(err)
	}
}

func (f *flagRig) read(name string) string {
	f.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.Fatal(err)
	}
	return string(b)
}

func (f *flagRig) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

// spelled reports whether text has the flag, in its long or its short form.
func (f *flagRig) spelled(text string) bool {
	return regexp.MustCompile(`(^|[\s"'])--`+f.flag.Name+`($|[\s"'=])`).MatchString(text) ||
		f.flag.Shorthand != "" && regexp.MustCompile(`(^|[\s"'])-`+f.flag.Shorthand+`($|[\s"'])`).MatchString(text)
}

// byTest: another test of this package asserts it; it exists and uses the flag.
func byTest(name string) assertion {
	return func(f *flagRig) {
		if text := testText(name); text == "" || !f.spelled(text) {
			f.Errorf("%s: %s is said to assert it, and is missing or does not use it", f.name, name)
		}
	}
}

// testText is the source of a test function of this package.
func testText(name string) string {
	files, _ := filepath.Glob(filepath.Join(packageDir(), "*_test.go"))
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, b, 0)
		if err != nil {
			continue
		}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name {
				return string(b[set.Position(fn.Pos()).Offset:set.Position(fn.End()).Offset])
			}
		}
	}
	return ""
}

// packageDir is where this package's files are, whatever the working folder is by now.
var packageDir = sync.OnceValue(func() string { return startDir })

var startDir, _ = os.Getwd()

// byScript: a script of testdata/script calls the verb with the flag and asserts the result.
func byScript(script string) assertion {
	return func(f *flagRig) {
		b, err := os.ReadFile(filepath.Join(packageDir(), "testdata", "script", script+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		verb, _, _ := strings.Cut(f.name, " --")
		lines := strings.Split(string(b), "\n")
		for i, line := range lines[:len(lines)-1] {
			checked := regexp.MustCompile(`^(! )?(stdout|stderr|exists|grep|cmp)\b`).MatchString(lines[i+1]) ||
				strings.HasPrefix(line, "exit ")
			if strings.Contains(line, "antiphase "+verb+" ") && f.spelled(line) && checked {
				return
			}
		}
		f.Errorf("%s: no line of the script %s uses it and is followed by what must have come of it", f.name, script)
	}
}

// notShown is a flag whose effect no test of this package can show, and why.
func notShown(why string) assertion { return func(f *flagRig) { f.Log(why) } }

// serve starts the server in this process, on a free port, and gives its address, what it says, and a way to stop it.
func (f *flagRig) serve(args ...string) (url string, said func() string) {
	f.Helper()
	var mu sync.Mutex
	var text bytes.Buffer
	a := &app{in: strings.NewReader(""), out: &bytes.Buffer{}, err: writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(b)
	})}
	said = func() string { mu.Lock(); defer mu.Unlock(); return text.String() }
	root := a.command(append([]string{"serve", "--model", "run", "--listen", "127.0.0.1:0", "--chat-template", "plain"},
		args...))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("serve ended with %v", err)
		}
	})
	for range 6000 { // a minute, for the race detector on a busy machine
		if m := regexp.MustCompile(`serving on (http://\S+)`).FindStringSubmatch(said()); m != nil {
			return m[1], said
		}
		select {
		case err := <-done:
			done <- nil
			f.Fatalf("serve %s: %v\n%s", strings.Join(args, " "), err, said())
		case <-time.After(10 * time.Millisecond):
		}
	}
	f.Fatalf("serve said nothing for a minute: %s", said())
	return "", nil
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
