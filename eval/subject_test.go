package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

// logSoftmax is log P(id) at every row of a single sequence, by hand.
func logSoftmax(t *testing.T, s *Subject, ids []int32) func(row int, id int32) float64 {
	t.Helper()
	v := s.Model.Config.Vocab
	logits := make([]float32, len(ids)*v)
	if err := s.Model.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, logits); err != nil {
		t.Fatal(err)
	}
	return func(row int, id int32) float64 {
		sum := 0.0
		for _, x := range logits[row*v : (row+1)*v] {
			sum += math.Exp(float64(x))
		}
		return float64(logits[row*v+int(id)]) - math.Log(sum)
	}
}

func TestLoglikelihood(t *testing.T) {
	onArchs(t, 24, func(t *testing.T, s *Subject) {
		reqs := []Continuation{{"The sky", " is blue"}, {"", "x"}, {"long ago and far away from here", " it was"},
			{"a", "bcdefgh"}}
		got, err := s.Loglikelihood(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reqs {
			ids := s.Encode(r.Context + r.Text)
			ids = ids[max(0, len(ids)-25):] // 24 of context, and the last to be predicted
			lp := logSoftmax(t, s, ids[:len(ids)-1])
			want := 0.0
			for k := len(ids) - len(r.Text); k < len(ids); k++ {
				want += lp(k-1, ids[k])
			}
			if got[i].Tokens != len(r.Text) || !near(got[i].LogProb, want, 2e-4) {
				t.Errorf("%q: %+v, want %g over %d", r, got[i], want, len(r.Text))
			}
		}
	})
}

func TestLoglikelihoodGreedy(t *testing.T) {
	s := subject(t, ref.New(), "diff", 24)
	for c := 'a'; c <= 'z'; c++ {
		text := "ab" + string(c)
		lp, best := logSoftmax(t, s, s.Encode(text)), int32(0)
		for id := range int32(s.Model.Config.Vocab) {
			if lp(3, id) > lp(3, best) {
				best = id
			}
		}
		if best >= 128 { // no character of its own
			continue
		}
		got, err := s.Loglikelihood(context.Background(),
			[]Continuation{{text, string(rune(best))}, {text, string(rune(best ^ 1))}})
		if err != nil || !got[0].Greedy || got[1].Greedy {
			t.Errorf("%+v, %v: the likeliest byte %q is greedy, its neighbour is not", got, err, best)
		}
		return
	}
	t.Fatal("no context is followed by a character")
}

// A continuation is greedy only if every token was the most likely one: a wrong first token before a right last one is
// not.
func TestGreedyNeedsEveryToken(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	next := func(text string) (byte, bool) {
		ids := s.Encode(text)
		lp, best := logSoftmax(t, s, ids), int32(0)
		for id := range int32(s.Model.Config.Vocab) {
			if lp(len(ids)-1, id) > lp(len(ids)-1, best) {
				best = id
			}
		}
		return byte(best), best < 128 && best > 32
	}
	for c := 'a'; c <= 'z'; c++ {
		for w := 'a'; w <= 'z'; w++ {
			prompt, wrong := "the "+string(c), string(w)
			best, _ := next(prompt)
			last, ok := next(prompt + wrong)
			if !ok || best == byte(w) {
				continue
			}
			got, err := s.Loglikelihood(context.Background(), []Continuation{{prompt, wrong + string(rune(last))}})
			if err != nil || got[0].Greedy || got[0].Tokens != 2 {
				t.Fatalf("%q then %q: %+v, %v: only the last token is the likeliest", prompt,
					wrong+string(rune(last)), got[0], err)
			}
			return
		}
	}
	t.Fatal("no case found")
}

func TestLoglikelihoodRefuses(t *testing.T) {
	s := subject(t, ref.New(), "transformer", 8)
	if got, err := s.Loglikelihood(context.Background(), []Continuation{{"abc", ""}}); err == nil {
		t.Errorf("of nothing: %+v and no error", got)
	}
}

// A continuation longer than the context is scored in windows: of 8 tokens here, the last with all the context there
// is.
func TestLoglikelihoodOfLong(t *testing.T) {
	s := subject(t, ref.New(), "transformer", 8)
	const context8, text = "abc", "0123456789ABCDEFGHI"
	got, err := s.Loglikelihood(context.Background(), []Continuation{{context8, text}, {context8, "12345678"}})
	if err != nil || got[0].Tokens != len(text) || got[1].Tokens != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
	ids := s.Encode(context8 + text)
	want := 0.0
	for k := 4; k < len(ids); k++ {
		from := 3 + (k-4)/8*8
		if k >= 4+16 { // the last window is full
			from = len(ids) - 9
		}
		want += logSoftmax(t, s, ids[from:k])(k-1-from, ids[k])
	}
	if !near(got[0].LogProb, want, 1e-6) {
		t.Errorf("%g, want %g", got[0].LogProb, want)
	}
}

// Every token counts once, with the context of its window.
func TestLoglikelihoodRolling(t *testing.T) {
	const n = 16
	onArchs(t, n, func(t *testing.T, s *Subject) {
		texts := []string{"", "a", "exactly sixteen.", strings.Repeat("to and fro ", 5)}
		got, err := s.LoglikelihoodRolling(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			ids := s.Encode(text)
			want := 0.0
			for k := 1; k < len(ids); k++ {
				from := (k - 1) / n * n
				if from > 0 && from+n >= len(ids) { // the last window is full
					from = len(ids) - 1 - n
				}
				want += logSoftmax(t, s, ids[from:k])(k-1-from, ids[k])
			}
			if got[i].Tokens != len(text) || !near(got[i].LogProb, want, 1e-3) {
				t.Errorf("%q: %+v, want %g over %d", text, got[i], want, len(text))
			}
		}
	})
}

func TestGenerateUntil(t *testing.T) {
	onArchs(t, 48, func(t *testing.T, s *Subject) {
		free, err := s.GenerateUntil(context.Background(),
			[]Generation{{Prompt: "Once", MaxTokens: 12}, {Prompt: "Twice upon", MaxTokens: 5}})
		if err != nil {
			t.Fatal(err)
		}
		runes := []rune(free[0])
		if len(runes) < 4 || len(runes) > 12 || len([]rune(free[1])) > 5 {
			t.Fatalf("12 and 5 tokens gave %q", free)
		}
		stop := string(runes[2:4])
		got, err := s.GenerateUntil(context.Background(),
			[]Generation{{Prompt: "Once", Until: []string{stop}, MaxTokens: 12}})
		if want, _, _ := strings.Cut(free[0], stop); err != nil || got[0] != want {
			t.Errorf("until %q: %q, %v, want %q", stop, got, err, want)
		}
	})
}

// Texts end at the tokenizer's own last token, by whichever way they are computed, and the longest of several requests
// may be any.
func TestGenerateEnds(t *testing.T) {
	const specials, first = 64, 63
	names := make([]string, specials)
	for i := range names {
		names[i] = fmt.Sprintf("<%d>", i)
	}
	train := func() *tokenizer.Tokenizer {
		tok, err := tokenizer.Train(t.Context(), slices.Values([]string{"x"}),
			tokenizer.TrainOptions{Vocab: 256 + specials, Specials: names})
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	begin := int32(first)
	s := &Subject{Tokenizer: train(), First: &begin,
		Model: modeltest.New(t, ref.New(), modeltest.Tiny("diff", 256+specials, 64), layer.Memory{}, 11)}
	for _, low := range []layer.Lowbit{{}, {Logits: 6, Per: layer.PerTensor}} {
		if err := s.SetLowbit(low); err != nil {
			t.Fatal(err)
		}
		// A prompt after which the model writes a special token, which is then made the last one.
		prompt, best := "", int32(specials)
		for c := byte(' '); c < 127 && best >= first; c++ {
			prompt = "some text " + string(c)
			ids := s.Encode(prompt)
			logits := make([]float32, len(ids)*(256+specials))
			if err := s.Model.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, logits); err != nil {
				t.Fatal(err)
			}
			row := logits[(len(ids)-1)*(256+specials):]
			best = int32(slices.Index(row, slices.Max(row)))
		}
		if best >= first {
			t.Fatal("no prompt is followed by a special token")
		}
		reqs := []Generation{{Prompt: prompt, MaxTokens: 20}, {Prompt: "y", MaxTokens: 1}}
		names[best] = "</s>"
		s.Tokenizer = train()
		if got, err := s.GenerateUntil(t.Context(), reqs); err != nil || got[0] != "" {
			t.Errorf("%+v: %q after the last token, %v", low, got, err)
		}
		names[best] = "<other>"
		s.Tokenizer = train()
		if got, err := s.GenerateUntil(t.Context(), reqs); err != nil || got[0] == "" {
			t.Errorf("%+v: %q without a last token, %v", low, got, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	s := subject(t, ref.New(), "diff2", 16)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Loglikelihood(ctx, []Continuation{{"a", "b"}}); err == nil {
		t.Error("Loglikelihood ran on")
	}
	if _, err := s.GenerateUntil(ctx, []Generation{{Prompt: "a", MaxTokens: 4}}); err == nil {
		t.Error("GenerateUntil ran on")
	}
}
