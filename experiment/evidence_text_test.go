package experiment

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Prose fills its lines to the width in characters, breaks at spaces only, and hangs under its lead.
func TestProse(t *testing.T) {
	word := strings.Repeat("λ", 9)
	for lead, perLine := range map[string]int{"": 12, "- ": 11} { // 12 words and 11 spaces are 119 characters
		for n := range 30 {
			got := prose(lead, strings.TrimSpace(strings.Repeat(word+"\n ", n)))
			var want strings.Builder
			want.WriteString(lead)
			for i := range n {
				switch {
				case i > 0 && i%perLine == 0:
					want.WriteString("\n" + strings.Repeat(" ", len(lead)))
				case i > 0:
					want.WriteString(" ")
				}
				want.WriteString(word)
			}
			if got != want.String()+"\n" {
				t.Errorf("%d words after %q are %q", n, lead, got)
			}
		}
	}
	for _, n := range []int{119, 120, 121} {
		line, _, _ := strings.Cut(prose("", strings.Repeat("μ", n-2)+" v"), "\n")
		if want := min(n, 120); utf8.RuneCountInString(line) != want && n <= 120 ||
			n > 120 && strings.Contains(line, "v") {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	if got := prose("- ", strings.Repeat("x", 200)+" y"); got != "- "+strings.Repeat("x", 200)+"\n  y\n" {
		t.Errorf("a word longer than a line: %q", got)
	}
}

// A later command of an experiment is told by the options in which it differs from the first; one that differs in
// anything else, or in nothing that its options tell, stands in full.
func TestLaterCommands(t *testing.T) {
	const first = "antiphase compare --name x --task 'needle needles=4' --jobs 2"
	for command, want := range map[string]string{
		"antiphase compare --name x --task 'needle needles=4' --jobs 3":        "with `--jobs 3` instead of `--jobs 2`",
		"antiphase compare --name x --task 'needle needles=4' --jobs 2 --have": "with `--have`",
		"antiphase compare --name x --jobs 2":                                  "without `--task 'needle needles=4'`",
		"antiphase compare --device cuda --name x --task lm": "with `--device cuda`, `--task lm` instead of " +
			"`--task 'needle needles=4'`, `--jobs 2`",
	} {
		e := written(nil)
		e.command(first, command, true)
		if want = prose("", "Some of the runs come from the same command "+want+".") + "\n"; e.String() != want {
			t.Errorf("%q\nwant %q", e.String(), want)
		}
	}
	for _, command := range []string{"antiphase speedrun --jobs 3", first + " --jobs 2",
		"antiphase compare y --jobs 3"} {
		e := written(nil)
		e.command(first, command, true)
		if want := "Some of the runs come from:\n\n```sh\n" + command + "\n```\n\n"; e.String() != want {
			t.Errorf("%q\nwant %q", e.String(), want)
		}
	}
	e := written(nil)
	if e.command(first, first, false); e.String() != "```sh\n"+first+"\n```\n\n" {
		t.Errorf("the first: %q", e.String())
	}
}
