package task

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/tokenizer"
)

// By hand: 6 tokens of losses 1 to 6 over "ab cd" (5 bytes, 2 words): sum 21.
func TestLMAnswer(t *testing.T) {
	var list []eval.TokenLoss
	for i := 1; i <= 6; i++ {
		list = append(list, eval.TokenLoss{ID: int32(i), Position: i, Loss: float64(i)})
	}
	a := lmAnswer("ab cd", 21, 6) // two words
	if err := a.SetDetail(stretches(list)); err != nil {
		t.Fatal(err)
	}
	r := &eval.Result{Answers: []eval.Answer{a}}
	for _, m := range lookup(t, "lm").Measures[:2] {
		r.Add(m.Name, m.Label, m.Better, eval.MeanOf(r.Answers, m.Name))
	}
	if err := finishLM(r, 6); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"loss": 3.5, "bits_per_byte": 21 / math.Ln2 / 5, "perplexity": math.Exp(3.5), "word_perplexity": math.Exp(10.5),
		"byte_perplexity": math.Exp(4.2),
	} {
		if m, ok := r.Metric(name); !ok || !near(m.Value, want, 1e-9*want) {
			t.Errorf("%s: %+v, want %g", name, m, want)
		}
	}
	var at []int
	for _, p := range detail[LMDetail](t, r).ByPosition {
		at = append(at, p.Position)
		if want := float64(p.Position+1) / 2; !near(p.Loss.Value, want, 1e-12) {
			t.Errorf("up to %d: %g, want %g", p.Position, p.Loss.Value, want)
		}
	}
	if want := []int{1, 2, 3, 4, 6}; !slices.Equal(at, want) {
		t.Errorf("positions %v, want %v", at, want)
	}
}

// Every point of the curve is of the same texts. Short texts of high loss would lift its beginning alone, and make it
// fall where nothing does: here each token of the long texts costs 1, each of the short ones 9.
func TestByPositionIsNotConfounded(t *testing.T) {
	text := func(n int, loss float64) positions {
		var list []eval.TokenLoss
		for i := range n {
			list = append(list, eval.TokenLoss{Position: i + 1, Loss: loss})
		}
		return stretches(list)
	}
	d := byPosition([]positions{text(40, 1), text(5, 9), text(33, 1), text(70, 1)}, 32)
	if d.Pieces != 3 || d.Left != 1 {
		t.Errorf("%d pieces, %d left out", d.Pieces, d.Left)
	}
	for _, p := range d.ByPosition {
		if p.Loss.Value != 1 || p.Loss.N != 3 {
			t.Errorf("up to %d: %+v", p.Position, p.Loss)
		}
	}
	if last := d.ByPosition[len(d.ByPosition)-1].Position; last != 32 {
		t.Errorf("the curve ends at %d", last)
	}
	d = byPosition([]positions{text(40, 1), text(5, 9), text(6, 9), text(70, 1)}, 32)
	if last := d.ByPosition[len(d.ByPosition)-1].Position; last != 32 || d.Pieces != 2 {
		t.Errorf("half of the texts reach 32: the curve ends at %d and has %d pieces", last, d.Pieces)
	}
}

// Generated pieces have at least the length asked for, in tokens, and hardly more.
func TestPiecesFillTheirLength(t *testing.T) {
	s := subject(t, ref.New(), "diff", 128)
	r := run(t, *lookup(t, "lm"), eval.Options{Limit: 30, Seed: 3, Shots: -1}, modelOf("m", s, 128))["m"]
	for _, a := range r.Answers {
		if n := a.Weight("loss"); n < 128 || n > 132 {
			t.Errorf("a piece has %g tokens, want 128 or a few more", n)
		}
	}
	if d := detail[LMDetail](t, r); d.Pieces != 30 || d.Left != 0 || d.ByPosition[len(d.ByPosition)-1].Position != 128 {
		t.Errorf("%+v", d)
	}
}

// Tokens a b a b c | a b: the second "a b" recalls its b; b c and the new window's do not.
func TestRecall(t *testing.T) {
	list := []eval.TokenLoss{{ID: 1, Position: 1, Loss: 10}, {ID: 2, Position: 2, Loss: 20},
		{ID: 1, Position: 3, Loss: 30}, {ID: 2, Position: 4, Loss: 40}, {ID: 3, Position: 5, Loss: 50},
		{ID: 1, Position: 1, Loss: 60}, {ID: 2, Position: 2, Loss: 70}}
	if got, want := recalled(list, nil),
		[]bool{false, false, false, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var a eval.Answer
	recall(&a, list, nil)
	if a.Values["ar_hit"] != 40 || a.Weights["ar_hit"] != 1 || a.Values["others"] != 240.0/6 ||
		a.Weights["others"] != 6 {
		t.Errorf("%+v", a)
	}
	if slices.Contains(recalled(list, bigrams{{1, 2}: true}), true) {
		t.Error("a frequent pair was recalled")
	}
	// A last window that reaches back two tokens, over b c: it has not seen a b, but has b c.
	list = []eval.TokenLoss{{ID: 1, Position: 1, Loss: 1}, {ID: 2, Position: 2, Loss: 1}, {ID: 3, Position: 3, Loss: 1},
		{ID: 2, Position: 2, Loss: 1}, {ID: 3, Position: 3, Loss: 1}, {ID: 1, Position: 4, Loss: 1},
		{ID: 2, Position: 5, Loss: 1}}
	if got, want := recalled(list, nil),
		[]bool{false, false, false, false, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("reaching back: %v, want %v", got, want)
	}
	s := &eval.Subject{Tokenizer: tokenizer.Bytes()}
	// Of 8 pairs a b has 3, b a 2; each text's first pair is with the token before it.
	got := frequentIn(s, []string{"ababab", "xy"}, 0.3)
	if len(got) != 1 || !got[[2]int32{'a', 'b'}] {
		t.Errorf("frequent %v", got)
	}
}

// A model that takes every byte for equally likely has 8 bits per byte.
func TestLMUniform(t *testing.T) {
	r := answer(t, lookup(t, "lm"), eval.Options{Limit: 5}, guesser{rand.New(rand.NewPCG(1, 1))}, 128)
	for name, want := range map[string]float64{"bits_per_byte": 8, "byte_perplexity": 256, "perplexity": 256} {
		if m, ok := r.Metric(name); !ok || !near(m.Value, want, 1e-6) {
			t.Errorf("%s: %+v, want %g", name, m, want)
		}
	}
}

// Our own model's loss is the rolling likelihood's, and its parts add up.
func TestLMWithModel(t *testing.T) {
	onArchs(t, 48, func(t *testing.T, s *eval.Subject) {
		opt := eval.Options{Limit: 3}
		r := answer(t, lookup(t, "lm"), opt, s, 48)
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
		opt.Measure([]eval.Target{modelOf("m", s, 48)})
		j, err := opt.Prepare(context.Background(), lookup(t, "lm"))
		if err != nil {
			t.Fatal(err)
		}
		texts, _, err := heldOut(t.Context(), j.Plan, "", 48, 3)
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
	got := pieces([]string{"aaaabbbbcccc", "xxxxyyyy", "q"}, 4, 10)
	if want := "aaaa xxxx q bbbb yyyy cccc"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFrequentPairs(t *testing.T) {
	lists := [][]int32{{1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 3}} // pairs 12 and 21 four times, 13 and 33 once
	if got := frequentPairs(lists, 0.5); len(got) != 0 {
		t.Errorf("more than half of all: %v", got)
	}
	got := frequentPairs(lists, 0.05)
	if len(got) != 2 || !got[[2]int32{1, 2}] || !got[[2]int32{2, 1}] {
		t.Errorf("%v", got)
	}
}

// The held-out part of a token set is text again.
func TestSetDocuments(t *testing.T) {
	dir := t.TempDir()
	src, err := data.Open("synthetic:seed=7,docs=40,len=200")
	if err != nil {
		t.Fatal(err)
	}
	set := filepath.Join(dir, "data")
	if _, err := data.Build(context.Background(), set, []data.Source{src}, tokenizer.Bytes(),
		data.BuildOptions{HeldOut: 0.2}); err != nil {
		t.Fatal(err)
	}
	s := subject(t, ref.New(), "diff", 64)
	r := answer(t, lookup(t, "lm"), eval.Options{Set: map[string]string{"lm.text": "set:" + set}}, s, 64)
	if r.StandIn() || r.N == 0 {
		t.Errorf("%+v", r)
	}
	docs, err := setDocuments(t.Context(), &eval.Plan{Tokens: tokenizer.Bytes()}, set)
	if err != nil || len(docs) == 0 {
		t.Fatalf("%v", err)
	}
	var all []string
	for d, err := range src.Documents(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d.Text)
	}
	for _, d := range docs {
		if !slices.Contains(all, d) {
			t.Errorf("%q is no document of the source", d)
		}
	}
	if _, err := setDocuments(t.Context(), &eval.Plan{}, set); err == nil ||
		!strings.Contains(err.Error(), "tokenizer") {
		t.Errorf("without a tokenizer: %v", err)
	}
	for name, refused := range map[string]bool{"train-00000.bin": false, "valid-00000.bin": true} {
		path := filepath.Join(set, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[70]++ // a token
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := setDocuments(t.Context(), &eval.Plan{Tokens: tokenizer.Bytes()}, set); (err != nil) != refused {
			t.Errorf("a damaged %s: %v", name, err)
		}
	}
}
