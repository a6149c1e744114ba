package task

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// By hand: sums −10, −9, −20 make the second most likely; per character −10/10, −9/3, −20/40 the third.
func TestMCScore(t *testing.T) {
	q := mcItem{contexts: []string{"Q"}, endings: []string{strings.Repeat("a", 10), "bbb", strings.Repeat("c", 40)}}
	scores := []eval.Score{{LogProb: -10}, {LogProb: -9}, {LogProb: -20}}
	for gold, want := range []map[string]float64{{"acc": 0, "acc_norm": 0}, {"acc": 1, "acc_norm": 0},
		{"acc": 0, "acc_norm": 1}} {
		q.gold = gold
		got := q.score(scores, false).Values
		if got["acc"] != want["acc"] || got["acc_norm"] != want["acc_norm"] {
			t.Errorf("gold %d: %v, want %v", gold, got, want)
		}
	}
	for gold, want := range []float64{1, 0, 0} { // the first of equals counts
		q := mcItem{contexts: []string{"Q"}, endings: []string{"aa", "bb", "cc"}, gold: gold}
		if got := q.score([]eval.Score{{LogProb: -2}, {LogProb: -2}, {LogProb: -2}},
			false).Values; got["acc"] != want || got["acc_norm"] != want {
			t.Errorf("equal endings, gold %d: %v, want %g", gold, got, want)
		}
	}
	// By bytes −3/4 would beat −4/3, by characters it loses.
	q = mcItem{endings: []string{"éé", "eee"}, contexts: []string{"Q"}, gold: 1}
	if got := q.score([]eval.Score{{LogProb: -3}, {LogProb: -4}}, false).Values["acc_norm"]; got != 1 {
		t.Errorf("characters count, not bytes: %g", got)
	}
	if got := q.score([]eval.Score{{LogProb: -2, Greedy: true}}, true).Values; got["acc"] != 1 || got["nll"] != 2 {
		t.Errorf("single: %v", got)
	}
}

// The headline is the measure that the paper publishes: acc_norm of HellaSwag, acc of all others. Both are there where
// the harness has both.
func TestMCHeadline(t *testing.T) {
	for _, set := range mcSets {
		want := "acc"
		if set.name == "hellaswag" {
			want = "acc_norm"
		}
		list := lookup(t, set.name).Measures
		if list[0].Name != want || (len(list) == 1) != (set.single || set.accOnly) {
			t.Errorf("%s is measured by %v, its headline should be %s", set.name, list, want)
		}
	}
}

// writeSet puts rows into dir as NAME.jsonl.
func writeSet(t *testing.T, dir, name string, rows ...string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name)+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The prompts are the harness's, letter by letter.
func TestMCPrompts(t *testing.T) {
	dir := t.TempDir()
	asked := `{"id": "x", "query": "Why?", "choices": ["a", "b c"], "gold": 1}`
	for _, name := range []string{"mc/arc_easy_test", "mc/piqa_val", "mc/hellaswag_val", "mc/openbookqa_test"} {
		writeSet(t, dir, name, asked)
	}
	writeSet(t, dir, "mc/arc_easy_train", `{"id": "y", "query": "How?", "choices": ["so", "not"], "gold": 0}`, asked)
	writeSet(t, dir, "mc/boolq_val",
		`{"id": 1, "passage": "P.", "question": "is it?", "choices": ["yes", "no"], "gold": 0}`)
	writeSet(t, dir, "mc/winogrande_val",
		`{"id": 1, "sentence": "A saw B so _ ran off.", "options": ["A", "B"], "gold": 1}`)
	writeSet(t, dir, "mc/lambada_openai_test", `{"context": "He said", "continuation": " word"}`)
	for _, c := range []struct {
		task  string
		shots int
		want  eval.Continuation
	}{
		{"arc_easy", 0, eval.Continuation{Context: "Question: Why?\nAnswer:", Text: " b c"}},
		{"arc_easy", 1, eval.Continuation{Context: "Question: How?\nAnswer: so\n\nQuestion: Why?\nAnswer:",
			Text: " b c"}},
		{"piqa", 0, eval.Continuation{Context: "Question: Why?\nAnswer:", Text: " b c"}},
		{"hellaswag", 0, eval.Continuation{Context: "Why?", Text: " b c"}},
		{"openbookqa", 0, eval.Continuation{Context: "Why?", Text: " b c"}},
		{"boolq", 0, eval.Continuation{Context: "P.\nQuestion: is it?\nAnswer:", Text: " yes"}},
		{"winogrande", 0, eval.Continuation{Context: "A saw B so B", Text: " ran off."}},
		{"lambada_openai", 0, eval.Continuation{Context: "He said", Text: " word"}},
	} {
		j := prepared(t, lookup(t, c.task), eval.Options{Data: dir, Shots: c.shots}, 256)
		if got := j.Gold[0]; got != c.want {
			t.Errorf("%s: %q, want %q", c.task, got, c.want)
		}
	}
}

// A limit is one of questions: examples still come from the whole training split.
func TestLimitLeavesExamples(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "mc/arc_easy_test", `{"id": "x", "query": "Why?", "choices": ["a", "b"], "gold": 1}`,
		`{"id": "z", "query": "Who?", "choices": ["a", "b"], "gold": 1}`)
	var train []string
	for i := range 7 {
		train = append(train, fmt.Sprintf(`{"id": "t%d", "query": "How %d?", "choices": ["so", "not"], "gold": 0}`, i,
			i))
	}
	writeSet(t, dir, "mc/arc_easy_train", train...)
	j := prepared(t, lookup(t, "arc_easy"), eval.Options{Data: dir, Shots: 6, Limit: 1}, 1024)
	if len(j.Gold) != 1 {
		t.Fatalf("%d questions", len(j.Gold))
	}
	found := 0
	for i := range train {
		found += strings.Count(j.Gold[0].Context, fmt.Sprintf("How %d?", i))
	}
	if found != 6 {
		t.Errorf("%d examples of 6: %q", found, j.Gold[0].Context)
	}
}

// LAMBADA's perplexity is exp of the mean loss per word, as the harness has it.
func TestLambadaPerplexity(t *testing.T) {
	opt := eval.Options{Shots: -1, Limit: 10}
	j := prepared(t, lookup(t, "lambada_openai"), opt, 256)
	r := answer(t, lookup(t, "lambada_openai"), opt, knows(j.Job), 256)
	if m, ok := r.Metric("perplexity"); !ok || !near(m.Value, math.Exp(0.01), 1e-12) {
		t.Errorf("%+v", r.Metrics)
	}
}

// A model of ours gets through, few-shot too, and shares give the same scores as asking one by one.
func TestMCWithModel(t *testing.T) {
	onArchs(t, 700, func(t *testing.T, s *eval.Subject) {
		j := prepared(t, lookup(t, "openbookqa"), eval.Options{Shots: 2, Limit: 5}, 700)
		together, err := j.Ask(context.Background(), s, []int{0, 1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		for i := range together {
			alone, err := j.Ask(context.Background(), s, []int{i})
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range alone[0].Doc["loglikelihoods"].([]float64) {
				if got := together[i].Doc["loglikelihoods"].([]float64)[k]; !near(got, v, 1e-3) {
					t.Errorf("question %d, choice %d: %g together, %g alone", i, k, got, v)
				}
			}
		}
		s.Close()
	})
}

// goodRow is a question of multiple choice without a fault.
const goodRow = `{"id": 1, "query": "Why?", "choices": ["a", "b"], "gold": 1}`

// badData are rows of sets by file that a task cannot use, and what is said of them.
var badData = map[string]struct {
	task string
	rows map[string][]string
	want string
}{
	"missing": {"piqa", nil,
		"has no mc/piqa_val (looked for piqa_val.jsonl.zst, piqa_val.jsonl.gz, piqa_val.jsonl)"},
	"empty": {"piqa", map[string][]string{"mc/piqa_val": {""}}, "the set is empty"},
	"no json": {"piqa", map[string][]string{"mc/piqa_val": {goodRow, "", "{"}},
		"piqa_val.jsonl: line 3: unexpected end"},
	"no query": {"piqa", map[string][]string{"mc/piqa_val": {`{"choices": ["a", "b"], "gold": 1}`}},
		`line 1: field "query" is missing or empty`},
	"one choice": {"piqa", map[string][]string{"mc/piqa_val": {`{"query": "q", "choices": ["a"], "gold": 0}`}},
		`field "choices" has 1 entries, want 2 or more`},
	"gold below": {"piqa",
		map[string][]string{"mc/piqa_val": {`{"query": "q", "choices": ["a", "b"], "gold": -1}`}},
		`field "gold" is missing or outside 0 to 1`},
	"blank choice": {"piqa", map[string][]string{"mc/piqa_val": {goodRow,
		`{"query": "q", "choices": ["a", "b", " "], "gold": 1}`}}, `line 2: field "choices": entry 2 is empty`},
	"two blanks": {"winogrande",
		map[string][]string{"mc/winogrande_val": {`{"sentence": "_ s _", "options": ["a", "b"], "gold": 0}`}},
		`has 2 blanks "_", want one`},
	"no passage": {"boolq",
		map[string][]string{"mc/boolq_val": {`{"question": "q", "choices": ["a", "b"], "gold": 0}`}},
		`field "passage" is missing`},
	"no last word": {"lambada_openai", map[string][]string{"mc/lambada_openai_test": {`{"context": "c"}`}},
		`field "continuation" is missing`},
	"label outside": {"hellaswag", map[string][]string{
		"mc/hellaswag_val": {`{"activity_label": "A", "ctx_a": "a", "endings": ["a", "b"], "label": "2"}`}},
		`field "label" is missing or outside 0 to 1`},
	"no first half": {"hellaswag",
		map[string][]string{"mc/hellaswag_val": {`{"activity_label": "A", "endings": ["a", "b"], "label": 1}`}},
		`field "ctx_a" is missing`},
	"no endings": {"hellaswag",
		map[string][]string{"mc/hellaswag_val": {`{"activity_label": "A", "ctx_a": "a", "label": 1}`}},
		`field "endings" has 0 entries`},
	"no class": {"icl_trec_fine",
		map[string][]string{"icl/trec_train": {`{"text": "t", "label": "l", "label_fine": "f"}`,
			`{"text": "t", "label": "l"}`}, "icl/trec_test": {`{"text": "u", "label": "l"}`}},
		`icl/trec_train: row 2: field "label_fine" is missing`},
	"no questions": {"qasper",
		map[string][]string{"longqa/qasper_leval": {`{"document": "d", "questions": [], "answers": []}`}},
		`have 0 and 0 entries`},
	"no document": {"qasper", map[string][]string{
		"longqa/qasper_leval": {`{"questions": ["q"], "answers": ["a"]}`}}, `field "document" is missing`},
	"no summary": {"elife", map[string][]string{"longqa/elife_digest_summ": {`{"document": "d"}`}},
		`field "summary" is missing`},
	"gold outside": {"piqa",
		map[string][]string{"mc/piqa_val": {`{"query": "q", "choices": ["a", "b"], "gold": 2}`}},
		`field "gold" is missing or outside 0 to 1`},
	"gold missing": {"piqa", map[string][]string{"mc/piqa_val": {`{"query": "q", "choices": ["a", "b"]}`}},
		`field "gold" is missing`},
	"wrong type": {"piqa", map[string][]string{"mc/piqa_val": {`{"query": 3}`}},
		"line 1: field \"query\": want a string, found a number"},
	"no blank": {"winogrande",
		map[string][]string{"mc/winogrande_val": {`{"sentence": "s", "options": ["a", "b"], "gold": 0}`}},
		`has 0 blanks "_", want one`},
	"one class": {"icl_banking77",
		map[string][]string{"icl/banking77_train": {`{"text": "t", "label": "l"}`},
			"icl/banking77_test": {`{"text": "u", "label": "l"}`}}, "one class only"},
	"no label": {"icl_banking77", map[string][]string{"icl/banking77_train": {`{"text": "t"}`}},
		`field "label" is missing`},
	"no answer": {"svamp", map[string][]string{"math/svamp_test": {`{"question": "q"}`}},
		`field "answer" is missing`},
	"no contexts": {"hotpotqa",
		map[string][]string{"longqa/hotpotqa_dev_subset": {`{"question": "q", "answer": "a"}`}},
		`field "contexts" is missing`},
	"unequal lists": {"qasper",
		map[string][]string{"longqa/qasper_leval": {`{"document": "d", "questions": ["q"], "answers": []}`}},
		`have 1 and 0 entries`},
	"no held-out":     {"lm", nil, "has no lm/valid"},
	"text is missing": {"lm", map[string][]string{"lm/valid": {`{"txt": "t"}`}}, `no field "text"`},
}

// Missing files, wrong fields, empty sets and sets of one class are found before anything is asked.
func TestBadData(t *testing.T) {
	for name, c := range badData {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, rows := range c.rows {
				writeSet(t, dir, file, rows...)
			}
			var lm knower
			_, err := eval.Run(context.Background(), []eval.Target{modelOf("m", &lm, 512)},
				[]eval.Task{*lookup(t, c.task)}, eval.Options{Data: dir})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), c.task+": ") ||
				lm.calls > 0 {
				t.Errorf("%v after %d calls, want %q", err, lm.calls, c.want)
			}
		})
	}
}

func TestTooManyShots(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "mc/hellaswag_val", `{"query": "q", "choices": ["a", "b"], "gold": 1}`,
		`{"query": "r", "choices": ["a", "b"], "gold": 1}`)
	opt := eval.Options{Data: dir, Shots: 2}
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 99)})
	if _, err := opt.Prepare(context.Background(), lookup(t, "hellaswag")); err == nil ||
		!strings.Contains(err.Error(), "2 examples are asked for, the set has 2") {
		t.Errorf("%v", err)
	}
	good := `{"query": "q", "choices": ["a", "b"], "gold": 1}`
	for file, want := range map[string]string{"mc/piqa_val": "piqa_val.jsonl: line 2",
		"mc/piqa_train": "piqa_train.jsonl: line 2"} { // a bad file is named, whatever the other is
		writeSet(t, dir, "mc/piqa_val", good)
		writeSet(t, dir, "mc/piqa_train", good, good, good)
		writeSet(t, dir, file, good, "{")
		if _, err := opt.Prepare(t.Context(), lookup(t, "piqa")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestShotsExcludeTheQuestion(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	pool := []mcItem{{contexts: []string{"a"}, endings: []string{"1"}},
		{contexts: []string{"b"}, endings: []string{"2"}}, {contexts: []string{"c"}, endings: []string{"3"}}}
	for range 20 {
		if text := shotsText(g.Perm(len(pool)), pool, &pool[1], 2); strings.Contains(text, "b 2") ||
			!strings.HasSuffix(text, "\n\n") || strings.Count(text, "\n\n") != 2 {
			t.Fatalf("%q", text)
		}
	}
}

// HellaSwag in the form its authors published gives the harness's prompt: the second half of the context is
// capitalised, the rest of it in lower case as Python has it, and marks of WikiHow are taken out. Questions are scored
// by acc_norm first.
func TestHellaSwagOriginal(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "mc/hellaswag_val",
		`{"ind": 1, "activity_label": "Roof", "ctx_a": "A man is on a roof.", "ctx_b": "he", "endings": ["is using wrap.", "rips tiles off."], "label": "1"}`,
		`{"ind": 2, "activity_label": "Home", "ctx_a": "[header] How to knit [title] Buy wool.", "ctx_b": "the Shop", "endings": ["[substeps] Pay.", "Run  off."], "label": 0}`,
		`{"id": 3, "query": "Q", "choices": ["a", "b"], "gold": 1}`,
		`{"ind": 4, "activity_label": "Roof", "ctx_a": "A man is on a roof.", "endings": ["a", "b"], "label": 0}`)
	j := prepared(t, lookup(t, "hellaswag"), eval.Options{Data: dir}, 256)
	for i, want := range []eval.Continuation{
		{Context: "Roof: A man is on a roof. He", Text: " rips tiles off."},
		{Context: "Home: How to knit. Buy wool. The shop", Text: "  Pay."},
		{Context: "Q", Text: " b"},
		{Context: "Roof: A man is on a roof.", Text: " a"},
	} {
		if j.Gold[i] != want || j.IDs[i] != []string{"0 0", "1 1", "2 3", "3 3"}[i] {
			t.Errorf("%s: %q, want %q", j.IDs[i], j.Gold[i], want)
		}
	}
	if m := lookup(t, "hellaswag").Measures[0].Name; m != "acc_norm" {
		t.Errorf("the headline is %s", m)
	}
	writeSet(t, dir, "mc/hellaswag_val",
		`{"activity_label": "Roof", "ctx_a": "A.", "ctx_b": "he", "endings": ["a", "b"], "label": "x"}`)
	opt := eval.Options{Data: dir}
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 99)})
	if _, err := opt.Prepare(context.Background(), lookup(t, "hellaswag")); err == nil ||
		!strings.Contains(err.Error(), `line 1: field "label" is x`) {
		t.Errorf("%v", err)
	}
}

// The chance level is the mean of one over the number of choices of each question.
func TestMCChance(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "mc/arc_easy_test", `{"id": 1, "query": "q", "choices": ["a", "b"], "gold": 1}`,
		`{"id": 2, "query": "r", "choices": ["a", "b", "c", "d"], "gold": 1}`)
	j := prepared(t, lookup(t, "arc_easy"), eval.Options{Data: dir}, 256)
	if got := j.Floors["acc"]["chance"]; got != (0.5+0.25)/2 {
		t.Errorf("chance %g, want 0.375", got)
	}
}
