package task

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/eval"
	"antiphase/layer"
)

// A scale belongs to a sequence, and so does an intervention: likelihoods and losses are the same to the last bit
// whatever the batch, the order, the company, and whatever was asked before.
func TestLowbitIgnoresTheBatch(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	var reqs []eval.Continuation
	var texts []string
	for i := range 12 { // questions that share a beginning, and texts of many lengths
		context := strings.Repeat("what they share ", 5) + strings.Repeat("question ", i%4)
		reqs = append(reqs, eval.Continuation{Context: context, Text: " answer"},
			eval.Continuation{Context: context, Text: " other"})
		texts = append(texts, strings.Repeat("a text. ", 1+i))
	}
	half := 0.5
	for what, change := range map[string]func(s *eval.Subject) error{
		"logits per tensor": few(layer.Lowbit{Logits: 4, Per: layer.PerTensor}),
		"logits per head":   few(layer.Lowbit{Logits: 4, Per: layer.PerHead}),
		"logits per row":    few(layer.Lowbit{Logits: 4, Per: layer.PerRow}),
		"keys per tensor":   few(layer.Lowbit{Keys: 4, CachePer: layer.PerTensor}),
		"values per head":   few(layer.Lowbit{Values: 4, CachePer: layer.PerHead}),
		"all per row":       few(layer.Lowbit{Logits: 6, Per: layer.PerRow, Keys: 5, Values: 5}),
		"shuffled": func(s *eval.Subject) error {
			return s.Intervene(layer.Intervention{Second: layer.SecondShuffled, Seed: 3})
		},
		"half λ": func(s *eval.Subject) error {
			return s.Intervene(layer.Intervention{Lambda: &half,
				Heads: []int{1}})
		},
	} {
		alone := map[string]float64{}
		for _, batch := range []int{1, 3, 16} {
			s := subject(t, d, "diff", 200)
			s.Batch = batch
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			if batch == 3 {
				slices.Reverse(reqs)
				slices.Reverse(texts)
			}
			got := likelihoods(t, s, reqs, texts)
			if batch == 1 {
				alone = got
			}
			for key, x := range got {
				if x != alone[key] {
					t.Errorf("%s, batch %d: %.17g, alone %.17g", what, batch, x, alone[key])
					break
				}
			}
			s.Close()
		}
	}
}

// likelihoods are those of continuations and of texts, by what is read.
func likelihoods(t *testing.T, s *eval.Subject, reqs []eval.Continuation, texts []string) map[string]float64 {
	t.Helper()
	scores, err := s.Loglikelihood(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	rolled, err := s.LoglikelihoodRolling(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for i, r := range reqs {
		out[r.Context+r.Text] = scores[i].LogProb
	}
	for i, text := range texts {
		out[text] = rolled[i].LogProb
	}
	return out
}

// few makes a model compute with few bits.
func few(q layer.Lowbit) func(s *eval.Subject) error {
	return func(s *eval.Subject) error { return s.SetLowbit(q) }
}

func values(list []eval.Answer) []string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s %v %v", a.ID, a.Values, a.Weights))
	}
	return out
}

// Text and choices of a model whose logits are quantised with one scale for a sequence do not depend on the batch
// either; exact ones are the engine's own.
func TestLowbitGenerates(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	reqs := []eval.Generation{{Prompt: "one", MaxTokens: 6},
		{Prompt: "another prompt", MaxTokens: 5, Until: []string{"e"}}, {Prompt: "x", MaxTokens: 9}}
	choices := []eval.Choice{{Prompt: "one", Options: []string{" a", " bc", " bd"}},
		{Prompt: "some other", Options: []string{" a", " bc", " bd"}}}
	var first []string
	for _, batch := range []int{1, 3} {
		s := subject(t, d, "diff", 64)
		s.Batch = batch
		if err := s.SetLowbit(layer.Lowbit{Logits: 4, Per: layer.PerTensor}); err != nil {
			t.Fatal(err)
		}
		got, err := s.GenerateUntil(t.Context(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		picks, err := s.Choose(t.Context(), choices)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(picks))
		if first == nil {
			first = got
		}
		if !reflect.DeepEqual(got, first) {
			t.Errorf("batch %d: %q, alone %q", batch, got, first)
		}
		s.Close()
	}
	// With 16 bits next to nothing is lost: the way of whole sequences writes what the engine writes.
	s := subject(t, d, "diff", 64)
	want, err := s.GenerateUntil(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetLowbit(layer.Lowbit{Logits: 16, Per: layer.PerTensor}); err != nil {
		t.Fatal(err)
	}
	got, err := s.GenerateUntil(t.Context(), reqs)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v; the engine %q", got, err, want)
	}
}

// All tasks on the processor give equal results to the last bit in any order and with any batch.
func TestBatchAndOrder(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	names := []string{"lm", "openbookqa", "winogrande", "needle", "icl_trec", "cb", "copa", "needle_hop",
		"ruler_variables", "ruler_values", "ruler_common", "noise"}
	var first map[string][]string
	for k, batch := range []int{1, 3, 16} {
		s := subject(t, d, "diff2", 480)
		s.Batch = batch
		var tasks []eval.Task
		for _, i := range rand.New(rand.NewPCG(7, uint64(k))).Perm(len(names)) {
			tasks = append(tasks, *lookup(t, names[i]))
		}
		ev, err := eval.Run(t.Context(), []eval.Target{modelOf("m", s, 480)}, tasks,
			eval.Options{Shots: -1, Limit: 4,
				Set: map[string]string{"noise.samples": "2", "noise.words": "0.2", "noise.passages": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, r := range ev.Models[0].Results {
			got[r.Kind] = values(r.Answers)
		}
		if first == nil {
			first = got
		}
		for _, name := range names {
			if !reflect.DeepEqual(first[name], got[name]) {
				t.Errorf("%s: batch %d, in another order, gives other numbers", name, batch)
			}
		}
	}
}

// The measure of the inner task can be chosen; without a choice it is the headline, which for HellaSwag is acc_norm.
func TestLowbitMetric(t *testing.T) {
	for metric, want := range map[string]string{"": "acc_norm", "acc": "acc"} {
		s := subject(t, cpu.New(cpu.Options{Threads: 2}), "diff", 400)
		r := answer(t, lookup(t, "lowbit"),
			eval.Options{Shots: -1, Set: map[string]string{"lowbit.metric": metric, "lowbit.samples": "2",
				"lowbit.bits": "8"}}, s, 400)
		if d := detail[LowbitDetail](t, r); d.Metric != want || d.Task != "hellaswag" || !d.StandIn {
			t.Errorf("%q: %+v", metric, d)
		}
	}
}
