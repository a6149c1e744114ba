package tokenizer

import (
	"slices"
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) *Tokenizer {
	t.Helper()
	tok, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestLongestAddedToken: where one added token begins with another, the longer one is taken, as in Hugging Face.
func TestLongestAddedToken(t *testing.T) {
	tok := parsed(t, `{"added_tokens":[{"id":2,"content":"<a>"},{"id":3,"content":"<a><b>"},{"id":4,"content":"<a><b><c>"}],
		"model":{"type":"BPE","vocab":{"x":0,"y":1},"merges":[]}}`)
	for text, want := range map[string][]int32{
		"x<a>y": {0, 2, 1}, "x<a><b>y": {0, 3, 1}, "<a><b><c>": {4}, "<a><a><b>": {2, 3}, "<a><b><a><b><c>x": {3, 4, 0},
	} {
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestStrippedBeginning: Metaspace's scheme "first" marks only text that begins where the whole text begins; what was stripped from the left
// moves the beginning away.
func TestStrippedBeginning(t *testing.T) {
	tok := parsed(t, `{"normalizer":{"type":"Strip","strip_left":true,"strip_right":false},
		"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true},
		"model":{"type":"BPE","vocab":{"a":0,"▁":1,"▁a":2},"merges":["▁ a"]}}`)
	for text, want := range map[string][]int32{"a": {2}, " a": {0}, "  a": {0}, "a a": {2, 2}} {
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestFallbackIsWhole: a character falls back to bytes only where the vocabulary has all of them; no id is ever negative.
func TestFallbackIsWhole(t *testing.T) {
	const model = `"model":{"type":"BPE","byte_fallback":true,UNK"vocab":{"a":0,"<0xC3>":1,"<0xA9>":2,"<unk>":3},"merges":[]}}`
	for unk, want := range map[string][]int32{"": {0, 1, 2, 0}, `"unk_token":"<unk>",`: {0, 1, 2, 3, 0}} {
		tok := parsed(t, "{"+strings.Replace(model, "UNK", unk, 1))
		// é is C3 A9, both there; ü is C3 BC and ß C3 9F, of which the second byte is missing
		if got := tok.Encode("aéüa"); !slices.Equal(got, want) {
			t.Errorf("unk %q: %v, want %v", unk, got, want)
		}
		for _, id := range tok.EncodeOrdinary(nil, "aéüßa") {
			if id < 0 {
				t.Errorf("unk %q: id %d", unk, id)
			}
		}
	}
}
