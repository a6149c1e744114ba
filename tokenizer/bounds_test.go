package tokenizer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	textunicode "golang.org/x/text/encoding/unicode"
)

// Bytes that are not UTF-8 become U+FFFD as x/text's decoder has it, one for each longest part that could have been the
// beginning of a character; at once or wherever the bytes are cut.
func TestLossyByAnotherDecoder(t *testing.T) {
	edges := []byte{'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1,
		0xf4, 0xf5, 0xff}
	decoder := textunicode.UTF8.NewDecoder()
	check := func(b ...byte) {
		want, err := decoder.Bytes(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := lossyAll(string(b)); string(got) != string(want) {
			t.Errorf("% x: %q, want %q", b, got, want)
		}
		for cut := range b {
			out, n := lossy(nil, b[:cut], false)
			if out, _ = lossy(out, b[n:], true); string(out) != string(want) {
				t.Errorf("% x cut at %d: %q, want %q", b, cut, out, want)
			}
		}
	}
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				check(a, b, c, 'z')
				check('z', a, b, c)
			}
		}
	}
	for _, s := range []string{"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf1\x80\x80\xc2\x80",
		"\xe2\x82\xac\xe2\x82", "é\xc3日\xe6\x97"} {
		check([]byte(s)...)
	}
}

// Many words, of every length around the cache's limits, have the ids of their characters, also when others were
// encoded in between.
func TestCachedWords(t *testing.T) {
	tok := parsed(t,
		`{"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"vocab":{"0":0,"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9},"merges":[]}}`)
	var words []string
	for n := 1; n < 40; n++ {
		for c := range 10 {
			words = append(words, strings.Repeat(fmt.Sprint(c), n), strings.Repeat("0", n)+fmt.Sprint(c))
		}
	}
	for i := range 4000 {
		words = append(words, fmt.Sprint(i*7))
	}
	for range 2 {
		dst := []int32{77}
		dst = tok.Append(dst, strings.Join(words, " "))
		if dst[0] != 77 {
			t.Fatal("what was there is gone")
		}
		var got strings.Builder
		for _, id := range dst[1:] {
			got.WriteByte('0' + byte(id))
		}
		if got.String() != strings.Join(words, "") {
			t.Fatal("a word has other ids")
		}
	}
}

// Both modes and the template, alone and together; what is in dst stays.
func TestEncodeCombinations(t *testing.T) {
	tok := parsed(t,
		`{"added_tokens":[{"id":1,"content":"<s>","special":true}],"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],
		"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}},"model":{"vocab":{"x":0,"<s>":1,"<":2,"s":3,">":4},"merges":[]}}`)
	for _, c := range []struct {
		opt  []Option
		want []int32
	}{
		{nil, []int32{1, 0, 1}}, {[]Option{NoTemplate}, []int32{0, 1}}, {[]Option{Ordinary}, []int32{1, 0, 2, 3, 4}},
		{[]Option{Ordinary, NoTemplate}, []int32{0, 2, 3, 4}},
		{[]Option{NoTemplate, Ordinary}, []int32{0, 2, 3, 4}},
	} {
		if got := tok.Encode("x<s>", c.opt...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.opt, got, c.want)
		}
	}
	if got := tok.EncodeOrdinary([]int32{9, 8}, "x"); !slices.Equal(got, []int32{9, 8, 0}) {
		t.Errorf("%v", got)
	}
	if got := tok.EncodeOrdinary([]int32{9}, ""); !slices.Equal(got, []int32{9}) {
		t.Errorf("%v", got)
	}
	if got := tok.Encode(""); !slices.Equal(got, []int32{1}) {
		t.Errorf("no text: %v", got)
	}
}

// A file's every setting comes back from the file that is written for it, and the hash is that file's.
func TestEverySettingIsWritten(t *testing.T) {
	for i, flags := range []string{"single_word", "lstrip", "rstrip", "normalized", "special"} {
		for _, model := range []string{"fuse_unk", "byte_fallback", "ignore_merges"} {
			tok := parsed(t, fmt.Sprintf(
				`{"added_tokens":[{"id":3,"content":"<%d|\"é>","normalized":false,%q:true}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Digits"},"post_processor":{"type":"ByteLevel"},"decoder":{"type":"Fuse"},
				"model":{"type":"BPE","unk_token":"a",%q:true,"vocab":{"b":0,"a":1,"ab":2},"merges":["a b"]}}`,
				i, flags, model))
			b, err := tok.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			again := parsed(t, string(b))
			if !reflect.DeepEqual(tok.spec, again.spec) {
				t.Errorf("%s, %s: %+v, was %+v", flags, model, again.spec, tok.spec)
			}
			var f struct {
				Added []map[string]any `json:"added_tokens"`
				Model map[string]any
			}
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"single_word", "lstrip", "rstrip", "normalized", "special"} {
				if f.Added[0][name] != (name == flags) {
					t.Errorf("%s is written as %v", name, f.Added[0][name])
				}
			}
			for _, name := range []string{"fuse_unk", "byte_fallback", "ignore_merges"} {
				if f.Model[name] != (name == model) {
					t.Errorf("%s is written as %v", name, f.Model[name])
				}
			}
			if sum := sha256.Sum256(b); tok.Hash() != hex.EncodeToString(sum[:]) {
				t.Error("the hash is not the file's")
			}
		}
	}
}

// An added token that does not say so is matched in the normalized text unless it is special.
func TestNormalizedByDefault(t *testing.T) {
	for fields, want := range map[string][]int32{
		``: {1, 1}, `,"special":true`: {1, 0, 0}, `,"normalized":false`: {1, 0, 0},
		`,"special":true,"normalized":true`: {1, 1},
	} {
		tok := parsed(t, `{"added_tokens":[{"id":1,"content":"XX"`+fields+
			`}],"normalizer":{"type":"Lowercase"},"model":{"vocab":{"x":0},"merges":[]}}`)
		if got := tok.Encode("XXxx"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
}

// Growth is bounded on both sides of each bound, and an overrun says what grew; the first is kept.
func TestGrowthBounds(t *testing.T) {
	replace := func(pattern, content string) map[string]any {
		return map[string]any{"type": "Replace", "pattern": map[string]any{pattern: "a"}, "content": content}
	}
	for _, c := range []struct {
		part  string
		value any
		good  bool
	}{
		{"normalizer", replace("String", strings.Repeat("b", 256)), true},
		{"normalizer", replace("String", strings.Repeat("b", 257)), false},
		{"normalizer", replace("Regex", strings.Repeat("b", 256)), true},
		{"normalizer", replace("Regex", strings.Repeat("b", 257)), false},
		{"decoder", doubling("decoders", 16), true}, {"decoder", doubling("decoders", 17), false},
		{"decoder", replace("Regex", strings.Repeat("b", 1<<16-1)), true},
		{"decoder", replace("Regex", strings.Repeat("b", 1<<16)), false},
		{"decoder", replace("String", strings.Repeat("b", 1<<16)), true},
		{"decoder", replace("String", strings.Repeat("b", 1<<16+1)), false},
	} {
		if _, err := Parse(withPart(t, c.part, c.value)); (err == nil) != c.good || err != nil &&
			!strings.HasPrefix(err.Error(), c.part+": ") {
			t.Errorf("%s %.80v: %v", c.part, c.value, err)
		}
	}
	if room(1) != 1<<20 || room(4096) != 1<<20 || room(4097) != 4097*256 {
		t.Errorf("%d, %d, %d", room(1), room(4096), room(4097))
	}
	b := &budget{}
	p := pattern{literal: "b", budget: b}
	p.replace("abba", strings.Repeat("é", 41), 5)
	p.replace("abba", "xx", 5)
	want := fmt.Sprintf("replacing %q by %q makes more than 5 bytes of 4", "b", strings.Repeat("é", 40)+"…")
	if b.err() == nil || b.err().Error() != want {
		t.Errorf("%v, want %s", b.err(), want)
	}
	if got := p.replace("abba", "xx", 6); got != "axxxxa" {
		t.Errorf("at its room: %q", got)
	}
}

// A table of pairs always has room for a search to end, and Sequences may be 16 deep.
func TestTablesAndNesting(t *testing.T) {
	for n := range 200 {
		if size := len(newPairTable(n).keys); size < 2*n || size&(size-1) != 0 {
			t.Errorf("%d pairs have %d places", n, size)
		}
	}
	for depth, good := range map[int]bool{16: true, 17: false} {
		nested := strings.Repeat(`{"type":"Sequence","normalizers":[`, depth) + `{"type":"NFC"}` +
			strings.Repeat(`]}`, depth)
		if _, err := parseNormalizer(json.RawMessage(nested), &budget{}); (err == nil) != good {
			t.Errorf("%d Sequences: %v", depth, err)
		}
	}
}

// Constructs that mean something else in Oniguruma are refused by name, and only where they are constructs.
func TestForeignConstructs(t *testing.T) {
	for _, f := range foreign {
		if _, err := compileRegex("x"+f+"y", &budget{}); err == nil ||
			!strings.Contains(err.Error(), "uses "+f+", which is not supported") {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, plain := range []string{`\\h`, `\\K+`, `a&b`, `h`, `\\\\R`} {
		if _, err := compileRegex(plain, &budget{}); err != nil {
			t.Errorf("%s: %v", plain, err)
		}
	}
}

// Classes and their negations, word boundaries and quantifiers match ASCII texts as Go's own expressions do.
func TestClassesOfASCII(t *testing.T) {
	text := "ab1 c_2\n--d3; 45 _x9\tZ\r\n7"
	for _, expr := range []string{`\d+`, `\D+`, `\w+`, `\W+`, `\p{L}+`, `\P{L}+`, `\p{Nd}+`, `\P{N}+`,
		`\p{Lu}|\p{Ll}\p{N}`, `[\d_]+`, `[^\d]+`, `[\w-]+`, `[^\w\s]+`, `\bc`, `\b\w`, `\B\d`, `\w\b`, `[\p{L}\d]{2,3}`,
		`\w+?\d`, `(?:\d|_)+`, `(?i:z)`} {
		p, err := compileRegex(expr, &budget{})
		if err != nil {
			t.Fatal(err)
		}
		var got [][]int
		p.each(text, func(start, stop int) { got = append(got, []int{start, stop}) })
		if want := regexp.MustCompile(expr).FindAllStringIndex(text, -1); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", expr, got, want)
		}
	}
}

// Defaults of training, the ids of the alphabet, and what is said about a vocabulary that is too small or too large.
func TestTrainDefaults(t *testing.T) {
	docs := []string{"12345 12345 DON'T don't\n\nx  y", "12345 don't"}
	own := train(t, docs, TrainOptions{Vocab: 290})
	if own.Hash() != train(t, docs, TrainOptions{Vocab: 290, Pattern: PatternLlama3, MinCount: 2, Workers: 1}).Hash() ||
		own.Hash() == train(t, docs, TrainOptions{Vocab: 290, Pattern: PatternGPT2}).Hash() {
		t.Error("the default pattern is not Llama 3's")
	}
	if got := fmt.Sprint(own.Notes()); got != fmt.Sprintf(
		"[the text gave %d tokens of the 290 wanted: no other pair occurs 2 times]", own.Vocab()) {
		t.Errorf("notes %s", got)
	}
	tok := train(t, docs, TrainOptions{Vocab: 258, Specials: []string{"<a>", "<b>"}})
	for letter, want := range map[string]int32{"<a>": 0, "<b>": 1, "!": 2, "~": 95, "¡": 96, "ÿ": 189, "Ā": 190,
		"Ń": 257} { // by code point
		if id, ok := tok.ID(letter); !ok || id != want {
			t.Errorf("%s is %d, want %d", letter, id, want)
		}
	}
	if !tok.Special(0) || !tok.Special(1) || tok.Special(2) || len(tok.Notes()) != 0 {
		t.Errorf("notes %v", tok.Notes())
	}
	for want, opt := range map[string]TrainOptions{
		"train tokenizer: vocabulary of 257 is too small: 2 specials and 256 bytes need 258": {Vocab: 257,
			Specials: []string{"<a>", "<b>"}},
		"train tokenizer: vocabulary of 4194305 is too large: at most 4194304": {Vocab: 1<<22 + 1},
		`train tokenizer: special token "<a>" is given twice`: {Vocab: 300,
			Specials: []string{"<a>", "<b>", "<a>"}},
	} {
		if _, err := Train(context.Background(), slices.Values(docs), opt); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if tok := train(t, docs, TrainOptions{Vocab: 1 << 22}); tok.Vocab() > 300 {
		t.Errorf("%d tokens", tok.Vocab())
	}
}
