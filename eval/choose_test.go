package eval

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

func TestTrie(t *testing.T) {
	root := newTrie()
	for i, ids := range [][]int32{{1, 2, 3}, {1, 2, 4}, {5}, {5, 6}, {1, 2, 3}} {
		root.add(ids, i)
	}
	logits := make([]float32, 8)
	logits[5], logits[1] = 1, 2
	logits[7] = 9 // not allowed
	id, n := root.step(logits)
	if id != 1 || n.leaves != 2 {
		t.Fatalf("took %d to %d options", id, n.leaves)
	}
	logits[4] = 3
	if _, n = n.step(logits); n.leaves != 2 { // only 2 follows
		t.Fatal("1 is followed by 2 alone")
	}
	if _, n = n.step(logits); n.leaves != 1 || n.option != 1 {
		t.Errorf("took option %d of %d", n.option, n.leaves)
	}
	logits[5] = 9
	if _, n = root.step(logits); n.leaves != 2 {
		t.Errorf("5 has %d options", n.leaves)
	}
	if _, n = n.step(logits); n.option != 3 || n.leaves != 1 {
		t.Errorf("an option inside another: %d of %d", n.option, n.leaves)
	}
}

// The most likely of the allowed tokens, the lowest id of equal ones, of all subsets of five tokens.
func TestTrieStep(t *testing.T) {
	for _, logits := range [][]float32{{1, 1, 1, 1, 1}, {0, 1, 2, 1, 2}, {3, 2, 3, 2, 3}, {-1, -2, -3, -2, -1}} {
		for set := 1; set < 32; set++ {
			root, want := newTrie(), int32(-1)
			for id := range int32(5) {
				if set>>id&1 == 0 {
					continue
				}
				root.add([]int32{id}, int(id))
				if want < 0 || logits[id] > logits[want] {
					want = id
				}
			}
			if id, next := root.step(logits); id != want || next.option != int(want) {
				t.Errorf("%05b of %v: %d, want %d", set, logits, id, want)
			}
		}
	}
}

// An option is encoded with its prompt as one text, also where a word of the tokenizer spans both, or two lines; what
// is computed once is what all options begin with.
func TestOptionsAreEncodedWithTheirPrompt(t *testing.T) {
	texts := []string{"the the then then", "a\n  b\n  b", "\n\n\n", "x\n  y\n  y", "and and"}
	tok, err := tokenizer.Train(t.Context(), slices.Values(slices.Repeat(texts, 3)),
		tokenizer.TrainOptions{Pattern: tokenizer.PatternGPT2, Vocab: 275, Specials: []string{"<s>", "</s>"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Subject{Model: modeltest.New(t, ref.New(), modeltest.Tiny("diff", tok.Vocab(), 64), layer.Memory{}, 1),
		Tokenizer: tok}
	if id, ok := s.FirstToken(); !ok || id != 0 {
		t.Fatalf("the first token is %d, want the one that begins a text", id)
	}
	for _, prompt := range []string{"th", "a\nth", "a\n  b", "a\n ", "x\n", "the", "", "\n\n", "x\n  y\n  a"} {
		for _, options := range [][]string{{"en", "e", "x"}, {"  b", " b", "\n"}, {"en", "en"}, {"é", "ê"}} {
			list, n, err := s.encoded(Choice{prompt, options})
			if err != nil || n != len(s.Encode(prompt)) {
				t.Fatal(n, err)
			}
			w, root, err := s.options(Choice{prompt, options})
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range options {
				whole := s.Encode(prompt + o)
				if !slices.Equal(list[i], whole) {
					t.Errorf("%q and %q: %v, want %v", prompt, o, list[i], whole)
				}
				if k := len(w.IDs); k > len(whole) || !slices.Equal(w.IDs, whole[:k]) || !root.has(whole[k:]) {
					t.Errorf("%q and %q: %v after %v is not among the options", prompt, o, whole, w.IDs)
				}
			}
		}
	}
}

// Under constraint the model takes, byte by byte, the most likely one that some option allows.
func TestChoose(t *testing.T) {
	onArchs(t, 96, func(t *testing.T, s *Subject) {
		options := []string{" apple", " apricot", " bear", " beard", " x"}
		var reqs []Choice
		for _, p := range []string{"Label:", "Text: some\nLabel:", "Text: other\nLabel:", ""} {
			reqs = append(reqs, Choice{p, options})
		}
		got, err := s.Choose(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reqs {
			text, left := r.Prompt, slices.Clone(options)
			for n := 0; len(left) > 1; n++ {
				ids := s.Encode(text)
				lp, best, at := logSoftmax(t, s, ids), math.Inf(-1), byte(0)
				for _, o := range left {
					if n < len(o) && lp(len(ids)-1, int32(o[n])) > best {
						best, at = lp(len(ids)-1, int32(o[n])), o[n]
					}
				}
				left = slices.DeleteFunc(left, func(o string) bool { return n >= len(o) || o[n] != at })
				text += string(at)
			}
			if options[got[i]] != left[0] {
				t.Errorf("%q: chose %q, want %q", r.Prompt, options[got[i]], left[0])
			}
		}
	})
}

func TestChooseFromFreeText(t *testing.T) {
	options := []string{" bear", " beard", " ox"}
	for text, want := range map[string]int{" bear": 0, "Beard and more": 1, "ox.": 2, "an ox": -1, "": -1, "oxen": -1,
		"beards": -1, "bear2": -1, "bearé": -1, "BEAR\n": 0} {
		if got := BeginsWith(text, options); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := BeginsWith("ox", []string{"a", " Ox.", "ox"}); got != 1 {
		t.Errorf("option %d of two alike", got)
	}
	if got := BeginsWith(" and", []string{".", ""}); got != -1 {
		t.Errorf("the empty option %d", got)
	}
}

// A prompt that is too long for its options loses its beginning, as much as is needed; what fits exactly loses nothing,
// and an option that leaves no room for any of the prompt is an error.
func TestChooseCutsTheBeginning(t *testing.T) {
	const context = 24
	s := subject(t, ref.New(), "diff", context)
	for _, longest := range []int{2, 5, context - 1, context, context + 3} {
		options := []string{" " + strings.Repeat("b", longest-1), " a"}
		for n := 1; n < 40; n++ {
			prompt := strings.Repeat("0123456789", 4)[:n]
			all := s.Encode(prompt)
			w, root, err := s.options(Choice{prompt, options})
			// The space is common to both options, but the prompt ends before it.
			grow := longest
			cut := max(0, len(all)+grow-context)
			if bad := cut >= len(all); (err != nil) != bad {
				t.Fatalf("%d tokens and %d of an option: %v", len(all), longest, err)
			}
			if err != nil {
				continue
			}
			if !slices.Equal(w.IDs, all[cut:]) || w.From != len(w.IDs) || w.Grow != grow || root.leaves != 2 {
				t.Fatalf("%d tokens and %d of an option: walk %+v of %v, %d options", len(all), longest, w,
					all, root.leaves)
			}
		}
	}
	if _, err := s.Choose(t.Context(), []Choice{{"x", nil}}); err == nil {
		t.Error("no options to choose from")
	}
	if got, err := s.Choose(t.Context(),
		[]Choice{{"x", []string{" only"}}, {"x", []string{" a", " a"}}, {"x", []string{""}},
			{"x", []string{"", ""}}}); err != nil || !slices.Equal(got, []int{0, 0, 0, 0}) {
		t.Errorf("%v, %v", got, err)
	}
}

// free is a model that only writes text.
type free struct {
	knower
	asked []Generation
	text  string
}

func (f *free) GenerateUntil(_ context.Context, reqs []Generation) ([]string, error) {
	f.asked = append(f.asked, reqs...)
	return slices.Repeat([]string{f.text}, len(reqs)), nil
}

// A model that cannot be constrained writes as much as the longest option needs, up to the end of a line.
func TestChooseOfFreeText(t *testing.T) {
	f := &free{text: " beard."}
	got, err := Choose(t.Context(), f, []Choice{{"p", []string{" ox", " beard", " emu"}}, {"q", []string{" ox"}}})
	if err != nil || !slices.Equal(got, []int{1, -1}) {
		t.Errorf("%v, %v", got, err)
	}
	for i, want := range []Generation{{Prompt: "p", Until: []string{"\n"}, MaxTokens: 7},
		{Prompt: "q", Until: []string{"\n"}, MaxTokens: 4}} {
		if !reflect.DeepEqual(f.asked[i], want) {
			t.Errorf("asked %+v, want %+v", f.asked[i], want)
		}
	}
}
