package task

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/eval"
)

// brief are settings that make every task short on a real model; a key counts where a task has it.
var brief = map[string]string{"max_tokens": "4", "bits": "3", "of": "values", "texts": "2", "ways": "knockout@H1",
	"pieces": "3", "kinds": "typos,adversarial", "words": "0.3", "passages": "1", "shots": "2", "items": "2",
	"seeds": "2", "lengths": "330", "needles": "2", "queries": "2", "depths": "0,1", "hops": "0"}

// briefly are options for a task that looks at few tokens.
func briefly(task *eval.Task, limit int) eval.Options {
	opt := eval.Options{Seed: 5, Shots: -1, Limit: limit, LogSamples: true, Set: map[string]string{}}
	for _, s := range task.Settings {
		if v, ok := brief[s.Key]; ok {
			opt.Set[task.Name+"."+s.Key] = v
		}
	}
	switch task.Name {
	case "interventions":
		maps := map[string]string{"samples": "1", "needles": "1", "length": "200"}
		for k, v := range maps {
			opt.Set["interventions."+k] = v
		}
	case "outliers":
		opt.Set["outliers.length"], opt.Set["outliers.tokens"] = "24", "96"
	case "geometry", "gradients", "context_rms", "lm":
		opt.Set[task.Name+".length"] = "24"
	case "lowbit":
		opt.Set["lowbit.length"] = "80"
	case "samples":
		opt.Set["samples.tokens"] = "4"
	case "noise":
		opt.Set["noise.with"] = "lengths=330"
	}
	return opt
}

// shownAnswer is everything that an answer holds.
func shownAnswer(t *testing.T, a eval.Answer) string {
	t.Helper()
	a.ID = ""
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An answer belongs to its question whatever else is asked in the same call, and a metric has the direction that its
// name says: for every task, of a group for one, on a real model.
func TestAnswersBelongToQuestions(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	dir := t.TempDir()
	var rows []string
	for _, word := range strings.Fields("ash beech cedar elm fir") {
		rows = append(rows, fmt.Sprintf(`{"text": %q}`, strings.Repeat(word+" trees, ", 8)))
	}
	writeSet(t, dir, "texts", rows...)
	groups := map[string]bool{}
	for _, task := range All() {
		if task.Timed || groups[task.Group] {
			continue
		}
		groups[task.Group] = task.Group != ""
		s := subject(t, d, "diff", 500)
		opt := briefly(&task, 4)
		if slices.ContainsFunc(task.Settings, func(s eval.Setting) bool { return s.Key == "text" }) {
			opt.Set[task.Name+".text"] = filepath.Join(dir, "texts.jsonl") // generated texts begin alike
		}
		r := run(t, task, opt, modelOf("m", s, 500))["m"]
		opt.Measure([]eval.Target{modelOf("m", s, 500)})
		j, err := opt.Prepare(t.Context(), &task)
		if err != nil {
			t.Fatal(err)
		}
		var odd []int
		for i := 1; i < len(j.IDs); i += 2 {
			odd = append(odd, i)
		}
		if len(odd) == 0 && task.Name != "maps" {
			t.Errorf("%s has one question", task.Name)
			continue
		}
		got, err := j.Ask(t.Context(), s, odd)
		if err != nil {
			t.Fatalf("%s: %v", task.Name, err)
		}
		for i, k := range odd {
			if a, b := shownAnswer(t, got[i]), shownAnswer(t, r.Answers[k]); a != b {
				t.Errorf("%s: question %s asked among others gives\n%.600s\nin order\n%.600s", task.Name,
					j.IDs[k], a, b)
				break
			}
		}
		for _, m := range r.Metrics {
			if want := direction(&task, m.Name); m.Better != want {
				t.Errorf("%s: %s improves as %v, want %v", task.Name, m.Name, m.Better, want)
			}
			if m.Label == "" || strings.HasPrefix(m.Label, "%") {
				t.Errorf("%s: %s has the label %q", task.Name, m.Name, m.Label)
			}
		}
		s.Close()
	}
}

// A question leaves the model as it was, whichever it is: quantisation and interventions end with it.
func TestTasksLeaveTheModelPlain(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	s := subject(t, d, "diff2", 500)
	defer s.Close()
	loss := func() float64 { return plainLoss(t, s) }
	before := loss()
	groups := map[string]bool{}
	for _, task := range All() {
		if task.Timed || groups[task.Group] {
			continue
		}
		groups[task.Group] = task.Group != ""
		opt := briefly(&task, 2)
		opt.Measure([]eval.Target{modelOf("m", s, 500)})
		j, err := opt.Prepare(t.Context(), &task)
		if err != nil {
			t.Fatal(err)
		}
		for k, id := range j.IDs {
			if _, err := j.Ask(t.Context(), s, []int{k}); err != nil {
				t.Fatalf("%s: %v", task.Name, err)
			}
			if after := loss(); after != before {
				t.Fatalf("%s: after question %s the loss is %g, before it %g", task.Name, id, after, before)
			}
		}
	}
}

// direction is how a metric improves, by its name: losses, perplexities, noise, outliers and spreads fall, shares of
// right answers rise, and what only describes a model does neither.
func direction(task *eval.Task, name string) eval.Better {
	begins := func(list ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool {
			return name == s || strings.HasPrefix(name, s+" ") || strings.HasPrefix(name, s+"_") ||
				strings.HasPrefix(name, s+"@")
		})
	}
	switch {
	case task.Name == "attention":
		return map[string]eval.Better{"answer": eval.Higher, "noise": eval.Lower, "bound": eval.Higher}[name]
	case task.Name == "geometry" || task.Name == "gradients" ||
		begins("rms", "least", "largest", "length", "bytes", "head_answer"):
		return eval.Neither
	case begins("kl"):
		return map[string]eval.Better{"lowbit": eval.Lower}[task.Name]
	case begins("loss", "bits_per_byte", "ar_hit", "others", "perplexity", "word_perplexity", "byte_perplexity",
		"logits_max", "logits_top1", "logits_top2", "logits_top3", "logits_top10", "logits_top100", "logits_median",
		"hidden", "spread", "unclear", "head_norm_gain"):
		return eval.Lower
	}
	return eval.Higher
}

// The listing follows the paper.
func TestListing(t *testing.T) {
	_, err := eval.Select(All(), []string{"?"})
	want := "there are lm, mc, glue, needle, needle_hop, ruler, noise, attention, maps, samples, interventions, " +
		"outliers, gradients, context_rms, geometry, lowbit, throughput, icl, icl_order, hallucination, math"
	if !strings.HasSuffix(fmt.Sprint(err), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}
