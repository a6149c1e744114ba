package tokenizer

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tinyJSON is a tokenizer.json with one of most things.
const tinyJSON = `{"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":7,"content":"<s>","single_word":false,"lstrip":true,"rstrip":false,"normalized":false,"special":true}],
"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a+|\\d"},"behavior":"MergedWithNext","invert":false},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[7],"tokens":["<s>"]}}},
"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
"model":{"type":"BPE","dropout":null,"unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,
"byte_fallback":true,"ignore_merges":false,"vocab":{"<unk>":0,"a":1,"b":2,"▁":3,"ab":4,"<0x0A>":5,"aba":6},"merges":["a b",["ab","a"]]}}`

// FuzzParse: any bytes give a tokenizer or an error, never a panic; a tokenizer survives its own file and encodes
// anything.
func FuzzParse(f *testing.F) {
	f.Add([]byte(tinyJSON))
	f.Add([]byte(`{}`))
	f.Add([]byte(strings.Replace(tinyJSON, `a+|\\d`, `(a+)+$`, 1)))
	f.Add([]byte(strings.Replace(tinyJSON, `{"type":"NFC"}`,
		strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 40)+`{"type":"NFC"}`, 1)))
	f.Add([]byte(`{"model":{"vocab":{"a":2147483647},"merges":[]}}`))
	for _, dir := range []string{"l3", "llama2", "norm-seq", "falcon"} {
		b, err := os.ReadFile("testdata/" + dir + "/tokenizer.json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(must(tok.MarshalJSON()))
		if err != nil {
			t.Fatalf("its own file is refused: %v", err)
		}
		if tok.Hash() != again.Hash() {
			t.Fatal("the hash changes over a round trip")
		}
		for _, s := range []string{"", "a b ab\n12 <s>  é", "\xff\xfe", strings.Repeat("ab ", 50)} {
			ids := tok.Encode(s)
			if !slices.Equal(ids, again.Encode(s)) {
				t.Fatalf("%q: other ids after a round trip", s)
			}
			if d := tok.Decode(ids, false); d != streamed(tok, ids, false) {
				t.Fatalf("%q: stream and Decode differ", s)
			}
			tok.EncodeOrdinary(nil, s)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// FuzzRoundTrip: byte-level tokenizers give every text back; bytes that are not UTF-8 come back through TokenBytes.
func FuzzRoundTrip(f *testing.F) {
	toks := []*Tokenizer{Bytes(), loadDir(f, "testdata/gpt2-style"), loadDir(f, "testdata/l3"),
		loadDir(f, "testdata/starcoder")}
	for _, s := range []string{"", "Hello, world!", "  a\n\n b\r\n", "don'T 12345 ÀÉ", "\xe2\x82", "🙂\u200d🙂",
		"<|endoftext|>", "'ſ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i, tok := range toks {
			ids := tok.EncodeOrdinary(nil, s)
			var raw []byte
			for _, id := range ids {
				raw = append(raw, tok.TokenBytes(id)...)
			}
			if string(raw) != s {
				t.Fatalf("tokenizer %d: bytes of %q come back as %q", i, s, raw)
			}
			want := s
			if !utf8.ValidString(s) {
				want = string(must(lossyAll(s), nil))
			}
			if got := tok.Decode(ids, false); got != want {
				t.Fatalf("tokenizer %d: %q comes back as %q", i, s, got)
			}
			if got := streamed(tok, ids, false); got != want {
				t.Fatalf("tokenizer %d: %q is streamed as %q", i, s, got)
			}
		}
	})
}

func lossyAll(s string) []byte {
	out, _ := lossy(nil, []byte(s), true)
	return out
}

// FuzzScan: the hand-written scanners cut as the regular expression engine does with the same pattern.
func FuzzScan(f *testing.F) {
	for _, s := range []string{"Hello's 'S it'Ll 12345 a\n\n b", " \t\n x", "'ſ 'K", "漢字\u3000カナ1２３", " …—!\r\n\r\nz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		for _, p := range []string{PatternGPT2, PatternLlama3, PatternQwen2} {
			re, err := compileRegex(p, &budget{})
			if err != nil {
				t.Fatal(err)
			}
			want := matchPattern(re)(nil, s)
			got := matchScanner(knownScanner(p))(nil, s)
			if !slices.Equal(got, want) {
				t.Fatalf("%q by %s:\ngot  %v\nwant %v", s, p, got, want)
			}
		}
	})
}
