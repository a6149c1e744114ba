package task

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// The protocols as the paper states them: how many examples, which N and R at which lengths, how many samples, tokens
// and bits. Tasks that a group has besides a table are not in it.
func TestPresetProtocols(t *testing.T) {
	for name, want := range map[string][]string{
		"table1": {"arc_challenge 0 map[]", "arc_easy 0 map[]", "boolq 0 map[]", "hellaswag 0 map[]",
			"openbookqa 0 map[]", "piqa 0 map[]", "winogrande 0 map[]"},
		"table3":  {"attention -1 map[lengths:4096 samples:50 wording:public]"},
		"table5":  {"outliers -1 map[tokens:400000]"},
		"table7":  {"throughput -1 map[lengths:2048,4096]"},
		"figure4": {"lm -1 map[length:65536]"},
		"figure5": {"needle -1 map[lengths:8192,16384,24576,32768,40960,49152,57344,65536 needles:8 queries:1 " +
			"samples:50 wording:public]"},
		"figure7": {"icl_order_trec -1 map[items:100 seeds:30]"},
		"figure8": {"lowbit -1 map[bits:8,6,4 of:logits samples:10042 task:hellaswag texts:0]"},
	} {
		p, err := FindPreset(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := published(t, p); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for name, want := range map[string]string{
		"table2":  "1/1@4096 2/2@4096 4/2@4096 6/2@4096",
		"figure1": "6/2@4096",
		"figure9": "gsm8k:1024 competition_math:1024 svamp:1024 asdiv:1024 mawps:1024 carp_en:1024 tabmwp:1024 " +
			"college_math:1024",
		"figure10": "gsm8k:16384 competition_math:16384 svamp:16384 asdiv:16384 mawps:16384 carp_en:16384 " +
			"tabmwp:16384 college_math:16384",
	} {
		p, _ := FindPreset(name)
		var got []string
		for _, part := range p.Parts {
			tasks, _ := eval.Select(All(), strings.Split(part.Tasks, ","))
			for _, x := range tasks {
				switch {
				case x.Name == "needle":
					got = append(got, part.Set["needles"]+"/"+part.Set["queries"]+"@"+part.Set["lengths"])
				case x.Group == "math":
					got = append(got, x.Name+":"+part.Set["max_tokens"])
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	p, _ := FindPreset("table8")
	tasks, err := p.Tasks(false, 4096)
	if err != nil || len(tasks) != 14 || tasks[0].Shots != 0 || tasks[13].Shots != 5 {
		t.Errorf("%d tasks, %v", len(tasks), err)
	}
	for _, name := range []string{"figure9"} {
		if p, _ := FindPreset(name); !p.Checkpoints {
			t.Errorf("%s is not of every checkpoint", name)
		}
	}
}

// Lengths of a protocol that fits a model's context.
func TestPresetsFitTheContext(t *testing.T) {
	for _, x := range []struct {
		context int
		want    string
	}{{1024, "640,768,896,1024"}, {512, "320,384,448,512"}} {
		if got := eighths(x.context)["lengths"]; got != x.want {
			t.Errorf("eighths of %d: %s, want %s", x.context, got, x.want)
		}
	}
	half, _ := FindPreset("table7")
	for context, want := range map[int]string{1024: "512,1024", 1: "1,1"} {
		if got := half.Parts[0].Fit(context)["lengths"]; got != want {
			t.Errorf("throughput at a context of %d: %s, want %s", context, got, want)
		}
	}
}

// published are a preset's tasks with their examples and settings.
func published(t *testing.T, p *Preset) (out []string) {
	t.Helper()
	tasks, err := p.Tasks(false, 4096)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, part := range p.Parts {
		list, _ := eval.Select(All(), strings.Split(part.Tasks, ","))
		for _, x := range list {
			if !x.Beside {
				out = append(out, fmt.Sprint(x.Name, " ", tasks[at].Shots, " ", part.Set))
				at++
			}
		}
	}
	return out
}

// said scores endings so that the one at an index of each question is the likeliest.
type said struct {
	knower
	picks []int
	seen  []eval.Continuation
}

func (s *said) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	s.seen = append(s.seen, reqs...)
	out := make([]eval.Score, len(reqs))
	q, k := 0, 0
	for i, r := range reqs {
		if i > 0 && r.Context != reqs[i-1].Context {
			q, k = q+1, 0
		}
		if out[i].LogProb = -2; k == s.picks[q] {
			out[i].LogProb = -1
		}
		k++
	}
	return out, nil
}

// F1 beside the accuracy, by hand: of MRPC that of "yes", of CB the mean over three classes.
func TestPublishedF1(t *testing.T) {
	row := func(i, label int) string {
		return fmt.Sprintf(
			`{"sentence1": "a%d", "sentence2": "b%d", "premise": "p%d", "hypothesis": "h%d", "label": %d}`,
			i, i, i, i, label)
	}
	dir := t.TempDir()
	writeSet(t, dir, "glue/mrpc_val", row(0, 1), row(1, 1), row(2, 1), row(3, 0))
	writeSet(t, dir, "glue/cb_val", row(0, 0), row(1, 1), row(2, 2), row(3, 0))
	for name, x := range map[string]struct {
		picks   []int
		acc, f1 float64
	}{
		"mrpc": {[]int{1, 0, 0, 0}, 0.5, 2 * 1. / 4},             // one yes of three is found, and no false one
		"cb":   {[]int{0, 1, 1, 1}, 0.5, (2./3 + 2./4 + 0.) / 3}, // 0: 1 of (2+1), 1: 1 of (1+3), 2: none
	} {
		r := answer(t, lookup(t, name), eval.Options{Data: dir}, &said{picks: x.picks}, 256)
		if m, ok := r.Metric("acc"); !ok || m.Value != x.acc {
			t.Errorf("%s: accuracy %+v", name, m)
		}
		if m, ok := r.Metric("f1"); !ok || !near(m.Value, x.f1, 1e-12) || m.N != 4 || m.Better != eval.Higher {
			t.Errorf("%s: F1 %+v, want %g", name, m, x.f1)
		}
	}
	if r := answer(t, lookup(t, "piqa"), eval.Options{Limit: 3}, &said{picks: make([]int, 3)},
		256); len(r.Metrics) != 2 {
		t.Errorf("PIQA has %d metrics", len(r.Metrics))
	}
}

// With same_shots every question has the first one's examples, but never itself; otherwise new ones. Prompts that lose
// their beginning are counted: those with more tokens than the context and the last, which is only predicted.
func TestShotsAndCuts(t *testing.T) {
	heads := func(same string) (out []string) {
		j := prepared(t, lookup(t, "openbookqa"),
			eval.Options{Shots: 2, Limit: 6, Seed: 3, Set: map[string]string{"openbookqa.same_shots": same}}, 4096)
		for _, g := range j.Gold {
			out = append(out, g.Context[:strings.LastIndex(g.Context, "\n\n")])
		}
		return out
	}
	one, many := heads("true"), heads("false")
	slices.Sort(one)
	slices.Sort(many)
	if len(slices.Compact(one)) != 1 || len(slices.Compact(many)) < 4 {
		t.Errorf("%d and %d kinds of examples", len(slices.Compact(one)), len(slices.Compact(many)))
	}
	dir := t.TempDir()
	writeSet(t, dir, "mc/lambada_openai_test", `{"context": "a", "continuation": "1"}`,
		`{"context": "b", "continuation": "2"}`, `{"context": "c", "continuation": "3"}`,
		`{"context": "d", "continuation": "4"}`)
	asked := map[string]int{}
	for _, g := range prepared(t, lookup(t, "lambada_openai"),
		eval.Options{Data: dir, Shots: 2, Set: map[string]string{"lambada_openai.same_shots": "true"}}, 512).Gold {
		head, own := g.Context[:len(g.Context)-1], g.Context[len(g.Context)-1:]
		if asked[head]++; strings.Contains(head, own+g.Text) || strings.Count(head, "\n\n") != 2 {
			t.Errorf("%q is asked after %q", own, head)
		}
	}
	if len(asked) != 3 { // two are among the examples of the others
		t.Errorf("%v", asked)
	}
	text := func(n int) string { return strings.Repeat("x", n-len(" yes")) } // with its answer n bytes
	var rows []string
	for _, n := range []int{400, 404, 405, 408, 500} { // 4 bytes are a token
		rows = append(rows, fmt.Sprintf(`{"context": %q, "continuation": "yes"}`, text(n)))
	}
	writeSet(t, dir, "mc/lambada_openai_test", rows...)
	// 400, 404 bytes: 100, 101 tokens; 405 and 408: 102.
	for contextLen, want := range map[int]int{100: 3, 101: 1, 124: 0, 99: 4} {
		j := prepared(t, lookup(t, "lambada_openai"), eval.Options{Data: dir}, contextLen)
		if got := j.Config["prompts_cut"]; got != want {
			t.Errorf("a context of %d cuts %v prompts, want %d", contextLen, got, want)
		}
	}
}

// Passages and their question as they are asked, and rows that lack a field.
func TestPassages(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "longqa/hotpotqa_dev_subset",
		`{"id": "x", "question": "Who?", "answer": "Ann\n Lee", "contexts": [{"title": "T1", "text": "One."}, {"title": "T2", "text": "Two."}]}`)
	j := prepared(t, lookup(t, "hotpotqa"), eval.Options{Data: dir}, 512)
	want := eval.Continuation{
		Context: "T1\nOne.\n\nT2\nTwo.\n\nAnswer from the text above, in as few words as possible.\n" +
			"Question: Who?\nAnswer:",
		Text: " Ann Lee"}
	if j.Gold[0] != want || j.IDs[0] != "0 x" || j.Config["sources_cut"] != 0 || j.Config["used_max_tokens"] != 32 {
		t.Errorf("%q, %q, %v", j.Gold, j.IDs, j.Config)
	}
	for row, missing := range map[string]string{
		`{"id": 1, "answer": "a", "contexts": [{"text": "t"}]}`:   "question",
		`{"id": 1, "question": "q", "contexts": [{"text": "t"}]}`: "answer",
	} {
		writeSet(t, dir, "longqa/hotpotqa_dev_subset", row)
		opt := eval.Options{Data: dir}
		opt.Measure([]eval.Target{modelOf("m", &knower{}, 512)})
		if _, err := opt.Prepare(t.Context(), lookup(t, "hotpotqa")); err == nil ||
			!strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	// A quarter of the context.
	if j := prepared(t, lookup(t, "hotpotqa"), eval.Options{Limit: 1}, 80); j.Config["used_max_tokens"] != 20 {
		t.Errorf("%v", j.Config)
	}
}

// Numbers of examples: those asked for, ascending; without a word a doubling series, or two where fewer fit than there
// are classes; of orders half of what fits.
func TestShotCounts(t *testing.T) {
	task := &iclTask{labels: []string{"a", "b", "c", "d"}, train: labelled(8, "a", "b", "c", "d"),
		test: labelled(1, "a")}
	counts := func(context int, shots ...int) []int {
		opt := eval.Options{}
		opt.Measure([]eval.Target{modelOf("m", &knower{}, context)})
		p := &eval.Plan{Options: &opt, Context: context, Count: func(s string) int { return 10 },
			Values: map[string]any{"shots": shots}}
		got, err := task.shotCounts(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, x := range []struct {
		context int
		shots   []int
		want    []int
	}{ // a question and a label take 20, an example 10
		{1000, []int{0}, []int{4, 8, 16, 32}}, {120, []int{0}, []int{4, 8, 10}}, {60, []int{0}, []int{4}},
		{50, []int{0}, []int{1, 3}}, {40, []int{0}, []int{1, 2}}, {30, []int{0}, []int{1}},
		{1000, []int{7, 2, 5}, []int{2, 5, 7}}, {60, []int{4}, []int{4}},
	} {
		if got := counts(x.context, x.shots...); !slices.Equal(got, x.want) {
			t.Errorf("%d tokens, shots %v: %v, want %v", x.context, x.shots, got, x.want)
		}
	}
	opt := eval.Options{Data: iclFiles(t), Set: map[string]string{"icl_order.items": "2", "icl_order.seeds": "2"}}
	j := prepared(t, lookup(t, "icl_order_banking77"), opt, 125) // 12 fit
	if j.Config["used_shots"] != 6 || len(j.IDs) != 2*2*2 || j.IDs[0] != "random seed=0 0" ||
		j.IDs[7] != "alternating seed=1 1" || strings.Count(j.Gold[0].Context, "\n==\n") != 6 {
		t.Errorf("%v, %v", j.Config, j.IDs)
	}
	opt.Set["icl_order.shots"] = "13"
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 125)})
	if _, err := opt.Prepare(t.Context(), lookup(t, "icl_order_banking77")); err == nil ||
		!strings.Contains(err.Error(), "room for 1 to 12") {
		t.Errorf("%v", err)
	}
}

// An answer in a box that is never closed is looked for elsewhere; lists of other lengths differ; brackets of any depth
// end.
func TestAnswersAtTheEdge(t *testing.T) {
	for text, want := range map[string]string{`so \boxed{5`: "5", `\boxed{a{b}c} and \boxed{7}.`: "7", "####\n4": "",
		"#### 1 #### 2": "2", "costs $-3.": "-3", "is -$1,200.50 now": "-$1,200.50"} {
		if got := extractAnswer(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{{"1,2", "1,2,3", false}, {"1, 4/2", "1,2", true}, {"(1, 4/2)", "(1,2)", true}, {"{1, 2}", "(1,2)", true},
		{"[1,2]", "(1,2)", false}, {"5/4", `1\frac{1}{4}`, true}, {`2\frac{5}{4}`, "2.5", true},
		{"(1,2),3", "(1,2),4", false},
		{"1234567", "1,234,567", true}, {`\sqrt[`, "2", false}, {"abc", "cab", true}, {"tan", "nat", false},
		{"f(x)=x+1", "1+x", true}, {"2.5 kg", "2.5", true}, {"2.5 m", "2.5", false}} {
		if sameAnswer(c.a, c.b) != c.same {
			t.Errorf("%q and %q: %v (%q, %q)", c.a, c.b, !c.same, normalAnswer(c.a), normalAnswer(c.b))
		}
	}
	for n, good := range map[int]bool{50: true, 150: false} {
		for _, text := range []string{strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
			strings.Repeat("1^", n) + "1"} {
			if _, err := evaluate(text, nil); (err == nil) != good {
				t.Errorf("%d levels of %.5s: %v", n, text, err)
			}
		}
	}
}
