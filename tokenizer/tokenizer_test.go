package tokenizer

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestBytes(t *testing.T) {
	tok := Bytes()
	if got := tok.Append(nil, "Aé<|endoftext|>"); !slices.Equal(got, []int32{'A', 0xC3, 0xA9, 256}) {
		t.Errorf("ids are %v", got)
	}
	if got := tok.EncodeOrdinary(nil, "<|endoftext|>"); len(got) != 13 || got[0] != '<' {
		t.Errorf("ordinary ids are %v", got)
	}
	if id, ok := tok.EOS(); !ok || id != 256 {
		t.Errorf("EOS is %d, %v", id, ok)
	}
	if id, ok := tok.Pad(); !ok || id != 257 {
		t.Errorf("Pad is %d, %v", id, ok)
	}
	if _, ok := tok.BOS(); ok {
		t.Error("there is a BOS")
	}
	if tok.Vocab() != 260 || tok.Token(256) != "<|endoftext|>" || tok.Token(-1) != "" || tok.Token(260) != "" {
		t.Errorf("vocabulary of %d, token 256 is %q", tok.Vocab(), tok.Token(256))
	}
	if got := tok.Decode([]int32{'h', 'i', 256, 999, -5}, true); got != "hi" {
		t.Errorf("decoded %q", got)
	}
	if !tok.Special(256) || tok.Special('a') || tok.Special(-1) || tok.Special(1000) {
		t.Error("Special is wrong")
	}
}

func TestEncodeOptions(t *testing.T) {
	tok := loadDir(t, "testdata/llama2-style")
	bos, ok := tok.BOS()
	if !ok {
		t.Fatal("no BOS")
	}
	with, without := tok.Encode("a</s>"), tok.Encode("a</s>", NoTemplate)
	if with[0] != bos || !slices.Equal(with[1:], without) {
		t.Errorf("template: %v and %v", with, without)
	}
	eos, _ := tok.EOS()
	if !slices.Contains(with, eos) || slices.Contains(tok.Encode("a</s>", Ordinary), eos) {
		t.Error("the special token spelled in the text is recognised in the wrong mode")
	}
	if !slices.Equal(tok.Encode("a b"), tok.Encode("a b", Ordinary)) {
		t.Error("text without special tokens depends on the mode")
	}
}

// TestOrdinaryIgnoresMerges: with ignore_merges a word that spells a special token of the model's vocabulary is still
// text.
func TestOrdinaryIgnoresMerges(t *testing.T) {
	tok, err := Parse([]byte(
		`{"added_tokens":[{"id":3,"content":"ab","special":true}],"pre_tokenizer":{"type":"WhitespaceSplit"},
		"model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ba":2,"ab":3},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time with a warm cache
		if got := tok.Append(nil, "ab ba"); !slices.Equal(got, []int32{3, 2}) {
			t.Errorf("ids are %v", got)
		}
		if got := tok.EncodeOrdinary(nil, "ab ba"); !slices.Equal(got, []int32{0, 1, 2}) {
			t.Errorf("ordinary ids are %v", got)
		}
	}
}

// TestStream: random ids, valid text or not, stream to what Decode gives, and no fragment splits a character.
func TestStream(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, dir := range goldenFolders(t) {
		tok := loadDir(t, dir)
		for range 200 {
			ids := make([]int32, rnd.IntN(20))
			for i := range ids {
				ids[i] = int32(rnd.IntN(tok.Vocab()+2)) - 1
			}
			skip := rnd.IntN(2) == 0
			var b strings.Builder
			s := tok.Stream(skip)
			for _, id := range ids {
				part := s.Push(id)
				if !utf8.ValidString(part) {
					t.Fatalf("%s: %v: fragment %q splits a character", dir, ids, part)
				}
				b.WriteString(part)
			}
			b.WriteString(s.Flush())
			if want := tok.Decode(ids, skip); b.String() != want {
				t.Fatalf("%s: %v streams to %q; Decode gives %q", dir, ids, b.String(), want)
			}
		}
	}
}

// TestStreamIsPrompt: text appears with the token that completes it.
func TestStreamIsPrompt(t *testing.T) {
	s := Bytes().Stream(true)
	var got []string
	for _, b := range []byte("aé€!") {
		got = append(got, s.Push(int32(b)))
	}
	if want := []string{"a", "", "é", "", "", "€", "!"}; !slices.Equal(got, want) {
		t.Errorf("fragments %q; want %q", got, want)
	}
	s.Push(0xE2)
	s.Push(0x82)
	if got := s.Flush(); got != "\uFFFD" {
		t.Errorf("flush gives %q", got)
	}
}

// TestLongWords: the heap and the scan of ranks agree, on either side of the limit between them, and so do whole words
// and words cut at safe places.
func TestLongWords(t *testing.T) {
	tok := train(t, sampleDocs(100), TrainOptions{Vocab: 400})
	rnd := rand.New(rand.NewPCG(7, 8))
	m := tok.model
	for range 300 {
		w := make([]byte, 1+rnd.IntN(3*shortWord))
		for i := range w {
			w[i] = "aabnthe "[rnd.IntN(8)]
		}
		var st scratch
		m.symbols(&st, string(w), true)
		sym := slices.Clone(st.sym)
		short := m.mergeShort(&st, nil)
		st.sym = sym
		if long := m.mergeLong(&st, nil); !slices.Equal(short, long) {
			t.Fatalf("%q: %v by scan, %v by heap", w, short, long)
		}
	}
	for _, dir := range []string{"llama2-style", "llama2", "gemma"} {
		tok := loadDir(t, filepath.Join("testdata", dir))
		cut := tok.model.cuts
		if len(cut) == 0 {
			t.Fatalf("%s: no safe places found", dir)
		}
		for _, c := range readGolden(t, filepath.Join("testdata", dir)) {
			tok.model.cuts = cut
			a := tok.Append(nil, c.Text)
			tok.model.cuts = nil
			if b := tok.Append(nil, c.Text); !slices.Equal(a, b) {
				t.Fatalf("%s: %q: %v cut, %v whole", dir, c.Text, a, b)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := loadDir(t, "testdata/llama2-style")
	cases := readGolden(t, "testdata/llama2-style")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				for _, c := range cases {
					if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
						t.Errorf("%q: %v; want %v", c.Text, got, c.IDs)
					}
				}
				tok.Hash()
			}
		})
	}
	wg.Wait()
}

// Known words take no memory. Two words of the text may fall on one slot of the cache, about once in thirty seeds, and
// then evict each other: another tokenizer has another seed.
func TestAppendAllocs(t *testing.T) {
	text := strings.Repeat("Hello there, it's the 3rd time. ", 20)
	least := math.Inf(1)
	for range 5 {
		tok := loadDir(t, "testdata/gpt2-style")
		dst := tok.Append(nil, text)
		least = min(least, testing.AllocsPerRun(50, func() { dst = tok.Append(dst[:0], text) }))
	}
	if least >= 1 {
		t.Errorf("%.1f allocations for a text of known words", least)
	}
}
