package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sampleDocs makes reproducible text with frequent and rare words, digits, white space and characters of several bytes.
func sampleDocs(n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"the", "then", "there", "banana", "aaaa", "aaaaaaa", "ab", "abab", "naïve", "東京", "🙂", "12345",
		"don't", "\n", "  ", "lower", "lowest", "newest"}
	docs := make([]string, n)
	for i := range docs {
		var b strings.Builder
		for range 40 {
			b.WriteString(parts[min(rnd.IntN(len(parts)), rnd.IntN(len(parts)))])
			if rnd.IntN(4) > 0 {
				b.WriteByte(' ')
			}
		}
		docs[i] = b.String()
	}
	return docs
}

func train(t testing.TB, docs []string, opt TrainOptions) *Tokenizer {
	t.Helper()
	tok, err := Train(context.Background(), slices.Values(docs), opt)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// naiveMerges counts every pair again for every merge.
func naiveMerges(docs []string, opt TrainOptions, scan scanner) [][2]string {
	counts := map[string]int{}
	for _, d := range docs {
		for i := 0; i < len(d); {
			j := scan(d, i)
			counts[d[i:j]]++
			i = j
		}
	}
	words := map[string][]string{}
	for w := range counts {
		for i := range len(w) {
			words[w] = append(words[w], byteText[w[i]])
		}
	}
	ids := map[string]int{}
	for i, s := range opt.Specials {
		ids[s] = i
	}
	letters := slices.Sorted(slices.Values(byteText[:]))
	for _, l := range letters {
		ids[l] = len(ids)
	}
	var merges [][2]string
	for len(ids) < opt.Vocab {
		best, top := bestPair(words, counts, ids)
		if top < 2 {
			break
		}
		if _, ok := ids[best[0]+best[1]]; !ok {
			ids[best[0]+best[1]] = len(ids)
		}
		merges = append(merges, best)
		for w, toks := range words {
			var out []string
			for i := 0; i < len(toks); i++ {
				if i+1 < len(toks) && toks[i] == best[0] && toks[i+1] == best[1] {
					out = append(out, best[0]+best[1])
					i++
				} else {
					out = append(out, toks[i])
				}
			}
			words[w] = out
		}
	}
	return merges
}

// bestPair returns the most frequent pair, the smallest ids first among equals, and its count; 1 stands for none.
func bestPair(words map[string][]string, counts, ids map[string]int) (best [2]string, top int) {
	pairs := map[[2]string]int{}
	for w, toks := range words {
		for i := 0; i+1 < len(toks); i++ {
			pairs[[2]string{toks[i], toks[i+1]}] += counts[w]
		}
	}
	top = 1
	for p, n := range pairs {
		less := ids[p[0]] < ids[best[0]] || ids[p[0]] == ids[best[0]] && ids[p[1]] < ids[best[1]]
		if n > top || n == top && top > 1 && less {
			best, top = p, n
		}
	}
	return best, top
}

func TestTrainAgainstNaive(t *testing.T) {
	docs := sampleDocs(60)
	for name, scan := range map[string]scanner{PatternGPT2: scanGPT2, PatternLlama3: knownScanner(PatternLlama3)} {
		opt := TrainOptions{Vocab: 360, Specials: []string{"<|endoftext|>"}, Pattern: name}
		tok := train(t, docs, opt)
		var got [][2]string
		for _, m := range tok.spec.merges {
			got = append(got, [2]string{tok.Token(m.left), tok.Token(m.right)})
		}
		if want := naiveMerges(docs, opt, scan); !slices.Equal(got, want) {
			t.Errorf("%s: merges differ from counting anew\ngot  %q\nwant %q", name, got, want)
		}
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	docs := sampleDocs(300)
	want := train(t, docs, TrainOptions{Vocab: 400, Workers: 1}).Hash()
	for _, workers := range []int{2, 3, 8} {
		if got := train(t, docs, TrainOptions{Vocab: 400, Workers: workers}).Hash(); got != want {
			t.Errorf("%d workers give another tokenizer than one", workers)
		}
	}
	slices.Reverse(docs)
	if got := train(t, docs, TrainOptions{Vocab: 400, Workers: 2}).Hash(); got != want {
		t.Error("the order of documents changes the tokenizer")
	}
}

func TestTrainRoundTrip(t *testing.T) {
	docs := sampleDocs(100)
	last := 0
	tok := train(t, docs, TrainOptions{Vocab: 330, Specials: []string{"<|endoftext|>", "<|pad|>"},
		Progress: func(done, total int) {
			if done < last || total != 330-258 {
				t.Errorf("progress went from %d to %d of %d", last, done, total)
			}
			last = done
		}})
	if last != 330-258 {
		t.Errorf("last progress was %d", last)
	}
	if tok.Vocab() != 330 {
		t.Fatalf("vocabulary of %d; want 330", tok.Vocab())
	}
	if id, ok := tok.EOS(); !ok || id != 0 {
		t.Errorf("EOS is %d, %v; want 0", id, ok)
	}
	for _, d := range append(docs, "unseen: ÿ þ \x00 𝄞") {
		if got := tok.Decode(tok.Append(nil, d), false); got != d {
			t.Fatalf("round trip of %q gives %q", d, got)
		}
	}
}

func TestTrainRefuses(t *testing.T) {
	for want, opt := range map[string]TrainOptions{
		"too small":        {Vocab: 255},
		"given twice":      {Vocab: 300, Specials: []string{"<a>", "<a>"}},
		"letter of a byte": {Vocab: 300, Specials: []string{"a"}},
		"is empty":         {Vocab: 300, Specials: []string{""}},
		"pattern":          {Vocab: 300, Pattern: "("},
	} {
		_, err := Train(context.Background(), slices.Values(sampleDocs(1)), opt)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v; want one with %q", opt, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Train(ctx, slices.Values(sampleDocs(10)), TrainOptions{Vocab: 300}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled training returned %v", err)
	}
}

func TestTrainNeverSpellsSpecial(t *testing.T) {
	docs := []string{strings.Repeat("the the the ", 50)}
	tok := train(t, docs, TrainOptions{Vocab: 300, Specials: []string{"the"}, Pattern: PatternGPT2})
	if ids := tok.EncodeOrdinary(nil, "the the"); slices.Contains(ids, 0) {
		t.Errorf("ordinary text became the special token: %v", ids)
	}
	if len(tok.Notes()) == 0 || !strings.Contains(fmt.Sprint(tok.Notes()), "of the 300 wanted") {
		t.Errorf("no note about the small text: %v", tok.Notes())
	}
}

// BenchmarkTrain learns 8,000 merges from 8 MB of made-up words.
func BenchmarkTrain(b *testing.B) {
	docs := []string{zipfText(8 << 20)}
	docs = strings.SplitAfter(docs[0], ".\n")
	for b.Loop() {
		train(b, docs, TrainOptions{Vocab: 8256, Workers: 2})
	}
}

// An impossibly large vocabulary is rejected before memory is allocated for it.
func TestTrainRefusesHugeVocabulary(t *testing.T) {
	_, err := Train(context.Background(), slices.Values([]string{"a b"}),
		TrainOptions{Pattern: PatternGPT2, Vocab: 1 << 31})
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v", err)
	}
}
