package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// listed is a decoder as Hugging Face defines it, from a list of strings to a list of strings, with its JSON.
type listed struct {
	json string
	f    func(list []string) []string
}

func each(f func(i int, s string) string) func([]string) []string {
	return func(list []string) (out []string) {
		for i, s := range list {
			out = append(out, f(i, s))
		}
		return out
	}
}

func stripped(char string, start, stop int) func([]string) []string {
	return each(func(_ int, s string) string {
		for n := 0; n < start && strings.HasPrefix(s, char); n++ {
			s = strings.TrimPrefix(s, char)
		}
		for n := 0; n < stop && strings.HasSuffix(s, char); n++ {
			s = strings.TrimSuffix(s, char)
		}
		return s
	})
}

var fallback = regexp.MustCompile(`^<0x[0-9A-F]{2}>$`)

// listedDecoders are all kinds, and each way that their settings make a difference.
var listedDecoders = []listed{
	{`{"type":"Fuse"}`, func(list []string) []string { return []string{strings.Join(list, "")} }},
	{`{"type":"Replace","pattern":{"String":"▁"},"content":" "}`,
		each(func(_ int, s string) string { return strings.ReplaceAll(s, "▁", " ") })},
	{`{"type":"Replace","pattern":{"String":"ab"},"content":"xxyxx"}`,
		each(func(_ int, s string) string { return strings.ReplaceAll(s, "ab", "xxyxx") })},
	{`{"type":"Replace","pattern":{"Regex":"a+"},"content":"yéyy"}`, each(func(_ int, s string) string {
		return regexp.MustCompile("a+").ReplaceAllString(s, "yéyy")
	})},
	{`{"type":"Strip","content":" ","start":1,"stop":0}`, stripped(" ", 1, 0)},
	{`{"type":"Strip","content":"a","start":2,"stop":1}`, stripped("a", 2, 1)},
	{`{"type":"Strip","content":"é","start":0,"stop":2}`, stripped("é", 0, 2)},
	{`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`,
		each(func(i int, s string) string {
			if i == 0 {
				return strings.ReplaceAll(s, "▁", "")
			}
			return strings.ReplaceAll(s, "▁", " ")
		})},
	{`{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true}`, each(func(_ int, s string) string {
		return strings.ReplaceAll(s, "▁", " ")
	})},
	{`{"type":"ByteFallback"}`, func(list []string) (out []string) {
		var run []byte
		end := func() {
			if utf8.Valid(run) && len(run) > 0 {
				out = append(out, string(run))
			} else if len(run) > 0 {
				out = append(out, slices.Repeat([]string{"\uFFFD"}, len(run))...)
			}
			run = nil
		}
		for _, s := range list {
			if fallback.MatchString(s) {
				var b byte
				fmt.Sscanf(s, "<0x%02X>", &b)
				run = append(run, b)
				continue
			}
			end()
			out = append(out, s)
		}
		end()
		return out
	}},
}

// Every chain of up to three decoders gives what lists of strings give, whole and streamed, where nothing that was
// emitted is taken back.
func TestDecodersAgainstLists(t *testing.T) {
	words := []string{"a", "aa", "ab", "b", "▁", "▁a", "▁▁", "é", "éé", " ", " a", "<0xC3>", "<0xA9>", "<0x41>",
		"<0xFF>", "<0x4>", "ba"}
	ids := map[string]int{}
	for i, w := range words {
		ids[w] = i
	}
	vocab, _ := json.Marshal(ids)
	g := rand.New(rand.NewPCG(3, 4))
	n := len(listedDecoders)
	for chain := range n*n*n + n*n {
		steps := []int{chain % n, chain / n % n, chain / (n * n)}
		if steps[2] == n { // chains of two
			steps = steps[:2]
		}
		var parts []string
		for _, s := range steps {
			parts = append(parts, listedDecoders[s].json)
		}
		decoder := `{"type":"Sequence","decoders":[` + strings.Join(parts, ",") + `]}`
		tok, err := Parse([]byte(
			`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":` +
				decoder +
				`,"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":` +
				string(vocab) + `,"merges":[]}}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			var list []string
			var in []int32
			for range 1 + g.IntN(6) {
				id := g.IntN(len(words))
				list, in = append(list, words[id]), append(in, int32(id))
			}
			want := slices.Clone(list)
			for _, s := range steps {
				want = listedDecoders[s].f(want)
			}
			whole, stream, streamed := tok.Decode(in, false), tok.Stream(false), ""
			for _, id := range in {
				streamed += stream.Push(id)
			}
			streamed += stream.Flush()
			if w := strings.Join(want, ""); whole != w || streamed != w {
				t.Fatalf("%s of %q: %q, streamed %q, want %q", decoder, list, whole, streamed, w)
			}
		}
	}
}

// A token's bytes, and how it is spelled: special tokens by name, parts of characters as bytes.
func TestTokenBytes(t *testing.T) {
	tok := Bytes()
	for id := range int32(256) {
		raw := tok.TokenBytes(id)
		if len(raw) != 1 {
			t.Fatalf("id %d has the bytes % x", id, raw)
		}
		want := string(raw)
		if raw[0] >= utf8.RuneSelf {
			want = fmt.Sprintf(`bytes:\x%02x`, raw[0])
		}
		if got := tok.Spell(id); got != want {
			t.Errorf("id %d is spelled %q, want %q", id, got, want)
		}
		back, ok := tok.ID(tok.Token(id))
		if !ok || back != id {
			t.Errorf("id %d has the token of %d", id, back)
		}
	}
	eos, ok := tok.EOS()
	if !ok || tok.Spell(eos) != tok.Token(eos) || !tok.Special(eos) {
		t.Errorf("the end of text is spelled %q", tok.Spell(eos))
	}
	for _, id := range []int32{-1, int32(tok.Vocab())} {
		if tok.TokenBytes(id) != nil || tok.Special(id) || tok.Token(id) != "" {
			t.Errorf("id %d has bytes", id)
		}
	}
}
