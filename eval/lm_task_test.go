package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/tokenizer"
)

// By hand: 6 tokens of losses 1 to 6 over "ab cd" (5 bytes, 2 words): sum 21.
func TestLMAnswer(t *testing.T) {
	var list []TokenLoss
	for i := 1; i <= 6; i++ {
		list = append(list, TokenLoss{ID: int32(i), Position: i, Loss: float64(i)})
	}
	a := lmAnswer("ab cd", 21, 6) // two words
	a.byPosition(list)
	r := &Result{Answers: []Answer{a}}
	for _, m := range lookup(t, "lm").Measures[:2] {
		r.Add(m.Name, m.Better, meanOf(r.Answers, m.Name))
	}
	if err := finishLM(r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"loss": 3.5, "bits_per_byte": 21 / math.Ln2 / 5, "perplexity": math.Exp(3.5), "word_perplexity": math.Exp(10.5), "byte_perplexity": math.Exp(4.2),
	} {
		if m, ok := r.Metric(name); !ok || !near(m.Value, want, 1e-9*want) {
			t.Errorf("%s: %+v, want %g", name, m, want)
		}
	}
	if want := `{"by_position":[{"position":1,"loss":1},{"position":2,"loss":1.5},{"position":3,"loss":2},{"position":4,"loss":2.5},{"position":6,"loss":3.5}]}`; string(r.Detail) != want {
		t.Errorf("by position %s, want %s", r.Detail, want)
	}
}

// Tokens a b a b c | a b: the second "a b" recalls its b; b c and the new window's do not.
func TestRecall(t *testing.T) {
	list := []TokenLoss{{1, 1, 10}, {2, 2, 20}, {1, 3, 30}, {2, 4, 40}, {3, 5, 50}, {1, 1, 60}, {2, 2, 70}}
	if got, want := recalled(list, nil), []bool{false, false, false, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	a := Answer{Values: map[string]float64{}, Weights: map[string]float64{}}
	a.recall(list, nil)
	if a.Values["ar_hit"] != 40 || a.Weights["ar_hit"] != 1 || a.Values["others"] != 240.0/6 || a.Weights["others"] != 6 {
		t.Errorf("%+v", a)
	}
	if slices.Contains(recalled(list, bigrams{{1, 2}: true}), true) {
		t.Error("a frequent pair was recalled")
	}
	// A last window that reaches back two tokens, over b c: it has not seen a b, but has b c.
	list = []TokenLoss{{1, 1, 1}, {2, 2, 1}, {3, 3, 1}, {2, 2, 1}, {3, 3, 1}, {1, 4, 1}, {2, 5, 1}}
	if got, want := recalled(list, nil), []bool{false, false, false, false, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("reaching back: %v, want %v", got, want)
	}
	s := &Subject{Tokenizer: tokenizer.Bytes()}
	got := s.frequent([]string{"ababab", "xy"}, 0.3) // of 8 pairs a b has 3, b a 2; each text's first pair is with the token before it
	if len(got) != 1 || !got[[2]int32{'a', 'b'}] {
		t.Errorf("frequent %v", got)
	}
}

// A model that takes every byte for equally likely has 8 bits per byte.
func TestLMUniform(t *testing.T) {
	j := prepared(t, lookup(t, "lm"), Options{Limit: 5}, 128)
	r := answer(t, j, guesser{rand.New(rand.NewPCG(1, 1))})
	for name, want := range map[string]float64{"bits_per_byte": 8, "byte_perplexity": 256, "perplexity": 256} {
		if m, ok := r.Metric(name); !ok || !near(m.Value, want, 1e-6) {
			t.Errorf("%s: %+v, want %g", name, m, want)
		}
	}
}

// Our own model's loss is the rolling likelihood's, and its parts add up.
func TestLMWithModel(t *testing.T) {
	onArchs(t, 48, func(t *testing.T, s *Subject) {
		j := prepared(t, lookup(t, "lm"), Options{Limit: 3}, 48)
		r := answer(t, j, s)
		loss, _ := r.Metric("loss")
		sum, n := 0.0, 0.0
		for _, a := range r.Answers {
			for _, name := range []string{"ar_hit", "others"} {
				sum += a.Values[name] * a.Weights[name]
				n += a.Weights[name]
			}
		}
		if !near(sum/n, loss.Value, 1e-9) {
			t.Errorf("parts average to %g, the whole to %g", sum/n, loss.Value)
		}
		texts, err := j.plan.heldOut("", j.plan.bytes(48), 3)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := s.LoglikelihoodRolling(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		nll, tokens := 0.0, 0
		for _, x := range scores {
			nll, tokens = nll-x.LogProb, tokens+x.Tokens
		}
		if !near(nll/float64(tokens), loss.Value, 1e-9) {
			t.Errorf("rolling %g, task %g", nll/float64(tokens), loss.Value)
		}
	})
}

func TestCutText(t *testing.T) {
	const text = "aébcdefgh" // é has two bytes
	for _, c := range []struct {
		at, n int
		want  string
	}{{0, 4, "aéb"}, {0, 2, "aé"}, {2, 3, "bc"}, {0, 99, text}, {8, 4, ""}, {4, 6, "cdefgh"}} {
		if got := cutText(text, c.at, c.n); got != c.want {
			t.Errorf("%d bytes at %d: %q, want %q", c.n, c.at, got, c.want)
		}
	}
}

// Pieces come from all documents in turn.
func TestHeldOutPieces(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "lm/valid", `{"text": "aaaabbbbcccc"}`, `{"text": "xxxxyyyy"}`, `{"text": "q"}`)
	p := &Plan{Options: &Options{Data: dir}}
	got, err := p.heldOut("", 4, 10)
	if want := "aaaa xxxx q bbbb yyyy cccc"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
