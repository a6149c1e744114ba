package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"antiphase/checkpoint"
	"antiphase/internal/fault"
	"antiphase/train"
)

// asAntiphase in the environment makes the test binary the program, for launchers that start it.
const asAntiphase = "ANTIPHASE_TEST_MAIN"

// The binary itself, as scripts see it.
func TestMain(m *testing.M) {
	program := func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
	if os.Getenv(asAntiphase) != "" {
		program()
	}
	testscript.Main(m, map[string]func(){"antiphase": program, "curl": curl, "faulty": func() {
		verbs, computing = append(verbs, faultVerb), append(computing, "fault")
		program()
	}})
}

// faultVerb ends as a program can end that has a fault of its own, or whose machine has.
func faultVerb(a *app) *cobra.Command {
	return &cobra.Command{Use: "fault KIND", RunE: func(_ *cobra.Command, args []string) error {
		switch args[0] {
		case "panic":
			panic("the verb is broken")
		case "nil":
			var p *int
			*p++
		case "goroutine":
			var wg sync.WaitGroup
			wg.Go(func() {
				defer fault.Guard()()
				panic("a goroutine is broken")
			})
			wg.Wait()
		case "memory":
			d, err := a.open()
			if err != nil {
				return err
			}
			d.Alloc(1 << 46)
		case "not-finite":
			return fmt.Errorf("step 3: %w", train.ErrNotFinite)
		case "disk":
			return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
		}
		return nil
	}}
}

// Each script in testdata/script is a user's session: what is typed, what must be printed, how it must exit.
func TestScripts(t *testing.T) {
	home := t.TempDir() // what is kept with the machine, measured once
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(e *testscript.Env) error {
		e.Setenv("ANTIPHASE_HOME", home)
		e.Setenv("GORACE", os.Getenv("GORACE")) // where the race detector writes
		return nil
	}, Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": exitCmd, "resave": resaveCmd,
		"full": fullCmd, "sub": subCmd, "lines": linesCmd}, Condition: conditions})
}

// conditions are those that scripts can use besides testscript's own.
func conditions(name string) (bool, error) {
	if name != "race" {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}), nil
}

// resaveCmd is "resave RUN NEW OLD TEXT": a run folder NEW with RUN's newest checkpoint, in whose state OLD has become
// TEXT. Its hashes are right.
func resaveCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: resave RUN NEW OLD TEXT")
	}
	from, err := checkpoint.Open(ts.MkAbs(args[0]), checkpoint.Options{ReadOnly: true})
	ts.Check(err)
	c, err := from.Latest(nil)
	ts.Check(err)
	var files []checkpoint.File
	for _, e := range c.Manifest.Files {
		b, err := os.ReadFile(c.Path(e.Name))
		ts.Check(err)
		if e.Name == "state.json" {
			changed := strings.ReplaceAll(string(b), args[2], args[3])
			if changed == string(b) {
				ts.Fatalf("state.json has no %q:\n%s", args[2], b)
			}
			b = []byte(changed)
		}
		files = append(files, checkpoint.File{Name: e.Name,
			Write: func(w io.Writer) error { _, err := w.Write(b); return err }})
	}
	ts.Check(os.Mkdir(ts.MkAbs(args[1]), 0o777))
	to, err := checkpoint.Open(ts.MkAbs(args[1]), checkpoint.Options{})
	ts.Check(err)
	ts.Check(to.Save(c.Manifest.Step, files))
}

// subCmd is "sub FILE LINE OLD NEW": in that line OLD becomes NEW.
func subCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: sub FILE LINE OLD NEW")
	}
	lines := strings.SplitAfter(ts.ReadFile(args[0]), "\n")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n < 1 || n > len(lines) || !strings.Contains(lines[n-1], args[2]) {
		ts.Fatalf("line %d of %s has no %q", n, args[0], args[2])
	}
	lines[n-1] = strings.Replace(lines[n-1], args[2], args[3], 1)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "")), 0o666))
}

// linesCmd is "lines FILE N": the file must have N lines.
func linesCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
}

// fullCmd is "full CODE args…": antiphase with its output on a device that has no room must end with that code.
func fullCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: full CODE args...")
	}
	exitCmd(ts, false, append([]string{args[0], "sh", "-c", `exec antiphase "$@" > /dev/full`, "sh"}, args[1:]...))
	if s := ts.ReadFile("stderr"); !strings.Contains(s, "standard output: write") {
		ts.Fatalf("no word about the output: %s", s)
	}
}

// exitCmd is "exit CODE command…": the command must end with that code.
func exitCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if e, ok := err.(interface{ ExitCode() int }); ok {
		got = strconv.Itoa(e.ExitCode())
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s (%v)", got, args[0], err)
	}
}
