package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// withPart is tinyJSON with one component exchanged.
func withPart(t *testing.T, name string, part any) []byte {
	t.Helper()
	var f map[string]json.RawMessage
	if err := json.Unmarshal([]byte(tinyJSON), &f); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	f[name] = b
	return must(json.Marshal(f))
}

func splitBy(expr string) map[string]any {
	return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": expr}, "behavior": "Isolated",
		"invert": false}
}

// doubling is a chain of n replacements of which each doubles what the one before it made.
func doubling(list string, n int) map[string]any {
	var steps []any
	for range n {
		steps = append(steps, map[string]any{"type": "Replace", "pattern": map[string]any{"String": "a"},
			"content": "aa"})
	}
	return map[string]any{"type": "Sequence", list: steps}
}

// TestHostileFiles: expressions that would run for years and replacements that would fill the memory are refused when
// they are read.
func TestHostileFiles(t *testing.T) {
	for name, b := range map[string][]byte{
		"nested repetition":     withPart(t, "pre_tokenizer", splitBy(`(a+)+$`)),
		"ambiguous alternation": withPart(t, "pre_tokenizer", splitBy(`(b|bb)+$`)),
		"overlapping words":     withPart(t, "pre_tokenizer", splitBy(`(xy|x|y)*z`)),
		"nested classes":        withPart(t, "pre_tokenizer", splitBy(`(\s*\w+\s*)+;`)),
		"in a normalizer": withPart(t, "normalizer",
			map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": `(é+)+$`}, "content": "e"}),
		"doubling": withPart(t, "normalizer", doubling("normalizers", 40)),
		"long content": withPart(t, "normalizer",
			map[string]any{"type": "Replace", "pattern": map[string]any{"Regex": "."},
				"content": strings.Repeat("x", 1<<20)}),
		"doubling decoder": withPart(t, "decoder", doubling("decoders", 40)),
	} {
		begin := time.Now()
		if _, err := Parse(b); err == nil {
			t.Errorf("%s: was accepted", name)
		} else if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: refused after %v: %v", name, took, err)
		}
	}
}

// TestBudgetAtWork: what the trial did not see ends too, loses no text, and is reported.
func TestBudgetAtWork(t *testing.T) {
	tok, err := Parse(withPart(t, "normalizer",
		map[string]any{"type": "Replace", "pattern": map[string]any{"String": "b"},
			"content": strings.Repeat("ab", 120)}))
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode("b"); tok.Err() != nil || len(ids) < 100 {
		t.Fatalf("one letter: %d ids, error %v", len(ids), tok.Err())
	}
	b := &budget{}
	p := pattern{literal: "b", budget: b}
	if s := p.replace("abba", "xx", 5); s != "abba" || b.err() == nil {
		t.Errorf("beyond its room: %q, error %v", s, b.err())
	}
	b = &budget{}
	re, err := compileRegex("b", b)
	if err != nil {
		t.Fatal(err)
	}
	if s := re.replace("abba", "xx", 6); s != "axxxxa" || b.err() != nil {
		t.Errorf("within its room: %q, error %v", s, b.err())
	}
	if s := re.replace("abba", "xx", 4); s != "abba" || b.err() == nil {
		t.Errorf("beyond its room: %q, error %v", s, b.err())
	}
}

// TestSearchTimeout runs a pattern out of its time.
func TestSearchTimeout(t *testing.T) {
	b := &budget{}
	p := pattern{re: regexp2.MustCompile(`(a+)+$`), budget: b} // as if no trial had seen it
	p.re.MatchTimeout = 20 * time.Millisecond
	s := strings.Repeat("a", 64) + "!"
	if got := matchPattern(p)(nil, s); len(got) != 1 || got[0].stop != len(s) || b.err() == nil {
		t.Errorf("%d spans, error %v", len(got), b.err())
	}
}

// TestKnownFilesPass: none of the tokenizers in use meets the limits.
func TestKnownFilesPass(t *testing.T) {
	files, err := filepath.Glob("testdata/*/tokenizer.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Parse(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		tok.Encode(strings.Repeat("Hello, wörld! 漢字 123\n\n  x", 200))
		if tok.Err() != nil {
			t.Errorf("%s: %v", path, tok.Err())
		}
	}
}
