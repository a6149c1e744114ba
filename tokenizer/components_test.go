package tokenizer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Every pre-tokenizer, with each field present and absent: what Hugging Face's documentation says it does.
func TestPreTokenizerFields(t *testing.T) {
	for _, c := range []struct {
		json, text string
		want       []string
	}{
		{`{"type":"ByteLevel"}`, "ab cd", []string{" ab", " cd"}}, {`{"type":"ByteLevel"}`, " ab", []string{" ab"}},
		{`{"type":"ByteLevel","add_prefix_space":true}`, "it's", []string{" it", "'s"}},
		{`{"type":"ByteLevel","add_prefix_space":false}`, "ab cd", []string{"ab", " cd"}},
		{`{"type":"ByteLevel","use_regex":false}`, "ab cd", []string{" ab cd"}},
		{`{"type":"ByteLevel","add_prefix_space":false,"use_regex":false,"trim_offsets":true}`, "ab cd",
			[]string{"ab cd"}},
		{`{"type":"Split","pattern":{"String":" "},"behavior":"Isolated"}`, "a b", []string{"a", " ", "b"}},
		{`{"type":"Split","pattern":{"String":" "},"behavior":"Removed"}`, "a b", []string{"a", "b"}},
		{`{"type":"Split","pattern":{"String":" "},"behavior":"Removed","invert":true}`, "a b", []string{" "}},
		{`{"type":"Split","pattern":{"String":"."},"behavior":"MergedWithPrevious"}`, "a.b", []string{"a.", "b"}},
		{`{"type":"Split","pattern":{"Regex":"\\d+"},"behavior":"MergedWithNext"}`, "a12b", []string{"a", "12b"}},
		{`{"type":"Split","pattern":{"Regex":"\\d"},"behavior":"Contiguous"}`, "a12b", []string{"a", "12", "b"}},
		{`{"type":"Split","pattern":{"String":""},"behavior":"Isolated"}`, "a b", []string{"a b"}},
		{`{"type":"Digits"}`, "a12b3", []string{"a", "12", "b", "3"}},
		{`{"type":"Digits","individual_digits":true}`, "a12b", []string{"a", "1", "2", "b"}},
		{`{"type":"Digits","individual_digits":false}`, "12", []string{"12"}},
		{`{"type":"Punctuation"}`, "a,,b", []string{"a", ",", ",", "b"}},
		{`{"type":"Punctuation","behavior":"Contiguous"}`, "a,,b", []string{"a", ",,", "b"}},
		{`{"type":"Punctuation","behavior":"Removed"}`, "a,b。c", []string{"a", "b", "c"}},
		{`{"type":"WhitespaceSplit"}`, " a \t\nb\u3000c", []string{"a", "b", "c"}},
		{`{"type":"Whitespace"}`, "ab, c_d!?", []string{"ab", ",", "c_d", "!?"}},
		{`{"type":"Metaspace"}`, "ab cd", []string{"▁ab", "▁cd"}}, {`{"type":"Metaspace"}`, " ab", []string{"▁ab"}},
		{`{"type":"Metaspace","replacement":"_"}`, "ab cd", []string{"_ab", "_cd"}},
		{`{"type":"Metaspace","add_prefix_space":false}`, "ab cd", []string{"ab", "▁cd"}},
		{`{"type":"Metaspace","add_prefix_space":true,"str_rep":"▁"}`, "ab cd", []string{"▁ab", "▁cd"}},
		{`{"type":"Metaspace","add_prefix_space":false,"prepend_scheme":"always"}`, "ab", []string{"▁ab"}},
		{`{"type":"Metaspace","add_prefix_space":true,"prepend_scheme":"never"}`, "ab", []string{"ab"}},
		{`{"type":"Metaspace","split":false}`, "ab cd", []string{"▁ab▁cd"}},
		{`{"type":"Metaspace","split":true}`, "ab  cd", []string{"▁ab", "▁", "▁cd"}},
	} {
		list, err := parsePre(json.RawMessage(c.json), &budget{})
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d, %v", c.json, len(list), err)
			continue
		}
		if got, _ := pieces(list[0], c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s of %q: %q, want %q", c.json, c.text, got, c.want)
		}
	}
}

// The patterns with scanners, under every behaviour: all of a text matches, so that nothing is left of it if matches
// are removed.
func TestScannersUnderBehaviors(t *testing.T) {
	for _, pattern := range []string{PatternGPT2, PatternLlama3, PatternQwen2} {
		expr, _ := json.Marshal(pattern)
		for behavior, want := range map[string][]string{
			`"Isolated"`: {"ab", " cd"}, `"Removed"`: nil, `"Removed","invert":true`: {"ab", " cd"},
			`"Isolated","invert":true`: {"ab", " cd"}, `"Contiguous"`: {"ab cd"}, `"MergedWithNext"`: {"ab", " cd"},
			`"MergedWithPrevious"`: {"ab", " cd"}, `"Contiguous","invert":true`: {"ab cd"},
		} {
			list, err := parsePre(json.RawMessage(`{"type":"Split","pattern":{"Regex":`+string(expr)+`},"behavior":`+
				behavior+`}`), &budget{})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := pieces(list[0], "ab cd"); !slices.Equal(got, want) {
				t.Errorf("%s with %s: %q, want %q", pattern, behavior, got, want)
			}
		}
	}
}

// Fields of pre-tokenizers that are wrong or missing.
func TestPreTokenizerRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"Metaspace","prepend_scheme":"last"}`: "unknown prepend_scheme",
		`{"type":"Metaspace","replacement":"xy"}`:      "one character",
		`{"type":"Metaspace","replacement":""}`:        "one character",
		`{"type":"Punctuation","behavior":"Gone"}`:     "Gone", `{"type":"Split","pattern":{"String":"a"}}`: "",
		`{"type":"Split","behavior":"Isolated"}`:                                      "pattern",
		`{"type":"Split","pattern":{},"behavior":"Isolated"}`:                         "one String or one Regex",
		`{"type":"Split","pattern":{"String":"a","Regex":"a"},"behavior":"Isolated"}`: "one String or one Regex",
		`{}`: "type is missing", `{"type":"Sequence"}`: "needs pretokenizers",
		`{"type":"Sequence","pretokenizers":[],"x":1}`: `unknown field "x"`,
		`{"type":"Digits","individual_digits":1}`:      "individual_digits", `[]`: "", `{"type":7}`: "",
	} {
		if _, err := parsePre(json.RawMessage(raw), &budget{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// Every normalizer, with each field present and absent.
func TestNormalizerFields(t *testing.T) {
	for _, c := range []struct{ json, text, want string }{
		{`{"type":"NFC"}`, "e\u0301 ﬁ Å", "é ﬁ Å"}, {`{"type":"NFD"}`, "é ﬁ", "e\u0301 ﬁ"},
		{`{"type":"NFKC"}`, "e\u0301 ﬁ ²", "é fi 2"}, {`{"type":"NFKD"}`, "é ﬁ ²", "e\u0301 fi 2"},
		{`{"type":"Lowercase"}`, "AÉİΣ ẞ1", "aéi\u0307σ ß1"}, {`{"type":"StripAccents"}`, "e\u0301é", "eé"},
		{`{"type":"Strip"}`, " \ta b\n ", "a b"}, {`{"type":"Strip","strip_left":false}`, " a ", " a"},
		{`{"type":"Strip","strip_right":false}`, " a ", "a "},
		{`{"type":"Strip","strip_left":true,"strip_right":true}`, " a ", "a"},
		{`{"type":"Prepend","prepend":"▁"}`, "ab", "▁ab"}, {`{"type":"Prepend","prepend":"▁"}`, "", ""},
		{`{"type":"Replace","pattern":{"String":"a"},"content":"bc"}`, "aXa", "bcXbc"},
		{`{"type":"Replace","pattern":{"Regex":"a+"},"content":"$0"}`, "aab", "$0b"},
		{`{"type":"Replace","pattern":{"Regex":"x*"},"content":"-"}`, "ab", "-a-b-"},
		{`{"type":"Replace","pattern":{"String":""},"content":"x"}`, "ab", "ab"},
		{`{"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"}]}`, "ÉÀ",
			"ea"},
		{`{"type":"Sequence","normalizers":[]}`, "É", "É"}, {`null`, "É", "É"},
		{`{"type":"Lowercase"}`, "A\xffB", "a\xffb"}, {`{"type":"StripAccents"}`, "\u0301\xff", "\xff"},
	} {
		list, err := parseNormalizer(json.RawMessage(c.json), &budget{})
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
			continue
		}
		got := c.text
		if n := sequence(list); n != nil {
			got = n(piece{c.text, true}, 1<<20).s
		}
		if got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.json, c.text, got, c.want)
		}
	}
	for _, raw := range []string{`{"type":"Replace","content":"x"}`, `{"type":"Strip","left":true}`,
		`{"type":"Sequence","pretokenizers":[]}`, `{"type":"Replace","pattern":{"Regex":"("},"content":""}`} {
		if _, err := parseNormalizer(json.RawMessage(raw), &budget{}); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// The scanners cut as the regular expressions do: all texts of up to three characters of every class, and longer random
// ones.
func TestScannersAgainstPatterns(t *testing.T) {
	letters := []string{"a", "S", "'", "1", " ", "\n", "\r", "!", "é", "ſ", "l", "e", "\t", "\u3000", "２"}
	texts := []string{""}
	for i := 0; len(texts[i]) < 3 && len(texts) < 4000; i++ {
		for _, l := range letters {
			texts = append(texts, texts[i]+l)
		}
	}
	g := rand.New(rand.NewPCG(1, 9))
	for range 1500 {
		var s string
		for range 4 + g.IntN(8) {
			s += letters[g.IntN(len(letters))]
		}
		texts = append(texts, s)
	}
	texts = append(texts, "it'll've'd're'm't'S'LL'RE'Ve 'D'M'T", "'lL'rE'r'l'v x", "1234567", "a'b")
	for _, p := range []string{PatternGPT2, PatternLlama3, PatternQwen2} {
		re, err := compileRegex(p, &budget{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			if got, want := matchScanner(knownScanner(p))(nil, s), matchPattern(re)(nil, s); !slices.Equal(got, want) {
				t.Fatalf("%q by %s: %v, want %v", s, p, got, want)
			}
		}
	}
}

// modelOf is a tokenizer with the given parts around a model of some tokens.
func modelOf(t *testing.T, parts, vocab string) *Tokenizer {
	t.Helper()
	return parsed(t, `{`+parts+`"model":{"type":"BPE","vocab":`+vocab+`,"merges":[]}}`)
}

// What stands around a text, by its template: several tokens, several templates one inside the other, and none.
func TestTemplates(t *testing.T) {
	special := `"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},"<e>":{"id":"<e>","ids":[2,3],"tokens":["<e>","<f>"]}}}`
	part := func(name string) string { return `{"SpecialToken":{"id":"` + name + `","type_id":0}}` }
	text := `{"Sequence":{"id":"A","type_id":0}}`
	template := func(single ...string) string {
		return `{"type":"TemplateProcessing","single":[` + strings.Join(single, ",") + `],"pair":[],` + special
	}
	for processor, want := range map[string][]int32{
		`null`: {0}, `{"type":"ByteLevel"}`: {0}, template(text): {0}, template(part("<s>"), text): {1, 0},
		template(text, part("<e>")):                                        {0, 2, 3},
		template(part("<s>"), part("<e>"), text, part("<e>"), part("<s>")): {1, 2, 3, 0, 2, 3, 1},
		`{"type":"Sequence","processors":[` + template(part("<s>"), text, part("<e>")) + `,` +
			template(part("<e>"), text, part("<s>")) + `]}`: {2, 3, 1, 0, 2, 3, 1},
	} {
		tok := modelOf(t, `"post_processor":`+processor+`,`, `{"x":0,"<s>":1,"<e>":2,"<f>":3}`)
		if got := tok.Encode("x"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", processor, got, want)
		}
		if got := tok.Encode("x", NoTemplate); !slices.Equal(got, []int32{0}) {
			t.Errorf("%s without it: %v", processor, got)
		}
		if got := tok.Encode("x", Ordinary); !slices.Equal(got, want) {
			t.Errorf("%s around ordinary text: %v, want %v", processor, got, want)
		}
	}
	for want, processor := range map[string]string{
		"has the text 0 times": template(part("<s>")), "has the text 2 times": template(text, text),
		"want one SpecialToken or one Sequence": template(`{}`), `"<t>" is not among`: template(part("<t>"), text),
		"out of range": strings.ReplaceAll(template(part("<s>"), text), "[1]", "[-1]"),
	} {
		if _, err := Parse([]byte(`{"post_processor":` + processor +
			`,"model":{"type":"BPE","vocab":{"x":0},"merges":[]}}`)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", processor, err, want)
		}
	}
}

// The bytes of a token under every decoder.
func TestTokenBytesOfDecoders(t *testing.T) {
	const vocab = `{"▁a":0,"<0xE2>":1,"ab":2,"Ġb":3,"<0xE":4,"▁":5}`
	for decoder, want := range map[string]string{
		`null`: "▁a|<0xE2>|ab|Ġb|<0xE|▁", `{"type":"ByteFallback"}`: "▁a|\xe2|ab|Ġb|<0xE|▁",
		`{"type":"Fuse"}`: "▁a|<0xE2>|ab|Ġb|<0xE|▁",
		`{"type":"Replace","pattern":{"String":"▁"},"content":" "}`:        " a|<0xE2>|ab|Ġb|<0xE| ",
		`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}`: " a|<0xE2>|ab|Ġb|<0xE| ",
		`{"type":"ByteLevel"}`: "▁a|<0xE2>|ab| b|<0xE|▁",
		`{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},` +
			`{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`: " a|\xe2|ab|Ġb|<0xE| ",
	} {
		tok := modelOf(t, `"decoder":`+decoder+`,`, vocab)
		var got []string
		for id := range int32(6) {
			got = append(got, string(tok.TokenBytes(id)))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q", decoder, strings.Join(got, "|"), want)
		}
	}
	for _, decoder := range []string{`{"type":"Strip","content":"a","start":-1,"stop":0}`,
		`{"type":"Strip","content":"a","start":0,"stop":-1}`, `{"type":"Replace","content":"a"}`,
		`{"type":"Metaspace","replacement":"ab"}`} {
		if _, err := Parse([]byte(`{"decoder":` + decoder +
			`,"model":{"type":"BPE","vocab":{"x":0},"merges":[]}}`)); err == nil {
			t.Errorf("%s is taken", decoder)
		}
	}
}

// The well-known names, in their order of preference.
func TestNamesInOrder(t *testing.T) {
	for _, c := range []struct {
		find  func(*Tokenizer) (int32, bool)
		names []string
	}{{(*Tokenizer).EOS, eosNames}, {(*Tokenizer).BOS, bosNames}, {(*Tokenizer).Pad, padNames}} {
		for i := range c.names {
			vocab := map[string]int{"x": 0}
			for k := len(c.names) - 1; k >= i; k-- { // the preferred one has the highest id
				vocab[c.names[k]] = len(vocab)
			}
			b, _ := json.Marshal(vocab)
			if id, ok := c.find(modelOf(t, "", string(b))); !ok || int(id) != len(vocab)-1 {
				t.Errorf("%v: %d, %v", c.names[i:], id, ok)
			}
		}
		if id, ok := c.find(modelOf(t, "", `{"x":0}`)); ok || id != -1 {
			t.Errorf("none is found as %d", id)
		}
	}
}

// Unknown characters, with and without an unk token, fused or not; and what is noted about a file.
func TestUnknown(t *testing.T) {
	const vocab = `{"a":0,"<unk>":1}`
	for fields, want := range map[string][]int32{
		``: {0, 0}, `"unk_token":"<unk>",`: {0, 1, 1, 0}, `"unk_token":"<unk>","fuse_unk":true,`: {0, 1, 0},
		`"unk_token":"<none>",`: {0, 0}, `"fuse_unk":true,`: {0, 0},
	} {
		tok := parsed(t, `{"model":{"type":"BPE",`+fields+`"vocab":`+vocab+`,"merges":[]}}`)
		if got := tok.Encode("axya"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
		if notes := fmt.Sprint(tok.Notes()); strings.Contains(notes,
			`unk_token "<none>" is not in the vocabulary`) != strings.Contains(fields, "none") {
			t.Errorf("%s: notes %s", fields, notes)
		}
	}
	tok := parsed(t,
		`{"added_tokens":[{"id":9,"content":"<x>","special":true},{"id":0,"content":""},{"id":0,"content":"a"},{"id":3,"content":"<y>"}],"model":{"vocab":`+
			vocab+`,"merges":[]}}`)
	if got := tok.Encode("<x>a<y>"); !slices.Equal(got, []int32{2, 0, 3}) || tok.Vocab() != 4 {
		t.Errorf("added tokens are %v of %d", got, tok.Vocab())
	}
	if got := fmt.Sprint(tok.Notes()); got != `[added token "<x>" has id 9 in the file; its place gives it 2]` {
		t.Errorf("notes %s", got)
	}
	// Where ids have gaps, the number of tokens counts, not the last id: as Hugging Face has it.
	tok = parsed(t,
		`{"added_tokens":[{"id":2,"content":"<x>"},{"id":3,"content":"<y>"}],"model":{"vocab":{"a":0,"b":7},"merges":[]}}`)
	if got := tok.Encode("<y>b<x>a"); !slices.Equal(got, []int32{3, 7, 2, 0}) || len(tok.Notes()) > 0 {
		t.Errorf("with gaps added tokens are %v; notes %v", got, tok.Notes())
	}
	for model, want := range map[string]string{
		`{"vocab":{},"merges":[]}`: "vocab is missing or empty", `{"vocab":{"a":0}}`: "merges are missing",
		`{"vocab":{"a":0},"merges":{}}`: "merges", `{"vocab":{"a":0},"merges":["\ud800 a"]}`: "",
		`{"vocab":{"a":0,"b":1,"ab":2},"merges":["ab"]}`: "merges[0]: 1 parts; want 2",
		`{"vocab":{"a":65545},"merges":[]}`:              "ids up to 65544", `[]`: "",
	} {
		if _, err := Parse([]byte(`{"model":` + model + `}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", model, err, want)
		}
	}
	if _, err := Parse([]byte(`{"model":{"vocab":{"a":65544},"merges":[]}}`)); err != nil {
		t.Errorf("the largest id: %v", err)
	}
	if _, err := Parse([]byte(tinyJSON + " {}")); err == nil ||
		!strings.Contains(err.Error(), "text after the end of the JSON") {
		t.Errorf("%v", err)
	}
}

// How often a pair must occur to be merged, what fills the vocabulary, and documents of more than one batch.
func TestTrainCounts(t *testing.T) {
	docs := []string{"", "ab ab ab", "cd cd", "ef", ""}
	merges := func(opt TrainOptions) (list []string) {
		tok := train(t, docs, opt)
		for _, m := range tok.spec.merges {
			list = append(list, tok.Token(m.left)+tok.Token(m.right))
		}
		return list
	}
	// Of equal counts the pair with the smaller left id comes first, and c and e are before Ġ.
	for least, want := range map[int]string{0: "ab cd Ġab", -1: "ab cd Ġab", 1: "ab cd Ġab ef Ġcd", 2: "ab cd Ġab",
		3: "ab", 4: ""} {
		if got := strings.Join(merges(TrainOptions{Vocab: 300, MinCount: least, Pattern: PatternGPT2}),
			" "); got != want {
			t.Errorf("pairs of at least %d: %q, want %q", least, got, want)
		}
	}
	if got := merges(TrainOptions{Vocab: 257, Pattern: PatternGPT2}); !slices.Equal(got, []string{"ab"}) {
		t.Errorf("a vocabulary for one merge has %q", got)
	}
	if got := merges(TrainOptions{Vocab: 256}); len(got) != 0 {
		t.Errorf("a vocabulary of bytes has %q", got)
	}
	// A word that is in one document of many batches counts in all of them.
	var long []string
	for range 3 {
		long = append(long, strings.Repeat("xy ", batchBytes/3+1))
	}
	for _, workers := range []int{0, 2} {
		var done [][2]int
		tok := train(t, long, TrainOptions{Vocab: 258, Pattern: PatternGPT2, Workers: workers,
			Progress: func(n, of int) { done = append(done, [2]int{n, of}) }})
		if id, ok := tok.ID("xy"); !ok || id != 256 || len(tok.Notes()) != 0 {
			t.Errorf("%d workers: xy is %d, notes %q", workers, id, tok.Notes())
		}
		if len(done) < 2 || done[0] != [2]int{0, 2} || done[len(done)-1] != [2]int{2, 2} {
			t.Errorf("%d workers: progress %v", workers, done)
		}
	}
	pres, err := parsePre(json.RawMessage(byteLevelJSON), &budget{})
	if err != nil {
		t.Fatal(err)
	}
	words, err := countWords(context.Background(), slices.Values(append(long, docs...)), pres, 3)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int64{}
	for _, w := range words {
		count[w.word] = w.count
	}
	per := int64(batchBytes/3 + 1)
	if count["xy"] != 3 || count[" xy"] != 3*(per-1) || count["ab"] != 1 || count[" ab"] != 2 || count[" "] != 3 ||
		!slices.IsSortedFunc(words, func(a, b wordCount) int { return strings.Compare(a.word, b.word) }) {
		t.Errorf("words %v", words)
	}
}
