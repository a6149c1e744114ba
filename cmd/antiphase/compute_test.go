package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestComputeFlags: commands that open a device have the flags that say how to compute; all others refuse them, and do
// not offer them.
func TestComputeFlags(t *testing.T) {
	refused := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := strings.Fields(c.CommandPath())[1:]
		if len(path) == 0 || slices.Contains([]string{"completion", "help", "glossary"}, path[0]) {
			return
		}
		var help bytes.Buffer
		run(append(slices.Clone(path), "--help"), strings.NewReader(""), &help, &help)
		for _, flag := range computeFlags {
			if has := strings.Contains(help.String(), " --"+flag+" "); has != opensDevice(c) {
				t.Errorf("%q: its help has --%s: %v, want %v", path, flag, has, opensDevice(c))
			}
			if opensDevice(c) {
				continue
			}
			refused++
			for _, args := range [][]string{append(slices.Clone(path), "--"+flag, "1"),
				append([]string{"--" + flag + "=1"}, path...)} {
				var out, errw bytes.Buffer
				code := run(args, strings.NewReader(""), &out, &errw)
				if text := errw.String(); code != exitUsage || strings.Count(text, "\n") != 1 ||
					!strings.Contains(text, "--"+flag) || !strings.Contains(text, c.CommandPath()+" does not compute") {
					t.Errorf("%q: exit code %d, %q", args, code, text)
				}
			}
		}
	}
	walk((&app{}).command(nil))
	if refused < 40 {
		t.Errorf("only %d flags were refused", refused)
	}
}
