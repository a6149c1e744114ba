package eval

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

// bare is a model whose tokenizer has no token of its own to put before a text.
func bare(t *testing.T) *Subject {
	t.Helper()
	tok, err := tokenizer.Train(t.Context(), slices.Values([]string{"the the then", "and and"}),
		tokenizer.TrainOptions{Pattern: tokenizer.PatternGPT2, Vocab: 260})
	if err != nil {
		t.Fatal(err)
	}
	return &Subject{Name: "bare", Model: modeltest.New(t, ref.New(), modeltest.Tiny("diff", tok.Vocab(), 32),
		layer.Memory{}, 11), Tokenizer: tok}
}

// Without a first token a text's first token is only context; a continuation or an option after nothing is refused,
// with the request's number; prompts of one line are scored as ever.
func TestWithoutFirstToken(t *testing.T) {
	s := bare(t)
	if id, ok := s.FirstToken(); ok {
		t.Fatalf("first token %d", id)
	}
	if got, err := s.LoglikelihoodRolling(t.Context(), []string{"then and", "x"}); err != nil ||
		got[0].Tokens != len(s.Encode("then and"))-1 || got[1].Tokens != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Loglikelihood(t.Context(), []Continuation{{"a", "b"}, {"", "b"}}); err == nil ||
		!strings.Contains(err.Error(), "request 1 has no context") {
		t.Errorf("%v", err)
	}
	if _, err := s.Choose(t.Context(), []Choice{{"the", []string{" a", " b"}}, {"", []string{"a", "b"}}}); err == nil ||
		!strings.Contains(err.Error(), "request 1: the options have no token before them") {
		t.Errorf("%v", err)
	}
	// The option that the model likes more of two single bytes, by its own logits.
	ids := s.Encode("then")
	lp := logSoftmax(t, s, ids)
	a, b := s.Encode("x")[0], s.Encode("q")[0]
	want := 0
	if lp(len(ids)-1, b) > lp(len(ids)-1, a) {
		want = 1
	}
	if got, err := Choose(t.Context(), s, []Choice{{"then", []string{"x", "q"}}}); err != nil || got[0] != want {
		t.Errorf("chose %v, %v; want %d", got, err, want)
	}
}

// Ours are known by architecture and size; what is kept between calls is released after a run; a template that fails
// names the request, and a prompt that it refuses still has a length.
func TestRunOfASubject(t *testing.T) {
	s := subject(t, ref.New(), "diff", 64)
	task := taskOf("scores", false, func(ctx context.Context, lm LM) error {
		_, err := lm.Loglikelihood(ctx, []Continuation{{"a", "b"}})
		return err
	})
	inside := taskOf("looks", true, func(context.Context, LM) error { return nil })
	ev, err := Run(t.Context(), []Target{{Model: Model{Name: "m", Context: 64}, LM: s}},
		[]Task{task, inside}, Options{})
	if err != nil || len(ev.Models[0].Results) != 2 || ev.Models[0].Arch != "diff" ||
		ev.Models[0].Parameters != s.Model.Params.Count() {
		t.Fatalf("%+v, %v", ev, err)
	}
	if s.shared != nil {
		t.Error("the cache is kept after a run")
	}
	if s.batch() != 3 || (&Subject{}).batch() != 8 {
		t.Errorf("%d and %d sequences at a time", s.batch(), (&Subject{}).batch())
	}
	refused := errors.New("refused")
	s.Template = func(p string) (string, error) {
		if p == "bad" {
			return "", refused
		}
		return p, nil
	}
	_, scored := s.Loglikelihood(t.Context(), []Continuation{{"ok", "b"}, {"bad", "b"}})
	_, chosen := s.Choose(t.Context(), []Choice{{"ok", []string{"a", "b"}}, {"bad", []string{"a", "b"}}})
	_, written := s.GenerateUntil(t.Context(),
		[]Generation{{Prompt: "ok", MaxTokens: 1}, {Prompt: "bad", MaxTokens: 1}})
	for what, err := range map[string]error{"scored": scored, "chosen": chosen, "written": written} {
		if !errors.Is(err, refused) || !strings.Contains(err.Error(), "request 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := s.Count("bad"); n != 4 {
		t.Errorf("%d tokens of a prompt that the template refuses", n)
	}
	if err := s.SetLowbit(layer.Lowbit{Logits: 6, Per: layer.PerTensor}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GenerateUntil(t.Context(),
		[]Generation{{Prompt: "ok", MaxTokens: 1}, {Prompt: "bad", MaxTokens: 1}}); !errors.Is(err, refused) ||
		!strings.Contains(err.Error(), "request 1") {
		t.Errorf("written whole: %v", err)
	}
}

// Settings of text and lists; lists of texts may be empty where the default is; settings that do not fit each other are
// the caller's mistake, found before anything is prepared.
func TestSettingsTogether(t *testing.T) {
	wrong := errors.New("do not fit")
	task := &Task{Name: "t", Settings: []Setting{{Key: "text", Default: "a"}, {Key: "ints", Default: []int{1, 2}},
		{Key: "floats", Default: []float64{0.5}}, {Key: "some", Default: []string{"x"}},
		{Key: "none", Default: []string{}}, {Key: "on", Default: true}}, Valid: func(p *Plan) error {
		if p.Text("text") == "bad" {
			return wrong
		}
		return nil
	}}
	p := newPlan(t, task, Options{Set: map[string]string{"t.none": "", "t.text": "b"}})
	if p.Text("text") != "b" || !slices.Equal(p.Ints("ints"), []int{1, 2}) ||
		!slices.Equal(p.Floats("floats"), []float64{0.5}) || !slices.Equal(p.Texts("some"), []string{"x"}) ||
		len(p.Texts("none")) != 0 || !p.Bool("on") {
		t.Errorf("%v", p.Values)
	}
	o := Options{Set: map[string]string{"t.some": ""}, context: 9}
	var in *InputError
	if _, err := o.plan(task); !errors.As(err, &in) || !in.Usage ||
		!strings.Contains(err.Error(), "some=: want at least one") {
		t.Errorf("an empty list: %v", err)
	}
	o.Set = map[string]string{"t.text": "bad"}
	if err := o.CheckSettings([]Task{*task}); !errors.Is(err, wrong) || !strings.HasPrefix(err.Error(), "t: ") {
		t.Errorf("%v", err)
	}
	if err := o.Check(task, 9); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
	if err := error(&InputError{wrong, false}); !errors.Is(err, wrong) {
		t.Error("the cause of an input error is lost")
	}
	for limit, want := range map[int]int{0: 7, 3: 3, 9: 7} {
		if got := (&Plan{Options: &Options{Limit: limit}}).Limited(7); got != want {
			t.Errorf("limit %d of 7: %d", limit, got)
		}
	}
}

// Tails of Student's t against tables and closed forms: Cauchy's with one degree of freedom, the normal with many.
func TestStudentTail(t *testing.T) {
	for _, c := range []struct{ t, df, want float64 }{
		{0, 5, 0.5}, {1, 1, 0.25}, {math.Sqrt(3), 1, 1. / 6}, {2.920, 2, 0.05}, {2.571, 5, 0.025},
		{1.96, math.Inf(1), 0.025}, {1.96, 1e9, 0.025}, {63.657, 1, 0.005}, {3.169, 10, 0.005},
	} {
		if got := studentTail(c.t, c.df); !near(got, c.want, 3e-5) {
			t.Errorf("P(T > %g) with %g degrees of freedom is %g, want %g", c.t, c.df, got, c.want)
		}
	}
	for _, c := range []struct{ a, b, x, want float64 }{{1, 1, 0.3, 0.3}, {2, 1, 0.5, 0.25}, {1, 2, 0.5, 0.75},
		{2, 2, 0.5, 0.5}, {3, 4, 0, 0}, {3, 4, 1, 1}, {0.5, 0.5, 0.5, 0.5}} {
		if got := incompleteBeta(c.a, c.b, c.x); !near(got, c.want, 1e-12) {
			t.Errorf("I_%g(%g, %g) = %g, want %g", c.x, c.a, c.b, got, c.want)
		}
	}
}
