package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

// TestFirstPiece: of the pieces of a text only the one that begins where the text begins counts as its beginning,
// whatever cuts it. Metaspace's prepend_scheme "first" then puts its mark before that piece alone, as Hugging Face's
// does.
func TestFirstPiece(t *testing.T) {
	dash := func(r rune) bool { return r == '-' }
	for name, pre := range map[string]preTokenizer{
		"isolated":   splitPre{matchRune(dash), isolated, false},
		"removed":    splitPre{matchRune(dash), removed, false},
		"next":       splitPre{matchRune(dash), mergedWithNext, false},
		"scanner":    scanPre{scanGPT2},
		"byte level": byteLevelPre{useRegex: true},
		"whitespace": whitespacePre(),
	} {
		for _, text := range []string{"ab-cd-ef", "-ab-cd", " ab cd", "x"} {
			for _, begins := range []bool{true, false} {
				var got []piece
				run := chain([]preTokenizer{pre},
					func(_ *scratch, p piece) { got = append(got, piece{strings.Clone(p.s), p.first}) })
				run(&scratch{bufs: make([][]byte, 2), spans: make([][]span, 2)}, piece{text, begins})
				for i, p := range got {
					// Only a piece at the very start can be one that was not preceded by anything, dropped or kept.
					if want := begins && i == 0 && strings.HasPrefix(text, p.s); p.first != want {
						t.Errorf("%s of %q: piece %d of %v counts as the beginning: %v", name, text, i, got, p.first)
					}
				}
			}
		}
	}
	var words []string
	run := chain([]preTokenizer{splitPre{matchRune(dash), isolated, false}, metaspacePre{"▁", "first", false}},
		func(_ *scratch, p piece) { words = append(words, strings.Clone(p.s)) })
	run(&scratch{bufs: make([][]byte, 3), spans: make([][]span, 3)}, piece{"ab-cd", true})
	if want := []string{"▁ab", "-", "cd"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
}
