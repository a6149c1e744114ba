package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Every verb that reads a template from a file names the file and its fault, and writes nothing.
func TestTemplateFile(t *testing.T) {
	nanoRun(t)
	if err := errors.Join(os.WriteFile("latin.jinja", []byte("caf\xe9 {{ messages[0].content }}"), 0o644),
		os.WriteFile("cut.jinja", []byte("{{ x }}\n\u00e9\xe2\x82"), 0o644),
		os.WriteFile("open.jinja", []byte("{% if"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{
		"latin.jinja": "--chat-template: latin.jinja: chat template: line 1: not UTF-8 at byte offset 3",
		"cut.jinja":   "--chat-template: cut.jinja: chat template: line 2: not UTF-8 at byte offset 10",
		"open.jinja":  "--chat-template: open.jinja: chat template: ",
		"none.jinja":  "--chat-template: open none.jinja: ",
	} {
		for _, args := range [][]string{{"export", "run", "out"}, {"convert", "run", "out", "--to", "transformers"},
			{"chat", "-m", "run"}, {"serve", "-m", "run", "--listen", "127.0.0.1:0"}} {
			args = append(args, "--chat-template", file)
			if code, _, errs := ran(t, args...); code != exitBadInput || !strings.Contains(errs, says) {
				t.Errorf("%q: exit %d, %s", args, code, errs)
			}
			if _, err := os.Stat("out"); err == nil {
				t.Fatalf("%q wrote a folder", args)
			}
		}
	}
}
