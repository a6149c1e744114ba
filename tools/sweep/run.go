package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// switchText is compiled into the package: which change is on, and which are reached.
const switchText = `
import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	sweep_active = func() int { n, err := strconv.Atoi(os.Getenv("SWEEP_CHANGE")); if err != nil { n = -1 }; return n }()
	sweep_reach  = os.Getenv("SWEEP_REACH")
	sweep_mu     sync.Mutex
	sweep_seen   = map[int]bool{}
)

func sweep_on(i int) bool {
	if sweep_reach != "" {
		sweep_mark(i)
	}
	return i == sweep_active
}

func sweep_mark(i int) {
	sweep_mu.Lock()
	defer sweep_mu.Unlock()
	if sweep_seen[i] {
		return
	}
	sweep_seen[i] = true
	f, err := os.OpenFile(sweep_reach, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		fmt.Fprintln(f, i)
		f.Close()
	}
}

func sweep_lss[T cmp.Ordered](i int, a, b T) bool { return a < b || sweep_on(i) && a == b }
func sweep_leq[T cmp.Ordered](i int, a, b T) bool { return a < b || !sweep_on(i) && a == b }
func sweep_gtr[T cmp.Ordered](i int, a, b T) bool { return a > b || sweep_on(i) && a == b }
func sweep_geq[T cmp.Ordered](i int, a, b T) bool { return a > b || !sweep_on(i) && a == b }

func sweep_add[T sweep_number](i int, a, b T) T { if sweep_on(i) { return a }; return a + b }
func sweep_sub[T sweep_number](i int, a, b T) T { if sweep_on(i) { return a }; return a - b }
func sweep_keep[T any](i int, a, b T) T { if sweep_on(i) { return a }; return b }

type sweep_number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func sweep_max[T cmp.Ordered](i, j int, a, b T) T { return sweep_of(i, j, a, b, max(a, b)) }
func sweep_min[T cmp.Ordered](i, j int, a, b T) T { return sweep_of(i, j, a, b, min(a, b)) }

func sweep_of[T cmp.Ordered](i, j int, a, b, r T) T {
	if sweep_on(i) {
		return a
	}
	if sweep_on(j) {
		return b
	}
	return r
}
`

// test is a test of the package and the time it takes.
type test struct {
	name string
	time time.Duration
}

type runner struct {
	binary, dir, tmp string
	short            bool
	reach            map[int][]test // by change, the quickest first
}

// measure runs every test alone and notes its time and what it reaches. A test that fails is left out.
func (r *runner) measure(slow time.Duration) error {
	out, err := r.command(context.Background(), "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("-test.list: %w", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		file := filepath.Join(r.tmp, "reach")
		os.Remove(file)
		ctx, cancel := context.WithTimeout(context.Background(), slow)
		c := r.command(ctx, "-test.run", "^"+name+"$")
		c.Env = append(os.Environ(), "SWEEP_REACH="+file)
		begin := time.Now()
		err := c.Run()
		cancel()
		if err != nil {
			fmt.Printf("without   %s: %v\n", name, err)
			continue
		}
		t := test{name, time.Since(begin)}
		b, _ := os.ReadFile(file)
		for _, line := range bytes.Fields(b) {
			if i, err := strconv.Atoi(string(line)); err == nil && !slices.Contains(r.reach[i], t) {
				r.reach[i] = append(r.reach[i], t)
			}
		}
	}
	for _, list := range r.reach {
		slices.SortFunc(list, func(a, b test) int { return int(a.time - b.time) })
	}
	return nil
}

// try reports whether a test notices change i: the three quickest first, then the others. Out of time is noticed too.
func (r *runner) try(i int) bool {
	list := r.reach[i]
	for len(list) > 0 {
		part := list[:min(3, len(list))]
		if len(list) < len(r.reach[i]) {
			part = list
		}
		list = list[len(part):]
		var names []string
		var sum time.Duration
		for _, t := range part {
			names, sum = append(names, t.name), sum+t.time
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+5*sum)
		c := r.command(ctx, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
		c.Env = append(os.Environ(), "SWEEP_CHANGE="+strconv.Itoa(i))
		err := c.Run()
		cancel()
		if err != nil {
			return true
		}
	}
	return false
}

func (r *runner) command(ctx context.Context, args ...string) *exec.Cmd {
	if r.short {
		args = append(args, "-test.short")
	}
	c := exec.CommandContext(ctx, r.binary, args...)
	c.Dir = r.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// It ends the programs that tests have started, too.
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	return c
}

// build writes the overlay and compiles the test binary.
func (s *sweep) build(tmp, binary, pkg, name string) (message string, err error) {
	switches := filepath.Join(s.dir, "sweep_switches.go")
	replaced := map[string]string{switches: filepath.Join(tmp, "switches.go")}
	if err := os.WriteFile(replaced[switches], []byte("package "+name+"\n"+switchText), 0o600); err != nil {
		return "", err
	}
	for path, list := range s.edits {
		to := filepath.Join(tmp, filepath.Base(path))
		if err := os.WriteFile(to, apply(path, list), 0o600); err != nil {
			return "", err
		}
		replaced[path] = to
	}
	var b bytes.Buffer
	b.WriteString(`{"Replace":{`)
	for from, to := range replaced {
		fmt.Fprintf(&b, "%q:%q,", from, to)
	}
	b.Truncate(b.Len() - 1)
	b.WriteString("}}")
	overlay := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(overlay, b.Bytes(), 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", binary,
		pkg).CombinedOutput()
	return string(out), err
}

// apply makes the edits of a file. Insertions that begin at one place nest: the later is inside.
func apply(path string, list []edit) []byte {
	src, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	slices.SortFunc(list, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.end != b.end: // what ends here comes before what begins
			if a.end {
				return -1
			}
			return 1
		case a.end: // the innermost first
			return b.n - a.n
		}
		return a.n - b.n
	})
	var out bytes.Buffer
	from := 0
	for _, e := range list {
		out.Write(src[from:e.at])
		out.WriteString(e.text)
		from = e.at + e.cut
	}
	out.Write(src[from:])
	return out.Bytes()
}
