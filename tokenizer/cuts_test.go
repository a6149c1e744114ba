package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// plainBPE is the definition: the whole text is one word, unknown characters are dropped or become unk, and the pair of
// the lowest rank is merged, the leftmost of equals, until there is none.
func plainBPE(vocab map[string]int32, merges [][2]string, unk string, fuse bool, text string) (ids []int32) {
	var list []string
	for len(text) > 0 {
		_, n := utf8.DecodeRuneInString(text)
		char := text[:n]
		text = text[n:]
		_, known := vocab[char]
		switch {
		case known && utf8.ValidString(char):
			list = append(list, char)
		case unk != "" && !(fuse && len(list) > 0 && list[len(list)-1] == unk):
			list = append(list, unk)
		}
	}
	for again := true; again; {
		again = false
		for _, m := range merges {
			for i := 0; i+1 < len(list) && !again; i++ {
				if list[i] == m[0] && list[i+1] == m[1] {
					list, again = slices.Replace(list, i, i+2, m[0]+m[1]), true
				}
			}
			if again {
				break
			}
		}
	}
	for _, s := range list {
		ids = append(ids, vocab[s])
	}
	return ids
}

// What a file may say where others say nothing, and what it may not.
func TestFieldsThatSayNothing(t *testing.T) {
	const model = `"model":{"vocab":{"a":0,"b":1},"merges":[]%s}`
	part := func(s string) string {
		return `{"post_processor":{"type":"TemplateProcessing","single":[` + s +
			`],"pair":[],"special_tokens":{"a":{"id":"a","ids":[0],"tokens":["a"]},"z":{"id":"z","ids":[2147483648],"tokens":["z"]}}},` +
			model + `}`
	}
	const special, text = `"SpecialToken":{"id":"a","type_id":0}`, `"Sequence":{"id":"A","type_id":0}`
	for _, c := range []struct {
		file, more string
		good       bool
	}{
		{"{" + model + "}", `,"dropout":0.0`, true}, {"{" + model + "}", `,"dropout":0.1`, false},
		{"{" + model + "}", `,"dropout":null`, true},
		{"{" + model + "}", `,"continuing_subword_prefix":""`, true},
		{"{" + model + "}", `,"continuing_subword_prefix":"##"`, false},
		{"{" + model + "}", `,"end_of_word_suffix":""`, true},
		{"{" + model + "}", `,"end_of_word_suffix":"</w>"`, false},
		{`{"added_tokens":[{"id":2,"content":"c"}],` + model + "}", "", true},
		{`{"added_tokens":[{"id":2}],` + model + "}", "", false},
		{`{"added_tokens":[{"content":"c"}],` + model + "}", "", false},
		{`{"added_tokens":[{"id":-1,"content":"c"}],` + model + "}", "", false},
		{part("{" + special + "},{" + text + "}"), "", true}, {part("{" + special + "," + text + "}"), "", false},
		{part("{" + text + "}"), "", true},
		{part("{" + special + "," + text + "},{" + text + "}"), "", false}, {part("{}"), "", false},
		{part(`{"SpecialToken":{"id":"z","type_id":0}},{` + text + "}"), "", false},
	} {
		if _, err := Parse(fmt.Appendf(nil, c.file, c.more)); (err == nil) != c.good {
			t.Errorf(c.file+": %v", c.more, err)
		}
	}
	for range 20 { // in any order of the map
		_, err := Parse([]byte(`{"model":{"vocab":{"x":0,"b":1,"a":1},"merges":[]}}`))
		if err == nil || !strings.Contains(err.Error(), `"a" and "b" share id 1`) {
			t.Fatal(err)
		}
	}
	for tok, want := range map[string]int{"<0x41>": 0x41, "<0xFF>": 0xFF, "<0xff>": 0xFF, "<0x41)": -1, "(0x41>": -1,
		"<0y41>": -1, "<0x4>": -1, "<0x411>": -1, "<0xG1>": -1, "": -1} {
		if b, ok := fallbackByte(tok); ok != (want >= 0) || ok && int(b) != want {
			t.Errorf("%s is %d, %v", tok, b, ok)
		}
	}
}

// Texts without a pre-tokenizer are cut into words where no merge can reach across: every text of up to four of these
// characters, known and unknown ones and bytes that are none, has the ids of the definition, whatever the merges reach
// across.
func TestCutsChangeNothing(t *testing.T) {
	chars := []string{"a", "b", " ", "▁", "é", "�", "\xff"}
	texts := []string{""}
	for from := 0; len(texts) < 1000; {
		end := len(texts)
		for _, s := range texts[from:end] {
			for _, c := range chars {
				texts = append(texts, s+c)
			}
		}
		from = end
	}
	for i, merges := range [][][2]string{{}, {{"a", "b"}}, {{"a", "▁"}, {"▁", "b"}}, {{"▁", "a"}, {"b", "▁a"}},
		{{" ", "b"}, {"a", " b"}, {"▁", "▁"}}, {{"b", "a"}, {"ba", " "}, {" ", "ba"}}} {
		for _, known := range [][]string{{"a", "b", "▁", " "}, {"", "a", "b", " "}, {"a", "b", "▁", "é"},
			{"a", "�", "▁"}} {
			vocab := map[string]int32{"?": 0}
			for _, s := range known {
				vocab[s] = int32(len(vocab))
			}
			var rules [][2]string
			for _, m := range merges {
				_, left := vocab[m[0]]
				if _, right := vocab[m[1]]; left && right {
					rules = append(rules, m)
					vocab[m[0]+m[1]] = int32(len(vocab))
				}
			}
			for _, unk := range []string{"", "?"} {
				file := map[string]any{"vocab": vocab, "merges": append([][2]string{}, rules...), "fuse_unk": i%2 == 1}
				if unk != "" {
					file["unk_token"] = unk
				}
				b, err := json.Marshal(map[string]any{"model": file})
				if err != nil {
					t.Fatal(err)
				}
				tok := parsed(t, string(b))
				for _, s := range texts {
					if got, want := tok.Encode(s), plainBPE(vocab, rules, unk, i%2 == 1, s); !slices.Equal(got, want) {
						t.Fatalf("%s: %q is %v, want %v", b, s, got, want)
					}
				}
			}
		}
	}
}
