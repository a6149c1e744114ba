package task

import (
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/eval"
)

// A piece of text is cut to the length asked for and at most two tokens more, at whole characters, whatever a token is.
func TestTrimmed(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	text := ""
	for range 400 {
		text += []string{"a", "é", "漢字", "word ", "🙂 "}[g.IntN(5)]
	}
	for name, count := range map[string]func(string) int{
		"bytes": func(s string) int { return len(s) + 1 },
		"words": func(s string) int { return len(strings.Fields(s)) + 1 },
		"late":  func(s string) int { return max(0, len(s)-700)/3 + 1 }, // tokens only at the end
	} {
		p := &eval.Plan{Count: count}
		for _, length := range []int{1, 7, 50, 1000000} {
			got := trimmed(p, text, length)
			n := count(got)
			if !strings.HasPrefix(text, got) || strings.ToValidUTF8(got, "") != got {
				t.Fatalf("%s, %d: cut inside a character", name, length)
			}
			if length == 1000000 && got != text || length < 1000000 && (n <= length || n > length+5) { // a character of four bytes
				t.Errorf("%s: %d tokens for %d", name, n, length)
			}
		}
	}
}
