package tokenizer

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestUnicodeCounts compares how many characters have each property with the numbers that Hugging Face tokenizers 0.23
// gives. It fails when Go's Unicode tables move to another version: the ranges in unicode.go must then be made again.
func TestUnicodeCounts(t *testing.T) {
	changes := func(f func(string) string) func(rune) bool {
		return func(r rune) bool { s := string(r); return f(s) != s }
	}
	nfkd := normalForm(norm.NFKD)
	for name, c := range map[string]struct {
		is   func(rune) bool
		want int
	}{
		"letter":      {isLetter, 141028},
		"number":      {isNumber, 1911},
		"digit":       {isDigit, 1924},
		"punctuation": {isPunct, 726},
		"word":        {isWord, 144667},
		"accent":      {isAccent, 2097},
		"lower":       {changes(lowercase), 1488},
		"nfkd":        {changes(func(s string) string { return nfkd(piece{s, true}, 1<<20).s }), 16894},
	} {
		n := 0
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if utf8.ValidRune(r) && c.is(r) {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d characters; want %d", name, n, c.want)
		}
	}
}

func TestClassTable(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got, want := classOf(r), slowClass(r); got != want {
			t.Fatalf("class of %U is %d; want %d", r, got, want)
		}
	}
}
