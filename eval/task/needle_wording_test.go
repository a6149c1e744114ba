package task

import (
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
)

// Our own words are those of training; the public ones replace every sentence and keep the needles' places.
func TestWordings(t *testing.T) {
	c := data.NewNeedle(rand.New(rand.NewPCG(1, 1)),
		data.NeedleOptions{Needles: 4, Queries: 2, Depth: 0.5, Bytes: 1500, Digits: 5})
	if own := wordings["own"]; own.completion(c) != c.Completion() || own.reword(c).Prompt != c.Prompt {
		t.Errorf("our own: %q, want %q", own.completion(c), c.Completion())
	}
	w := wordings["public"]
	got := w.reword(c)
	x, y := c.Cities[0], c.Cities[1]
	if want := "What are the special magic numbers for " + x + ", and " + y + "? The special magic " + x +
		" number is"; got.Prompt[got.QuerySpan[0]:] != want {
		t.Errorf("asks %q, want %q", got.Prompt[got.QuerySpan[0]:], want)
	}
	if want := " " + c.Answers[0] + ". The special magic " + y + " number is " + c.Answers[1] +
		"."; w.completion(got) != want {
		t.Errorf("completion %q, want %q", w.completion(got), want)
	}
	for i, s := range got.Spans {
		if want := "The special magic " + c.Cities[i] + " number is: " + c.Answers[i] +
			"."; got.Prompt[s[0]:s[1]] != want {
			t.Errorf("needle %d is %q, want %q", i, got.Prompt[s[0]:s[1]], want)
		}
	}
	if strings.Contains(got.Prompt, "magic code") || strings.Count(got.Prompt, " number is: ") != 4 {
		t.Errorf("words of ours are left, or needles lost: %q", got.Prompt)
	}
	one := data.NewNeedle(rand.New(rand.NewPCG(1, 2)), data.NeedleOptions{Bytes: 400})
	if want := "\nWhat is the special magic " + one.Cities[0] + " number? The special magic " + one.Cities[0] +
		" number is"; !strings.HasSuffix(w.reword(one).Prompt, want) {
		t.Errorf("%q, want its end to be %q", w.reword(one).Prompt, want)
	}
}

// Right answers score 1 in these words too, and prompts fit.
func TestPublicNeedles(t *testing.T) {
	opt := eval.Options{Limit: 10, Set: map[string]string{"needle.wording": "public", "needle.digits": "7"}}
	j := prepared(t, lookup(t, "needle"), opt, 1024)
	for _, g := range j.Gold {
		if n := j.Plan.Count(g.Context) + len(g.Text); n > 1024 || n < 800 {
			t.Errorf("%d tokens of prompt and answer, the context is 1024", n)
		}
	}
	r := answer(t, lookup(t, "needle"), opt, knows(j.Job), 1024)
	for _, score := range []string{"bound", "free"} {
		if m, _ := r.Metric(score); m.Value != 1 {
			t.Errorf("right answers score %+v", m)
		}
	}
}
