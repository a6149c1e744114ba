package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"trian", "train", 1}, {"abc", "abc", 0},
		{"flaw", "lawn", 2}, {"ab", "ba", 1}} {
		if got, back := Distance(c.a, c.b), Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestClose(t *testing.T) {
	words := []string{"train", "decode", "gemm", "attention"}
	for in, want := range map[string]string{"trian": "train", "atention": "attention", "foo": "", "": "",
		"dcode": "decode", strings.Repeat("train", 99): ""} {
		if got := Close(in, words); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Of equal candidates the first; a suggestion differs in at most two places, or in a third of a longer word, of which
// 80 bytes count.
func TestBounds(t *testing.T) {
	if w, d := Word("cat", []string{"hat", "bat", "at"}); w != "hat" || d != 1 {
		t.Errorf("%s, %d", w, d)
	}
	if w, d := Word("cat", []string{"hat", "cat", "bat"}); w != "cat" || d != 0 {
		t.Errorf("%s, %d", w, d)
	}
	if w, d := Word("cat", nil); w != "" || d != -1 {
		t.Errorf("none: %q, %d", w, d)
	}
	for _, c := range []struct {
		in, word string
		close    bool
	}{
		{"abc", "xyc", true}, {"abc", "xyz", false}, {"abcdefgh", "xyzdefgh", false}, {"abcdefghi", "xyzdefghi", true},
		{"abcdefghi", "wxyzefghi", false}, {"abcdefghijkl", "wxyzefghijkl", true}, {"", "ab", true},
		{"", "abc", false},
		{strings.Repeat("a", 90), strings.Repeat("a", 80), true},
		{strings.Repeat("a", 300), strings.Repeat("a", 80-26) + strings.Repeat("b", 26), true},
		{strings.Repeat("a", 300), strings.Repeat("a", 80-27) + strings.Repeat("b", 27), false},
	} {
		if got := Close(c.in, []string{c.word}); (got == c.word) != c.close || got != "" && got != c.word {
			t.Errorf("%q for %q: %q", c.word, c.in, got)
		}
	}
}

// The distance is the one of its definition, over all pairs of short words: the least of taking a letter away, adding
// one, changing one and exchanging two neighbours, none of which is edited again.
func TestDistanceOfEveryPair(t *testing.T) {
	var of func(a, b string) int
	of = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		least := of(a[1:], b[1:])
		if a[0] != b[0] {
			least++
		}
		least = min(least, of(a[1:], b)+1, of(a, b[1:])+1)
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			least = min(least, of(a[2:], b[2:])+1)
		}
		return least
	}
	words := []string{""}
	for from := 0; len(words[from]) < 4; from++ {
		for _, c := range "abc" {
			words = append(words, words[from]+string(c))
		}
	}
	for i, a := range words {
		for j := 0; j < len(words); j += 1 + i%5 {
			if got, want := Distance(a, words[j]), of(a, words[j]); got != want {
				t.Fatalf("%q and %q: %d, want %d", a, words[j], got, want)
			}
		}
	}
}
