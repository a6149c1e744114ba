package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
	tok := parsed(t,
		`{"added_tokens":[{"id":2,"content":"<a>"},{"id":3,"content":"<a><b>"},{"id":4,"content":"<a><b><c>"}],
		"model":{"type":"BPE","vocab":{"x":0,"y":1},"merges":[]}}`)
	for text, want := range map[string][]int32{
		"x<a>y": {0, 2, 1}, "x<a><b>y": {0, 3, 1}, "<a><b><c>": {4}, "<a><a><b>": {2, 3}, "<a><b><a><b><c>x": {3, 4, 0},
	} {
		if got := tok.Encode(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestStrippedBeginning: Metaspace's scheme "first" marks only text that begins where the whole text begins; what was
// stripped from the left moves the beginning away.
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

// TestFallbackIsWhole: a character falls back to bytes only where the vocabulary has all of them; no id is ever
// negative.
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

// addedKinds are added tokens of every kind.
var addedKinds = []struct {
	text              string
	id                int32
	word, left, right bool
}{{"<p>", 10, false, false, false}, {"<l>", 11, false, true, false},
	{"<r>", 12, false, false, true}, {"<b>", 13, false, true, true},
	{"<w>", 14, true, false, false}, {" <s>", 15, false, false, false}, {"\n", 16, false, false, false},
	{"<p><", 17, false, false, false}, {"é", 18, true, false, true}}

// foundToken is where an added token is in a text, with the white space that it strips.
type foundToken struct {
	from, to int
	id       int32
}

// plainSearch finds addedKinds one place after the other.
func plainSearch(s string) (found []foundToken) {
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	done := 0
	for i := 0; i < len(s); {
		best := -1
		for k, a := range addedKinds {
			if strings.HasPrefix(s[i:], a.text) && (best < 0 || len(a.text) > len(addedKinds[best].text)) {
				best = k
			}
		}
		if best < 0 {
			i++
			continue
		}
		a, from, to := addedKinds[best], i, i+len(addedKinds[best].text)
		i = to
		before, n := utf8.DecodeLastRuneInString(s[:from])
		after, m := utf8.DecodeRuneInString(s[to:])
		if a.word && (n > 0 && isWord(before) || m > 0 && isWord(after)) {
			continue
		}
		if a.left {
			for from > done && s[from-1] == ' ' || from > done && s[from-1] == '\n' {
				from--
			}
		}
		for a.right && to < len(s) && (s[to] == ' ' || s[to] == '\n') {
			to++
		}
		found = append(found, foundToken{from, to, a.id})
		done = to
	}
	return found
}

// TestAddedTokensByDefinition: random texts of added tokens of every kind against a plain search: leftmost, longest;
// words around a single_word token reject it as a whole; stripped white space belongs to the token, and the search goes
// on right after the match.
func TestAddedTokensByDefinition(t *testing.T) {
	var list []string
	for _, a := range addedKinds {
		content, _ := json.Marshal(a.text)
		list = append(list, fmt.Sprintf(
			`{"id":%d,"content":%s,"single_word":%v,"lstrip":%v,"rstrip":%v,"normalized":false,"special":true}`,
			a.id, content, a.word, a.left, a.right))
	}
	tok := parsed(t, `{"added_tokens":[`+strings.Join(list, ",")+
		`],"model":{"type":"BPE","vocab":{"x":0," ":1,"<":2,">":3,"p":4,"l":5,"r":6,"b":7,"w":8,"s":9},"merges":[]}}`)
	plain := map[rune]int32{'x': 0, ' ': 1, '<': 2, '>': 3, 'p': 4, 'l': 5, 'r': 6, 'b': 7, 'w': 8, 's': 9}
	naive := func(s string) (out []int32) {
		done := 0
		write := func(text string) {
			for _, r := range text {
				if id, ok := plain[r]; ok {
					out = append(out, id)
				}
			}
		}
		for _, f := range plainSearch(s) {
			if done < f.from {
				write(s[done:f.from])
			}
			out = append(out, f.id)
			done = f.to
		}
		if done < len(s) {
			write(s[done:])
		}
		return out
	}
	g := rand.New(rand.NewPCG(5, 6))
	parts := []string{"<p>", "<l>", "<r>", "<b>", "<w>", " <s>", "\n", "é", "x", " ", "  ", "<", "p"}
	for range 4000 {
		var s string
		for range 1 + g.IntN(6) {
			s += parts[g.IntN(len(parts))]
		}
		if got, want := tok.Encode(s), naive(s); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", s, got, want)
		}
	}
}

// Metaspace writes its character before a text that begins with neither a space nor the character itself, as its scheme
// says.
func TestMetaspaceBegins(t *testing.T) {
	for scheme, want := range map[string][3]string{"always": {"▁a", "▁a", "▁a"}, "first": {"▁a", "▁a", "▁a"},
		"never": {"a", "▁a", "▁a"}} {
		tok := parsed(t, `{"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"`+scheme+
			`","split":true},"model":{"type":"BPE","vocab":{"a":0,"▁":1},"merges":[]}}`)
		for i, text := range []string{"a", " a", "▁a"} {
			got := ""
			for _, id := range tok.Encode(text) {
				got += tok.Token(id)
			}
			if got != want[i] {
				t.Errorf("%s: %q becomes %q, want %q", scheme, text, got, want[i])
			}
		}
	}
}

// Of added tokens that the normalizer makes equal, the special one is found, and among equals the first; a file without
// any says so with an empty list.
func TestEqualAddedTokens(t *testing.T) {
	const model = `"normalizer":{"type":"Lowercase"},"model":{"type":"BPE","vocab":{"x":0,"a":1,"b":2},"merges":[]}}`
	for added, want := range map[string]int32{
		`{"id":3,"content":"ab","normalized":true},{"id":4,"content":"AB","normalized":true,"special":true}`: 4,
		`{"id":3,"content":"ab","normalized":true,"special":true},{"id":4,"content":"AB","normalized":true}`: 3,
		`{"id":3,"content":"ab","normalized":true},{"id":4,"content":"AB","normalized":true}`:                3,

		`{"id":3,"content":"AB","normalized":true,"special":true},` +
			`{"id":4,"content":"ab","normalized":true,"special":true}`: 3,
	} {
		if got := parsed(t, `{"added_tokens":[`+added+`],`+model).Encode("xAbx"); !slices.Equal(got,
			[]int32{0, want, 0}) {
			t.Errorf("%s: %v, want %d between", added, got, want)
		}
	}
	b, err := parsed(t, `{`+model).MarshalJSON()
	if err != nil || !strings.Contains(string(b), `"added_tokens":[],`) {
		t.Errorf("%s, %v", b, err)
	}
}
