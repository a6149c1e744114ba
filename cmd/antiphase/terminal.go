package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"antiphase/eval/report"
	"antiphase/internal/escape"
)

const (
	red   = "31"
	green = "32"
	dim   = "2"
	bold  = "1"
)

// note prints a message to stderr. With --quiet only warnings are, and ranks other than the first print none.
func (a *app) note(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	warns := strings.HasPrefix(s, "warning: ") || strings.Contains(s, ": warning: ")
	if !a.mute && (!a.quiet || warns) {
		fmt.Fprintln(a.err, escape.Text(s))
	}
}

// output is standard output. It keeps the first error, which run reports, because results of Fprint are rarely checked.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer. After an error nothing more is written.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(p)
	o.err = err
	return n, err
}

// file returns the file behind a stream.
func file(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

// terminal reports whether w is a terminal that understands control sequences.
func terminal(w io.Writer) bool {
	f, ok := file(w)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// paint colours text for stderr, if colours are enabled there.
func (a *app) paint(code, s string) string { return painted(a.colored(a.err), code, s) }

// painted is text in a colour, or as it is.
func painted(colored bool, code, s string) string {
	if !colored {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// colored reports whether text for w has colours: if --color is auto, on a terminal without NO_COLOR.
func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && terminal(w)
}

// line is a progress display: one line rewritten in place on a terminal, otherwise an occasional plain line.
type line struct {
	a     *app
	live  bool
	last  time.Time
	width int
}

func (a *app) newLine() *line { return &line{a: a, live: terminal(a.err)} }

// show displays s. Plain lines appear at most every few seconds unless must.
func (l *line) show(s string, must bool) {
	if l.a.quiet {
		return
	}
	s = escape.Text(s)
	now := time.Now()
	if l.live {
		if !must && now.Sub(l.last) < 50*time.Millisecond {
			return
		}
		s = fit(l.a.err, s)
		n := utf8.RuneCountInString(s)
		fmt.Fprintf(l.a.err, "\r%s%s", s, strings.Repeat(" ", max(0, l.width-n)))
		l.width = n
	} else {
		if !must && now.Sub(l.last) < 5*time.Second {
			return
		}
		fmt.Fprintln(l.a.err, s)
	}
	l.last = now
}

// fit cuts a line to the terminal's width, so that rewriting it does not scroll.
func fit(w io.Writer, s string) string {
	if f, ok := file(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 {
			if r := []rune(s); len(r) >= width {
				return string(r[:width-1])
			}
		}
	}
	return s
}

// end keeps the line on the screen.
func (l *line) end() {
	if l.live && l.width > 0 && !l.a.quiet {
		fmt.Fprintln(l.a.err)
	}
	l.width = 0
}

// json prints v to stdout, indented.
func (a *app) json(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// seconds formats a duration for display.
func seconds(s float64) string {
	const hour, day = 3600, 24 * 3600
	switch n := int(min(s, 2*day)); {
	case s < 10:
		return fmt.Sprintf("%.1fs", s)
	case s < hour:
		return fmt.Sprintf("%dm%02ds", n/60, n%60)
	case s <= 2*day:
		return fmt.Sprintf("%dh%02dm", n/hour, n/60%60)
	case s < 10*day:
		return fmt.Sprintf("%.1f days", s/day)
	}
	return fmt.Sprintf("%.0f days", s/day)
}

// count formats a number for display: 12.34k, 4.567M.
func count(n float64) string { return report.Short(n, 4) }
