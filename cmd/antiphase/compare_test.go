package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The command in rows can be typed again and is the same for all stretches of an experiment.
func TestCommandLine(t *testing.T) {
	want := "antiphase compare --data 'lm/*.zst' --seeds 3"
	for _, args := range [][]string{
		{"compare", "--data", "lm/*.zst", "--seeds", "3"},
		{"compare", "--have", "/tmp/rows.jsonl", "--data", "lm/*.zst", "--have=more.jsonl", "--seeds", "3"},
		{"compare", "--data", "lm/*.zst", "--seeds", "3", "--have", "rows.jsonl"},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%q: %s", args, got)
		}
	}
}

// Bad input is refused before any work, with the code that its kind has, and the folder stays as it was. A dry run
// refuses the same.
func TestCompareRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"short.txt": "a few words\n",
		"text.txt":     strings.Repeat("words of text ", 900),
		"broken.jsonl": "{\n", "none.jsonl": "\n", "mine/file": "mine"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "--size, --arch and --seeds", []string{"--arch", ""}},
		{exitUsage, "train.seed is decided by --seeds", []string{"--seeds", "2", "--set", "train.seed=9"}},
		{exitUsage, "pieces=abc", []string{"--task", "lm pieces=abc"}},
		{exitBadInput, "broken.jsonl", []string{"--have", "broken.jsonl"}},
		{exitBadInput, "none.jsonl", []string{"--have", "none.jsonl"}},
		{exitBadInput, "short.txt: has 11 bytes of text, one row takes 32",
			[]string{"--data", "text.txt@0.5", "--data", "short.txt@0.5"}},
		{exitBadInput, "short.txt: has 11 bytes of text in all, one batch takes", []string{"--data", "short.txt"}},
		{exitBadInput, "unknown kind of file", []string{"--data", "mine/file"}},
		{exitBadInput, "nothing.txt", []string{"--data", "nothing.txt"}},
		{exitUsage, "mine is not the folder", []string{"--dir", "mine"}},
	} {
		args := append([]string{"compare", "--size", "nano", "--device", "cpu", "--steps", "2", "--dir", "x", "-q"},
			c.args...)
		for _, args := range [][]string{args, append(slices.Clone(args), "--dry-run")} {
			if out, text := call(t, dir, c.code, args...); !strings.Contains(text, c.says) || out != "" {
				t.Errorf("%q: %s%s, want %q", args, out, text, c.says)
			}
		}
		for _, name := range []string{"x/runs", "x/data", "mine/runs"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%q: %s was made", c.args, name)
			}
		}
	}
}

// Verbs that train refuse the folder of an experiment, whose tokens they would replace, and change nothing in it.
func TestExperimentIsNotTrainedIn(t *testing.T) {
	dir := t.TempDir()
	call(t, dir, 0, "compare", "--size", "nano", "--arch", "diff", "--seeds", "1", "--steps", "2", "--device", "cpu",
		"-q", "--dir", "x", "--probe", "none", "--task", "outliers", "--data", "synthetic:docs=100,len=256", "--set",
		"tokenizer.vocab=300")
	before := tree(t, filepath.Join(dir, "x"))
	for _, verb := range []string{"train", "ablation"} {
		_, text := call(t, dir, exitUsage, verb, "--size", "nano", "--steps", "2", "--device", "cpu",
			"-q", "--dir", "x")
		if !strings.Contains(text, "--dir: x is the folder of an experiment") {
			t.Errorf("%s: %s", verb, text)
		}
		if after := tree(t, filepath.Join(dir, "x")); len(after) < 10 || !slices.Equal(before, after) {
			t.Errorf("%s: the folder has changed", verb)
		}
	}
}

// Every command that docs/evidence.md prints is one that compare takes, up to its text: --jobs 0 stops it there.
func TestEvidenceCommands(t *testing.T) {
	b, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "antiphase compare ") {
			continue
		}
		seen++
		args := append(shellWords(strings.TrimSpace(line))[1:], "--jobs", "0")
		if _, text := call(t, t.TempDir(), exitUsage, args...); !strings.Contains(text, "--jobs: is 0") {
			t.Errorf("%s: %s", line, text)
		}
	}
	if seen < 6 {
		t.Errorf("%d commands", seen)
	}
}

// shellWords splits a line at spaces outside of quotes.
func shellWords(line string) (out []string) {
	word, quote := "", rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote, quote == 0 && (r == '\'' || r == '"'):
			quote ^= r // opens or closes
		case quote == 0 && r == ' ':
			if word != "" {
				out = append(out, word)
			}
			word = ""
		default:
			word += string(r)
		}
	}
	return out
}
