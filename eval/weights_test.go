package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"antiphase/device/ref"
)

// Samples of unequal weight, some in clusters: compared with a model that always scores 0, the difference and its error
// are the mean and the error of the ratio over clusters.
func TestPairOfUnequalWeights(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 3))
	var a, b []Answer
	for i := range 30 {
		w := float64(1 + g.IntN(9))
		x := Answer{ID: fmt.Sprint(i), Values: map[string]float64{"x": g.NormFloat64()},
			Weights: map[string]float64{"x": w}}
		if i%3 == 0 {
			x.Cluster = fmt.Sprint("c", i/6)
		}
		b = append(b, x)
		x.Values = map[string]float64{"x": 0}
		a = append(a, x)
	}
	want := MeanOf(b, "x")
	p, ok := pairOf(a, b, "x", 1)
	if !ok || p.N != 30 || !near(p.Diff, want.Value, 1e-12) || !near(p.StdErr, want.StdErr, 1e-12) {
		t.Errorf("%+v, want %+v", p, want)
	}
	clusters := 20 + 5 // twenty alone, and ten in pairs
	d := StudentQuantile(0.975, float64(clusters-1)) * want.StdErr
	if !near(p.Low, want.Value-d, 1e-9) || !near(p.High, want.Value+d, 1e-9) {
		t.Errorf("%g to %g, want %g ± %g", p.Low, p.High, want.Value, d)
	}
}

// Headlines of all questions are one family, all other metrics another.
func TestHolmOverQuestions(t *testing.T) {
	results := []Result{{Question: "q", Metrics: []Metric{{Name: "acc"}, {Name: "loss"}}},
		{Question: "r", Metrics: []Metric{{Name: "loss"}, {Name: "acc"}}}}
	e := &Evaluation{Models: []Judged{{Results: results}},
		Paired: []Paired{{Question: "q", Metric: "acc", P: 0.02}, {Question: "q", Metric: "loss", P: 0.3},
			{Question: "r", Metric: "loss", P: 0.01}, {Question: "r", Metric: "acc", P: 0.9},
			{Question: "q", Metric: "acc", P: 0.5}}}
	e.holm()
	// Three headlines: 3·0.01, 2·0.02, 0.5; two others: 2·0.3, 0.9.
	for i, want := range []float64{0.04, 0.6, 0.03, 0.9, 0.5} {
		if !near(e.Paired[i].PHolm, want, 1e-12) {
			t.Errorf("%+v, want %g", e.Paired[i], want)
		}
	}
}

// More than 64 differences have independent signs: McNemar's exact p of 80 unlike answers, 50 for B.
func TestSignFlipOfMany(t *testing.T) {
	diffs := append(slices.Repeat([]float64{1}, 50), slices.Repeat([]float64{-1}, 30)...)
	exact := 0.0
	for k := range 31 {
		exact += 2 * math.Exp(lchoose(80, k)-80*math.Ln2)
	}
	if got := signFlip(diffs, 3); !near(got, exact, 4*math.Sqrt(exact/10000)) {
		t.Errorf("p = %g, exactly %g", got, exact)
	}
}

// The interval of draws is their middle 95 %, and there is none if half of them have no match.
func TestIntervalOfDraws(t *testing.T) {
	for n, want := range map[int][2]float64{500: {1 + 0.025*499, 1 + 0.975*499}, 251: {1 + 0.025*250, 1 + 0.975*250},
		250: {}, 0: {}} {
		var m ScalingMatch
		ratios := make([]float64, n)
		for i, k := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			ratios[i] = float64(k + 1)
		}
		if m.take(ratios); m.Draws != n || !near(m.Low, want[0], 1e-9) || !near(m.High, want[1], 1e-9) {
			t.Errorf("%d draws: %+v, want %v", n, m, want)
		}
	}
}

// Losses drawn for a curve scatter as its own do: fits to them leave as much as the fit to the points, and the first
// point scatters as much as the last, whatever the correlation.
func TestDrawnLosses(t *testing.T) {
	for _, rho := range []float64{0, 0.7} {
		g := rand.New(rand.NewPCG(7, 7))
		xs := make([]float64, 24)
		for i := range xs {
			xs[i] = 1e8 * float64(i+1)
		}
		c := correlated(curveOf("c", 2, 1e4, 0.6, 0, nil, xs...), rho, 0.003, g)
		if err := c.fit(); err != nil {
			t.Fatal(err)
		}
		c.Rho = rho
		d := c.newErrors(g)
		const draws = 500
		left, first, last := 0.0, 0.0, 0.0
		for range draws {
			y := d.redrawn(g)
			left += y.RMS * y.RMS / draws
			a, b := y.Points[0].Loss-c.At(xs[0]), y.Points[23].Loss-c.At(xs[23])
			first, last = first+a*a/draws, last+b*b/draws
		}
		if r := math.Sqrt(left) / c.RMS; r < 0.85 || r > 1.15 {
			t.Errorf("ρ = %g: fits to drawn losses leave %.2f of what the fit leaves", rho, r)
		}
		if r := math.Sqrt(first / last); r < 0.85 || r > 1.15 || math.Sqrt(last) < c.RMS {
			t.Errorf("ρ = %g: the first point scatters %.2f times as much as the last, which has %g of %g", rho, r,
				math.Sqrt(last), c.RMS)
		}
	}
}

// Of options that are equally likely the one with the lowest id is taken, every time.
func TestTiesOfOptions(t *testing.T) {
	for range 30 {
		root := newTrie()
		for i, id := range []int32{9, 4, 7, 5} {
			root.add([]int32{id}, i)
		}
		if id, n := root.step(make([]float32, 10)); id != 4 || n.option != 1 {
			t.Fatalf("took %d, option %d", id, n.option)
		}
	}
	for text, want := range map[string]int{"new york city": 1, "New": 0, "newer": -1, "12": 2, "123.": 3, "1234": -1,
		"new2": -1, " 12, 123": 2} {
		if got := BeginsWith(text, []string{" new", " new york", " 12.", " 123."}); got != want {
			t.Errorf("%q is option %d, want %d", text, got, want)
		}
	}
}

// Prompt and option are encoded as the model would read them in one piece, with a tokenizer whose words have spaces and
// whose prompts have lines.
func TestOptionsAreEncodedInOnePiece(t *testing.T) {
	s := bare(t)
	for _, prompt := range []string{"the", "and\nthe then", "and\n\nthe", "the\n", "and the\n then and", "the\n "} {
		options := []string{" then", " and", "n the", " the the then"}
		list, n, err := s.encoded(Choice{prompt, options})
		if err != nil || n != len(s.Encode(prompt)) {
			t.Fatalf("%q: %d tokens, %v", prompt, n, err)
		}
		for i, o := range options {
			if want := s.Encode(prompt + o); !slices.Equal(list[i], want) {
				t.Errorf("%q %q: %v, in one piece %v", prompt, o, list[i], want)
			}
		}
	}
}

// An echo whose lists do not fit each other, or that has none, is no echo.
func TestEndpointOddEchoes(t *testing.T) {
	for _, lp := range []string{`null`, `{}`, `{"tokens": [], "token_logprobs": [], "text_offset": []}`,
		`{"tokens": ["a", "b"], "token_logprobs": [null, -1], "text_offset": [0]}`,
		`{"tokens": ["a"], "token_logprobs": [null, -1], "text_offset": [0, 1]}`,
		`{"tokens": ["a", "b"], "token_logprobs": [null], "text_offset": [0, 1]}`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"choices": [{"text": "ab", "logprobs": %s}]}`, lp)
		}))
		if got, err := (&Endpoint{URL: srv.URL, Model: "m"}).Loglikelihood(t.Context(),
			[]Continuation{{"a", "b"}}); !errors.Is(err, ErrCannot) {
			t.Errorf("%s: %+v, %v", lp, got, err)
		}
		srv.Close()
	}
}

// Without a number an endpoint gets eight requests at a time: none is answered before eight are there.
func TestEndpointDefaultConcurrency(t *testing.T) {
	var n atomic.Int32
	all := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 8 {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"choices": [{"text": "x"}]}`)
	}))
	defer srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // reached only by a fault
	defer cancel()
	if got, err := (&Endpoint{URL: srv.URL, Model: "m"}).GenerateUntil(ctx, make([]Generation, 8)); err != nil ||
		len(got) != 8 || got[7] != "x" {
		t.Errorf("%q, %v", got, err)
	}
}

// Text from the engine is what a plain loop over the model's logits writes, also after a prompt that loses its
// beginning because the answer would have no room.
func TestGenerateIsGreedy(t *testing.T) {
	s := subject(t, ref.New(), "diff", 40)
	var reqs []Generation
	for n := range 9 { // 29 to 37 tokens and 6 more, of 40
		reqs = append(reqs, Generation{Prompt: strings.Repeat("0123456789", 4)[:28+n], MaxTokens: 6})
	}
	reqs = append(reqs, Generation{Prompt: strings.Repeat("long ", 20), MaxTokens: 9},
		Generation{Prompt: "x", MaxTokens: 100})
	checkGreedy(t, s, reqs)
}

// checkGreedy compares what a subject writes with what a plain loop over the model's logits does, and returns it.
func checkGreedy(t *testing.T, s *Subject, reqs []Generation) []string {
	t.Helper()
	got, err := s.GenerateUntil(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range reqs {
		if want := greedyText(t, s, r); got[i] != want {
			t.Errorf("%+v: %q, want %q", r, got[i], want)
		}
	}
	return got
}
