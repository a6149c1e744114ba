package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pieces runs a pre-tokenizer on a text that begins where the whole text begins, and marks that piece.
func pieces(pre preTokenizer, text string) (out []string, firsts []bool) {
	st := &scratch{bufs: make([][]byte, 2), spans: make([][]span, 2)}
	pre.stage(func(_ *scratch, p piece) { out, firsts = append(out, strings.Clone(p.s)), append(firsts, p.first) }, 1,
		true)(st, piece{text, true})
	return out, firsts
}

// splitPart is a match of Split's pattern, or what is between two of them.
type splitPart struct {
	s     string
	match bool
}

// plainSplit is a behaviour of Split as a plain loop.
func plainSplit(parts []splitPart, do behavior) (want []string) {
	switch do {
	case removed:
		for _, p := range parts {
			if !p.match {
				want = append(want, p.s)
			}
		}
	case isolated:
		for _, p := range parts {
			want = append(want, p.s)
		}
	case mergedWithPrevious:
		for i, p := range parts {
			if p.match && i > 0 && !parts[i-1].match {
				want[len(want)-1] += p.s
			} else {
				want = append(want, p.s)
			}
		}
	case mergedWithNext:
		for i, p := range slices.Backward(parts) {
			if p.match && i < len(parts)-1 && !parts[i+1].match {
				want[len(want)-1] = p.s + want[len(want)-1]
			} else {
				want = append(want, p.s)
			}
		}
		slices.Reverse(want)
	case contiguous:
		for i, p := range parts {
			if i > 0 && p.match == parts[i-1].match {
				want[len(want)-1] += p.s
			} else {
				want = append(want, p.s)
			}
		}
	}
	return want
}

// Every behaviour of Split, inverted or not, as Hugging Face documents it: on random texts against a plain loop. A
// match joins its neighbour unless that is a match itself; contiguous ones are joined.
func TestSplitByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 8))
	for range 3000 {
		var text string
		for range 1 + g.IntN(9) {
			text += []string{"-", "a", "é", "b"}[g.IntN(4)]
		}
		for _, invert := range []bool{false, true} {
			var parts []splitPart // dashes alone, the rest in runs
			for _, m := range regexp.MustCompile(`-|[^-]+`).FindAllString(text, -1) {
				parts = append(parts, splitPart{m, (m == "-") != invert})
			}
			for _, do := range []behavior{removed, isolated, mergedWithPrevious, mergedWithNext, contiguous} {
				want := plainSplit(parts, do)
				got, firsts := pieces(splitPre{matchRune(func(r rune) bool { return r == '-' }), do, invert}, text)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, inverted %v, of %q: %q, want %q", do, invert, text, got, want)
				}
				for i, first := range firsts {
					if begins := i == 0 && strings.HasPrefix(text, got[0]) &&
						(do != removed || !parts[0].match); first != begins {
						t.Fatalf("%s of %q: piece %d begins the text: %v", do, text, i, first)
					}
				}
			}
		}
	}
}

// Whitespace keeps what the expression \w+|[^\w\s]+ matches; Metaspace marks spaces, prepends by its scheme and cuts
// before each mark.
func TestWhitespaceAndMetaspace(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 9))
	words := regexp.MustCompile(`[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_\s]+`)
	for range 2000 {
		var text string
		for range 1 + g.IntN(8) {
			text += []string{"a", "é", "_", "7", " ", "\t", "-", "!", "日"}[g.IntN(9)]
		}
		if got, _ := pieces(whitespacePre(), text); !slices.Equal(got, words.FindAllString(text, -1)) {
			t.Fatalf("%q: %q, want %q", text, got, words.FindAllString(text, -1))
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) && r != ' ' }) {
			continue
		}
		for _, scheme := range []string{"always", "first", "never"} {
			for _, first := range []bool{true, false} {
				for _, split := range []bool{true, false} {
					marked := strings.ReplaceAll(text, " ", "▁")
					if (scheme == "always" || scheme == "first" && first) && !strings.HasPrefix(marked, "▁") {
						marked = "▁" + marked
					}
					want := []string{marked}
					if split {
						want = regexp.MustCompile(`▁[^▁]*|^[^▁]+`).FindAllString(marked, -1)
					}
					var got []string
					st := &scratch{bufs: make([][]byte, 2), spans: make([][]span, 2)}
					metaspacePre{"▁", scheme, split}.stage(func(_ *scratch,
						p piece) {
						got = append(got, strings.Clone(p.s))
					}, 1, true)(st, piece{text, first})
					if !slices.Equal(got, want) {
						t.Fatalf("%s, first %v, split %v, of %q: %q, want %q", scheme, first, split, text, got, want)
					}
				}
			}
		}
	}
}
