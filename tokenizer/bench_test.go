package tokenizer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// zipfText makes n bytes of text whose words follow Zipf's law, spelled from syllables, so that it caches and merges
// like English without carrying any.
func zipfText(n int) string {
	rnd := rand.New(rand.NewPCG(3, 4))
	syll := strings.Fields("the an re in er on ti or st al en es ar ing tion con ver com per der men ly un pro ble " +
		"est ism ous ma ke lo wa")
	words := make([]string, 60000)
	for i := range words {
		for k := 1 + int(math.Log2(float64(i)/40+1))/3; k >= 0; k-- {
			words[i] += syll[rnd.IntN(len(syll))]
		}
	}
	z := rand.NewZipf(rnd, 1.1, 2.7, uint64(len(words)-1))
	var b strings.Builder
	for b.Len() < n {
		w := words[z.Uint64()]
		switch rnd.IntN(20) {
		case 0:
			b.WriteString(w + ".\n")
		case 1:
			b.WriteString(w + ", ")
		case 2:
			fmt.Fprintf(&b, "%s %d ", w, rnd.IntN(2000))
		default:
			b.WriteString(w + " ")
		}
	}
	return b.String()
}

// benchText is made-up text, or the file named by ANTIPHASE_BENCH_TEXT.
func benchText(b *testing.B) string {
	if f := os.Getenv("ANTIPHASE_BENCH_TEXT"); f != "" {
		raw, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		return string(raw)
	}
	return zipfText(4 << 20)
}

// BenchmarkEncode measures one core on text in documents of 4 KB. ANTIPHASE_BENCH_TOKENIZER names a tokenizer.json to
// use instead of one trained on the spot.
func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	var docs []string
	for i := 0; i < len(text); i += 4096 {
		docs = append(docs, text[i:min(i+4096, len(text))])
	}
	toks := map[string]*Tokenizer{}
	if f := os.Getenv("ANTIPHASE_BENCH_TOKENIZER"); f != "" {
		t, err := Load(f)
		if err != nil {
			b.Fatal(err)
		}
		toks["file"] = t
	} else {
		for name, p := range map[string]string{"gpt2": PatternGPT2, "llama3": PatternLlama3} {
			toks[name] = train(b, docs, TrainOptions{Vocab: 50257, Pattern: p, Workers: 2})
		}
	}
	for name, t := range toks {
		b.Run(name, func(b *testing.B) {
			var dst []int32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, d := range docs {
					dst = t.Append(dst[:0], d)
					n += len(dst)
				}
				b.ReportMetric(float64(len(text))/float64(n), "bytes/token")
			}
		})
	}
}

// BenchmarkLongWord shows that one endless word costs O(n log n).
func BenchmarkLongWord(b *testing.B) {
	t := train(b, sampleDocs(200), TrainOptions{Vocab: 400})
	for _, n := range []int{1 << 10, 1 << 14, 1 << 18} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := strings.Repeat("abanana", n/7+1)[:n]
			var dst []int32
			b.SetBytes(int64(n))
			for b.Loop() {
				dst = t.Append(dst[:0], w)
			}
		})
	}
}

// BenchmarkDecode measures the decoder chain.
func BenchmarkDecode(b *testing.B) {
	t := loadDir(b, "testdata/gpt2-style")
	ids := t.Append(nil, zipfText(1<<18))
	b.SetBytes(1 << 18)
	for b.Loop() {
		t.Decode(ids, true)
	}
}
