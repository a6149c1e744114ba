package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// The paper has a number for one metric of a task, or for those of its lists, and for no other.
func TestPaperHasOneMetric(t *testing.T) {
	metrics := []string{"acc", "acc_norm", "judge", "spread_random", "spread_alternating", "bound", "free", "answer",
		"noise", "logits_top1", "hidden_median", "loss"}
	has := map[string][]string{"hellaswag": {"acc_norm"}, "attention": {"answer", "noise"},
		"outliers": {"logits_top1", "hidden_median"}, "needle": {"bound"},
		"icl_order_trec": {"spread_random", "spread_alternating"}, "lm": nil}
	for _, x := range paperMC {
		if x.task != "hellaswag" {
			has[x.task] = []string{"acc"}
		}
	}
	for _, x := range paperMath {
		has[x.set] = []string{"acc"}
	}
	for _, x := range paperHallucination {
		has[x.set] = []string{"judge"}
	}
	for _, x := range paperICL {
		has["icl_"+x.set] = []string{"acc"}
		if x.set != "trec" {
			has["icl_order_"+x.set] = []string{"spread_random"}
		}
	}
	x := paperNeedleTable[len(paperNeedleTable)-1]
	for kind, want := range has {
		for _, shots := range []int{0, 5} {
			for _, m := range metrics {
				if _, ok := paperScore(kind, shots, map[string]any{"needles": x.needles, "queries": x.queries},
					m); ok != slices.Contains(want, m) {
					t.Errorf("%s of %s: %v", m, kind, ok)
				}
			}
		}
	}
	for _, config := range []map[string]any{nil, {"needles": x.needles},
		{"needles": x.needles, "queries": x.queries + 100}, {"needles": 77, "queries": x.queries}} {
		if n, ok := paperScore("needle", 0, config, "bound"); ok {
			t.Errorf("the paper has %v for %v", n, config)
		}
	}
}

// What differs from the paper, on both sides of each limit; settings may be as set, or as read from a file.
func TestChangedAtLimits(t *testing.T) {
	type config = map[string]any
	for _, c := range []struct {
		r    eval.Result
		want string
	}{
		{eval.Result{Group: "mc"}, ""}, {eval.Result{Group: "mc", Shots: 5}, ""},
		{eval.Result{Group: "mc", Shots: 1}, "1 examples, the paper 0 or 5"},
		{eval.Result{Group: "mc", Config: config{"same_shots": true}}, ""},
		{eval.Result{Group: "mc", Shots: 5, Config: config{"same_shots": true}},
			"the same examples before every question"},
		{eval.Result{Group: "mc", Config: config{"prompts_cut": 0}}, ""},
		{eval.Result{Group: "mc", Config: config{"prompts_cut": 1.0}}, "1 prompts cut to the context"},
		{eval.Result{Kind: "needle", Config: config{"lengths": []int{4096}, "samples": 50}}, ""},
		{eval.Result{Kind: "needle", Config: config{"lengths": []any{4096.0}, "samples": 50.0}}, ""},
		{eval.Result{Kind: "needle", Context: 4096, Config: config{"lengths": []any{0.0}, "samples": 50.0}}, ""},
		{eval.Result{Kind: "needle", Config: config{"lengths": []any{4096.0, 512.0}, "samples": 50}},
			"lengths [4096 512], the paper 4096"},
		{eval.Result{Kind: "needle", Config: config{"lengths": []int{512}, "samples": 10}},
			"lengths [512], the paper 4096; 10 samples per depth, the paper 50"},
		{eval.Result{Group: "hallucination", N: 100}, "another judge and prompt, the paper GPT-4o"},
		{eval.Result{Group: "hallucination", N: 99},
			"another judge and prompt, the paper GPT-4o; 99 questions, the paper 100"},
		{eval.Result{Kind: "outliers", Config: config{"used_tokens": 0}}, ""}, {eval.Result{Kind: "outliers"}, ""},
		{eval.Result{Kind: "outliers", Config: config{"used_tokens": 380000}}, ""},
		{eval.Result{Kind: "outliers", Config: config{"used_tokens": 379999}}, "379999 tokens, the paper 400,000"},
		{eval.Result{Kind: "outliers", Config: config{"used_tokens": 1}}, "1 tokens, the paper 400,000"},
	} {
		c.r.Task = c.r.Kind
		if got := strings.Join(changed(&c.r, "acc"), "; "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

// sided is an evaluation of some sides with these metrics of every task, all of which are compared.
func sided(names []string, results ...eval.Result) *eval.Evaluation {
	e := &eval.Evaluation{}
	for _, n := range names {
		m := eval.Judged{Model: eval.Model{Name: n}}
		for i, r := range results {
			r.Question, r.Kind, r.Place = r.Task, cmp.Or(r.Kind, r.Task), i
			m.Results = append(m.Results, r)
		}
		e.Models = append(e.Models, m)
	}
	return e
}

// Marks of a row: the side that beats every other, if it is above its floors; two that cannot be told apart; none of a
// measure without a direction, and none where nothing was compared. The sentence counts headlines only.
func TestMarksOfARow(t *testing.T) {
	metric := func(name string, better eval.Better, floor float64) eval.Metric {
		return eval.Metric{Name: name, Mean: eval.Mean{Value: 0.6}, Better: better,
			Floors: map[string]float64{"chance": floor}}
	}
	for _, c := range []struct {
		better eval.Better
		floor  float64
		diffs  string // of a and b, a and c, b and c: + second better, - first, 0 neither, . not compared
		want   string
	}{
		{eval.Higher, 0, "+", " ▸"}, {eval.Higher, 0, "-", "▸ "}, {eval.Lower, 0, "+", "▸ "},
		{eval.Higher, 0, "0", "≈≈"}, {eval.Neither, 0, "+", "  "}, {eval.Neither, 0, "0", "  "},
		{eval.Higher, 0, ".", "  "}, {eval.Higher, 0.7, "+", "  "}, {eval.Lower, 0.7, "+", "▸ "},
		{eval.Higher, 0, "+++", "  ▸"}, {eval.Higher, 0, "++0", "   "}, {eval.Higher, 0, "--0", "▸  "},
		{eval.Higher, 0, "+-+", "   "}, {eval.Higher, 0, "000", "   "}, {eval.Higher, 0, "-.-", "   "},
	} {
		names := []string{"a", "b", "c"}[:len(c.diffs)/3+2]
		e := sided(names, eval.Result{Task: "t",
			Metrics: []eval.Metric{metric("x", c.better, c.floor), metric("minor", eval.Higher, 0)}})
		for _, name := range []string{"x", "minor"} {
			n := 0
			for i := range names {
				for k := i + 1; k < len(names); k++ {
					p := eval.Paired{Question: "t", Metric: name, A: names[i], B: names[k], PHolm: 0.01}
					p.Diff = map[byte]float64{'+': 1, '-': -1}[c.diffs[n]]
					if c.diffs[n] != '.' {
						e.Paired = append(e.Paired, p)
					}
					n++
				}
			}
		}
		p := &Page{Evaluation: e}
		got := ""
		for _, x := range p.lines()[0].cells {
			got += fmt.Sprintf("%1s", x.mark)
		}
		if got != c.want {
			t.Errorf("%v of %s above %g: %q, want %q", c.better, c.diffs, c.floor, got, c.want)
		}
		if said := p.verdict(); (said != "") != (strings.TrimSpace(c.want) != "") || said != "" &&
			!strings.HasPrefix(said, "Of 1 headline measures, ") {
			t.Errorf("%v of %s: %q", c.better, c.diffs, said)
		}
	}
}

// Rows of a table: all metrics of a task or those that are chosen, floors in the measure's unit, a group's mean once
// and after its last task, wherever that stands, and what is known of training.
func TestRowsOfATable(t *testing.T) {
	acc := []eval.Metric{{Name: "acc", Label: "accuracy, %", Mean: eval.Mean{Value: 0.5},
		Floors: map[string]float64{"chance": 0.25}},
		{Name: "loss", Label: "loss", Mean: eval.Mean{Value: 2}, Floors: map[string]float64{"chance": 0.12345}}}
	e := sided([]string{"a", "b"}, eval.Result{Task: "g1", Group: "g", Metrics: acc},
		eval.Result{Task: "alone", Metrics: acc}, eval.Result{Task: "g2", Group: "g", Metrics: acc},
		eval.Result{Task: "other", Metrics: acc}, eval.Result{Task: "own", Kind: "alone", Metrics: acc})
	p := &Page{Evaluation: e, Brief: map[string][]string{"alone": {"loss"}, "other": {}, "own": {"acc"}},
		Training: []Training{{Model: "a", Shared: true}, {Model: "b", Shared: true, TokensPerSecond: 1500}}}
	var got []string
	for _, x := range p.lines() {
		got = append(got, fmt.Sprintf("%s|%s|%s|%v", x.task, x.measure, x.floors["chance"], x.minor))
		if len(x.cells) != 2 || len(x.diffs) != 1 {
			t.Errorf("%+v", x)
		}
	}
	want := []string{"model|training speed, tokens/s||true", "g1|accuracy, %|25.0|false", "|loss|0.123|true",
		"alone|loss|0.123|false", "g2|accuracy, %|25.0|false", "|loss|0.123|true", "g, mean of 2|acc||false",
		"alone|loss|0.123|false"}
	if len(got) != len(want) || !slices.Equal(got[:6], want[:6]) || !strings.HasPrefix(got[6], "g, mean of 2|acc") ||
		!strings.HasPrefix(got[7], "alone") || !strings.HasSuffix(got[7], "|loss|0.123|false") {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if c := p.lines()[0].cells; c[0].text != "–" || c[1].text != "–" {
		t.Errorf("%+v", c)
	}
	for seconds, want := range map[float64]string{0: "", -1: "", math.Inf(1): "", math.NaN(): "",
		61.4: "1m1s from start to end"} {
		p.Seconds = seconds
		if said := strings.Join(p.about(), "; "); strings.Contains(said, "from start to end") != (want != "") ||
			!strings.Contains(said, want) {
			t.Errorf("%g seconds: %q", seconds, said)
		}
	}
}
