package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"trian", "train", 1}, {"abc", "abc", 0}, {"flaw", "lawn", 2}, {"ab", "ba", 1}} {
		if got, back := Distance(c.a, c.b), Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestClose(t *testing.T) {
	words := []string{"train", "decode", "gemm", "attention"}
	for in, want := range map[string]string{"trian": "train", "atention": "attention", "foo": "", "": "", "dcode": "decode", strings.Repeat("train", 99): ""} {
		if got := Close(in, words); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
