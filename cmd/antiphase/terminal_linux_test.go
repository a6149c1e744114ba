package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal of some columns, and what was written to it.
func screen(t *testing.T, columns uint16) (w *os.File, read func() string) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { host.Close() })
	fd := int(host.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 5, Col: columns})
	}
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	if w, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { w.Close() })
	return w, func() string {
		const end = "\x00"
		_, _ = io.WriteString(w, end)
		var all []byte
		b := make([]byte, 4096)
		for !bytes.HasSuffix(all, []byte(end)) {
			k, err := host.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b[:k]...)
		}
		return strings.ReplaceAll(strings.TrimSuffix(string(all), end), "\r\n", "\n")
	}
}

// On a terminal progress is one line that is rewritten: what is longer than the screen is cut, what is shorter erases
// the rest, and lines come at most every 50 ms.
func TestLiveLine(t *testing.T) {
	w, read := screen(t, 12)
	a := &app{err: w, color: "auto"}
	l := a.newLine()
	l.show("0123456789abcdef", false)
	if l.last.IsZero() {
		t.Error("the time of a line is not kept")
	}
	l.last = time.Now().Add(time.Hour) // a busy machine may take 50 ms from line to line
	l.show("too soon", false)
	l.show("μ short", true)
	l.last = time.Time{}
	l.show("later", false)
	l.end()
	l.end()
	if got, want := read(), "\r0123456789a\rμ short    \rlater  \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a.quiet = true
	l.show("x", true)
	l.end()
	if got := read(); got != "" {
		t.Errorf("with --quiet: %q", got)
	}
}

// Colours follow the stream that text goes to, not another one: a file never has any unless they were asked for.
func TestColoursFollowTheStream(t *testing.T) {
	w, read := screen(t, 80)
	dir := t.TempDir()
	if code, _, errs := ran(t, "train", "--size", "nano", "--steps", "1", "--dir", dir, "-q", "--device",
		"cpu"); code != 0 {
		t.Fatal(errs)
	}
	var b bytes.Buffer
	for _, x := range []struct {
		what, color string
		out         io.Writer
		want        bool
	}{{"a file beside a terminal", "auto", &b, false}, {"a terminal", "auto", w, true}, {"never", "never", w, false},
		{"always", "always", &b, true}} {
		b.Reset()
		a := &app{out: &output{Writer: x.out}, err: w, color: x.color}
		if err := validateModel(context.Background(), a, dir, false, true); err != nil {
			t.Fatal(err)
		}
		text := read() + b.String()
		if !strings.Contains(text, "folder") || strings.Contains(text, "\x1b[32mok") != x.want {
			t.Errorf("%s: %q", x.what, text)
		}
	}
	t.Setenv("NO_COLOR", "1")
	if a := (&app{err: w, color: "auto"}); a.paint(red, "x") != "x" {
		t.Error("NO_COLOR is ignored")
	}
	t.Setenv("NO_COLOR", "")
	if a := (&app{err: w, color: "auto"}); a.paint(red, "x") != "\x1b[31mx\x1b[0m" {
		t.Error("no colour on a terminal")
	}
	t.Setenv("TERM", "dumb")
	if a := (&app{err: w, color: "auto"}); a.paint(red, "x") != "x" || a.newLine().live {
		t.Error("a dumb terminal gets control sequences")
	}
}
