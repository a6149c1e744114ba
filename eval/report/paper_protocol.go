package report

import (
	"fmt"
	"strings"

	"antiphase/eval"
	"antiphase/eval/task"
)

// paperNumber is the paper's value of a metric.
type paperNumber struct{ base, diff float64 }

// paperScore is the paper's value of a metric of a task, whether or not the protocols agree: see differs.
func paperScore(kind string, shots int, config map[string]any, metric string) (paperNumber, bool) {
	for _, x := range paperMC {
		if x.task == kind && metric == published(kind) {
			if shots == 5 {
				return paperNumber{x.base5, x.diff5}, true
			}
			return paperNumber{x.base0, x.diff0}, true
		}
	}
	for _, x := range paperMath {
		if x.set == kind && metric == "acc" {
			return paperNumber{x.base, x.diff}, true
		}
	}
	for _, x := range paperHallucination {
		if x.set == kind && metric == "judge" {
			return paperNumber{x.base, x.diff}, true
		}
	}
	for _, x := range paperICL {
		if "icl_"+x.set == kind && metric == "acc" {
			return paperNumber{x.base, x.diff}, true
		}
		if "icl_order_"+x.set == kind && metric == "spread_random" {
			return paperNumber{x.baseSpread, x.diffSpread}, true
		}
	}
	if kind == "icl_order_trec" && metric == "spread_alternating" {
		return paperNumber{paperAlternating.base, paperAlternating.diff}, true
	}
	for _, x := range paperNeedleTable {
		if kind == "needle" && metric == "bound" && number(config["needles"]) == float64(x.needles) &&
			number(config["queries"]) == float64(x.queries) {
			return paperNumber{x.base, x.diff}, true
		}
	}
	return paperInside(kind, metric)
}

// published is the metric in the paper's tables, which is the harness's usual one: OpenLLaMA-3B-v2's HellaSwag is .52
// by acc and .70 by acc_norm, and Table 1 prints .70; its other tasks agree with acc.
func published(kind string) string {
	if kind == "hellaswag" {
		return "acc_norm"
	}
	return "acc"
}

// paperInside is paperScore for tasks that inspect models.
func paperInside(kind, metric string) (paperNumber, bool) {
	mean := func(list []float64) (sum float64) {
		for _, x := range list {
			sum += x / float64(len(list))
		}
		return sum
	}
	switch {
	case kind == "attention" && metric == "answer":
		return paperNumber{mean(paperAttention.baseAnswer), mean(paperAttention.diffAnswer)}, true
	case kind == "attention" && metric == "noise":
		return paperNumber{mean(paperAttention.baseNoise), mean(paperAttention.diffNoise)}, true
	case kind != "outliers":
		return paperNumber{}, false
	}
	for i, name := range task.ExtremeNames {
		switch metric {
		case "logits_" + name:
			return paperNumber{paperOutliers.base.Logits.List()[i], paperOutliers.diff.Logits.List()[i]}, true
		case "hidden_" + name:
			return paperNumber{paperOutliers.base.Hidden.List()[i], paperOutliers.diff.Hidden.List()[i]}, true
		}
	}
	return paperNumber{}, false
}

// differs lists the differences between the protocol of a result and the paper's; an empty list means the same, as far
// as the paper says. Model and training data always differ and are not listed.
func differs(q *eval.Result, metric string) []string {
	out := changed(q, metric)
	if s := unpublished(q); s != "" {
		out = append(out, s)
	}
	return out
}

// unpublished is what the paper does not give of a task, so that nobody can follow it; "" if it gives all.
func unpublished(q *eval.Result) string {
	switch {
	case q.Kind == "needle":
		return "text, digits and scoring of the paper are not public"
	case q.Kind == "attention":
		return "the paper's formula and prompts are not public"
	case q.Group == "icl" || q.Group == "math":
		return "the paper's prompts are not public"
	case q.Group == "icl_order":
		return "prompts and examples of the paper are not public"
	}
	return ""
}

// changed lists the differences in what the paper gives.
func changed(q *eval.Result, metric string) []string {
	var out []string
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(q.StandIn(), "generated questions, not the set")
	say(q.Limit > 0, "%d samples only", q.N)
	say(q.Config["task_file"] != nil, "data, prompts and scoring of a task file")
	switch {
	case q.Group == "mc":
		say(q.Shots != 0 && q.Shots != 5, "%d examples, the paper 0 or 5", q.Shots)
		say(q.Shots > 0 && q.Config["same_shots"] == true, "the same examples before every question")
		say(number(q.Config["prompts_cut"]) > 0, "%v prompts cut to the context", q.Config["prompts_cut"])
	case q.Kind == "needle" || q.Kind == "attention":
		say(!oneLength(q, 4096), "lengths %v, the paper 4096", lengthsOf(q))
		say(number(q.Config["samples"]) != 50, "%v samples per depth, the paper 50", q.Config["samples"])
	case q.Group == "icl":
		say(metric != "plateau", "mean over all numbers of examples, the paper where accuracy levels off")
		say(q.Context != 65536, "context of %d tokens, the paper 65536", q.Context)
	case q.Group == "icl_order":
		say(strings.HasSuffix(metric, "random") && number(q.Config["seeds"]) != 10, "%v orders, the paper 10",
			q.Config["seeds"])
		say(strings.HasSuffix(metric, "alternating") && number(q.Config["seeds"]) != 30, "%v orders, the paper 30",
			q.Config["seeds"])
	case q.Group == "hallucination":
		say(true, "another judge and prompt, the paper GPT-4o")
		say(q.N != 100, "%d questions, the paper 100", q.N)
	case q.Group == "math":
		say(number(q.Config["max_tokens"]) != 16384,
			"at most %v tokens of reasoning, the paper 16384 after distilled reasoning", q.Config["max_tokens"])
	case q.Kind == "outliers":
		used := number(q.Config["used_tokens"]) // older results do not have it
		// Whole sequences: slightly fewer.
		say(used > 0 && used < 380_000, "%v tokens, the paper 400,000", q.Config["used_tokens"])
	}
	return out
}

// lengthsOf are a needle task's lengths in tokens.
func lengthsOf(q *eval.Result) []int {
	var out []int
	add := func(n float64) {
		if n == 0 {
			n = float64(q.Context)
		}
		out = append(out, int(n))
	}
	switch list := q.Config["lengths"].(type) {
	case []int:
		for _, n := range list {
			add(float64(n))
		}
	case []any:
		for _, n := range list {
			add(number(n))
		}
	}
	return out
}

func oneLength(q *eval.Result, n int) bool {
	list := lengthsOf(q)
	return len(list) == 1 && list[0] == n
}
