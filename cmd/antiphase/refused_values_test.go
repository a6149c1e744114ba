package main

import (
	"bytes"
	"strings"
	"testing"
)

// said1 runs a command line in this process and returns its code and what it printed to stderr.
func said1(args ...string) (int, string) {
	var out, errw bytes.Buffer
	code := run(args, strings.NewReader(""), &out, &errw)
	return code, errw.String()
}

// Text that comes from outside reaches the terminal without control characters and as UTF-8.
func TestMessagesArePrintable(t *testing.T) {
	t.Chdir(t.TempDir())
	const evil = "x\x1b[31m\xff\x7f\u009b"
	for _, args := range [][]string{
		{"generate", "--model", evil, "-p", "x"}, {"show", evil}, {"train", "--size", "nano", "--data", evil}, {"train", "--size", "nano", "--set", evil + "=1"},
		{"train", evil}, {"eval", "--tasks", "lm", "--limit", "1", "--model", evil + "=pair:diff"}, {"report", evil}, {evil},
		{"train", "--size", "nano", "--steps", "0", "--dir", evil}, {"generate", "--" + evil}, {"train", "--steps", evil}, {"serve", "--listen", evil},
	} {
		_, text := said1(args...)
		if text == "" || text != strings.ToValidUTF8(text, "?") || strings.ContainsAny(text, "\x1b\x7f\u009b") {
			t.Errorf("%q: %q", args, text)
		}
	}
}
