package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// told is a test that keeps how it was ended.
type told struct {
	testing.TB
	skipped, failed string
}

func (x *told) Skip(args ...any) { x.skipped = args[0].(string); runtime.Goexit() }

func (x *told) Fatalf(format string, args ...any) {
	x.failed = args[len(args)-1].(string)
	runtime.Goexit()
}

// A test without a usable browser is skipped with the reason, and fails where a browser is required: if none is
// installed, and if the one that is ends at once, with what it said.
func TestLack(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("no browser is started with -short or on Windows")
	}
	for _, c := range []struct{ script, says string }{{"", "no chromium is installed"},
		{"#!/bin/sh\necho no display >&2; exit 1\n", "no display"}} {
		dir := t.TempDir()
		if c.script != "" {
			if err := os.WriteFile(filepath.Join(dir, "chromium"), []byte(c.script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir)
		for _, must := range []string{"", "1"} {
			t.Setenv(required, must)
			x := &told{TB: t}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				Open(x)
			}()
			<-ended
			if (must == "") != (x.failed == "") || (must == "") == (x.skipped == "") ||
				!strings.Contains(x.failed+x.skipped, c.says) {
				t.Errorf("required %q: skipped %q, failed %q, want %q", must, x.skipped, x.failed, c.says)
			}
		}
	}
}
