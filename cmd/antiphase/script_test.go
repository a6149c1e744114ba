package main

import (
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The binary itself, as scripts see it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"antiphase": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }})
}

// Each script in testdata/script is a user's session: what is typed, what must be printed, how it must exit.
func TestScripts(t *testing.T) {
	home := t.TempDir() // what is kept with the machine, measured once
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(e *testscript.Env) error {
		e.Setenv("ANTIPHASE_HOME", home)
		return nil
	}, Cmds: map[string]func(*testscript.TestScript, bool, []string){"exit": exitCmd}})
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
