package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests called Attack repeat attempts from outside: kills, damaged files, bad command lines. They print counts;
// with ANTIPHASE_TEST_LONG=1 there are as many as an audit makes (200 and 100 kills, 3,000 files, 500 lines), else
// enough to notice that one of them no longer works.

// attempts chooses between the two.
func attempts(short, long int) int {
	if os.Getenv("ANTIPHASE_TEST_LONG") != "" {
		return long
	}
	return short
}

// ordeal runs the program in a folder, as a process of its own, and holds it to what is promised whatever it is given.
type ordeal struct {
	*testing.T
	dir     string
	codes   map[int]int
	most    int64 // memory of any of them, bytes
	longest time.Duration
	running int // of those that serve until they are stopped
}

// Its folder is deep enough that paths which lead out of it stay within the test's.
func newOrdeal(t *testing.T) *ordeal {
	dir := filepath.Join(t.TempDir(), "in", "side")
	for _, d := range []string{dir, filepath.Join(dir, "../../outside")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	debug.FreeOSMemory() // a child's largest memory begins with its parent's
	return &ordeal{T: t, dir: dir, codes: map[int]int{}}
}

const (
	mostMemory = 1 << 30
	mostTime   = 60 * time.Second // on a machine with other work; nothing takes more than a few
)

// documented are the exit codes that an attempt may end with. 70, a fault of the program itself, is one of them and
// never right.
var documented = []int{0, exitFailed, exitUsage, exitBadInput, exitNoRoom, exitNotFinite}

// try runs one command line. serves means that it may still run after two seconds.
func (o *ordeal) try(what string, serves bool, args ...string) (code int, said string) {
	o.Helper()
	limit := mostTime
	if serves {
		limit = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := self(args...)
	cmd = exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	cmd.Args[0], cmd.Dir = "antiphase", o.dir
	cmd.Env = append(os.Environ(), "ANTIPHASE_HOME="+o.dir, "HF_HOME="+o.dir)
	var errw bytes.Buffer
	cmd.Stderr = &errw
	began := time.Now()
	err := cmd.Run()
	o.longest = max(o.longest, time.Since(began))
	if cmd.ProcessState == nil {
		o.Errorf("%s: %v", what, err)
		return -1, ""
	}
	code, said = cmd.ProcessState.ExitCode(), strings.TrimSpace(errw.String())
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.running++
		if !serves {
			o.Errorf("%s: antiphase %q hangs", what, args)
		}
		return 0, ""
	}
	o.codes[code]++
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.most = max(o.most, u.Maxrss<<10)
		if u.Maxrss<<10 > mostMemory {
			o.Errorf("%s: antiphase %q took %d MiB", what, args, u.Maxrss>>10)
		}
	}
	if fault := o.fault(code, said); fault != "" {
		o.Errorf("%s: antiphase %q: %s\n%.2000s", what, args, fault, said)
	}
	return code, said
}

// fault reports what is wrong with how a command ended.
func (o *ordeal) fault(code int, said string) string {
	last := said[strings.LastIndexByte(said, '\n')+1:]
	switch {
	case !slices.Contains(documented, code):
		return fmt.Sprintf("exit code %d", code)
	case strings.Contains(said, "goroutine "):
		return "a stack"
	case code != 0 && !strings.HasPrefix(last, "error: "):
		return fmt.Sprintf("exit code %d, and its last line is no error", code)
	case code != 0 && strings.Contains("\n"+strings.TrimSuffix(said, last), "\nerror: "):
		return "more than one error"
	case code == 0 && strings.Contains(said, "error: "):
		return "an error, and exit code 0"
	}
	return ""
}

func (o *ordeal) report(what string, n int) {
	o.Logf("%d %s: exit codes %s; largest memory %d MiB, longest %s, %d were still serving", n, what,
		counts(o.codes), o.most>>20, o.longest.Round(time.Millisecond), o.running)
}

func counts(m map[int]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%d × %d", m[k], k))
	}
	return strings.Join(out, ", ")
}
