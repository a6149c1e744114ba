package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/recipe"
)

// documents are the pages that describe the program as it is. The log tells what was, and the evidence page has
// commands of rows, which compare_test.go parses.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "pair/files/*.md", "examples/*.md",
		"examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if slices.Contains([]string{"docs/log.md", "docs/evidence.md", "CHANGELOG.md"}, name) {
				continue
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(b)
		}
	}
	return out
}

var (
	commandPattern = regexp.MustCompile("antiphase ([a-z][a-z-]*)( [a-z]+)?(?:\\\\\n|[^`\n#|;])*")
	flagPattern    = regexp.MustCompile(`(?:^|[\s\[])(--[a-z][a-z-]*)`)
	barePattern    = regexp.MustCompile("`(--[a-z][a-z-]*)")
	keyPattern     = regexp.MustCompile("`(?:--set )?((?:train|model|optim|data|tokenizer)\\.[a-z_0-9]+)[=`]")
)

// manual is what a document may name.
type manual struct {
	flags map[string]bool // "VERB --flag", "--flag" for those of all verbs
	verbs map[string]bool
	known map[string]bool // flags of any verb
	keys  map[string]bool // of a recipe
	found int             // commands, flags and keys that were looked at
}

func newManual(t *testing.T) *manual {
	t.Helper()
	m := &manual{flags: map[string]bool{}, verbs: map[string]bool{},
		known: map[string]bool{"--help": true, "--version": true}, keys: map[string]bool{}}
	for name := range everyFlag() {
		verb, flag, _ := strings.Cut(name, "--")
		m.flags[name], m.known["--"+flag] = true, true
		if words := strings.Fields(verb); len(words) > 0 {
			m.verbs[words[0]] = true
		}
	}
	r, err := recipe.Named("tiny", "diff")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Fields() {
		m.keys[f.Path] = true
	}
	return m
}

// wrong lists what a text names and the program does not have.
func (m *manual) wrong(text string) (out []string) {
	for _, c := range commandPattern.FindAllStringSubmatch(text, -1) {
		if !m.verbs[c[1]] {
			continue // a sentence about the program
		}
		for _, f := range flagPattern.FindAllStringSubmatch(c[0], -1) {
			if m.found++; !m.flags[c[1]+" "+f[1]] && !m.flags[c[1]+c[2]+" "+f[1]] && !m.flags[f[1]] &&
				f[1] != "--help" {
				out = append(out, "antiphase "+c[1]+c[2]+" "+f[1])
			}
		}
	}
	for _, f := range barePattern.FindAllStringSubmatch(text, -1) {
		if m.found++; !m.known[f[1]] {
			out = append(out, f[1])
		}
	}
	for _, k := range keyPattern.FindAllStringSubmatch(text, -1) {
		file := slices.Contains([]string{".json", ".safetensors"}, filepath.Ext(k[1]))
		if m.found++; !m.keys[k[1]] && !file {
			out = append(out, k[1])
		}
	}
	return out
}

// Every flag that a document gives to a verb is one of that verb's, every other flag one of some verb's, and every key
// of a recipe is a key.
func TestDocumented(t *testing.T) {
	m := newManual(t)
	for page, text := range documents(t) {
		for _, w := range m.wrong(text) {
			t.Errorf("%s: there is no %s", page, w)
		}
	}
	if m.found < 300 {
		t.Errorf("%d names were found: the patterns fail", m.found)
	}
}

// TestDocumentedCanFail: what is wrong is found, what is right is not.
func TestDocumentedCanFail(t *testing.T) {
	m := newManual(t)
	for text, want := range map[string]string{
		"antiphase train --size tiny --sise x":              "antiphase train --sise",
		"antiphase train --size tiny \\\n  --reqests 3":     "antiphase train --reqests",
		"antiphase bench serve --rate 4 --requests 200":     "",
		"antiphase bench train --requests 200":              "antiphase bench train --requests",
		"antiphase train --device cpu --quiet | x --others": "",
		"antiphase is fast --really":                        "",
		"`--probe-every` and `--no-such`":                   "--no-such",
		"`train.keep_last`, `--set train.keep_lst=3`":       "train.keep_lst",
	} {
		if got := strings.Join(m.wrong(text), ", "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
