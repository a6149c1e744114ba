package task

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// pen keeps what it is asked to write, and always writes the same text.
type pen struct {
	knower
	reqs []eval.Generation
	text string
}

func (w *pen) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	w.reqs = append(w.reqs, reqs...)
	return slices.Repeat([]string{w.text}, len(reqs)), nil
}

func (w *pen) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	return make([]int, len(reqs)), nil
}

// Where an answer ends, and how long it may be: a line for short answers, a paragraph for summaries, the next question
// for reasoning; as many tokens as the right answer has bytes, or the setting's number as far as the context has room.
func TestWhatIsGenerated(t *testing.T) {
	line := []string{"\n"}
	for _, c := range []struct {
		task, set string
		context   int
		until     []string
		most      func(g eval.Continuation) int
	}{
		{"hotpotqa", "", 2048, line, func(eval.Continuation) int { return 32 }},
		{"qasper", "", 2048, line, func(eval.Continuation) int { return 64 }},
		{"elife", "", 2048, []string{"\n\n"}, func(eval.Continuation) int { return 256 }},
		{"elife", "max_tokens=100", 2048, []string{"\n\n"}, func(eval.Continuation) int { return 100 }},
		{"elife", "", 400, []string{"\n\n"}, func(eval.Continuation) int { return 100 }}, // a quarter of the context
		{"gsm8k", "", 2048, []string{"\nQuestion:", "\n\nQuestion"}, func(eval.Continuation) int { return 256 }},
		{"gsm8k", "max_tokens=9", 2048, []string{"\nQuestion:", "\n\nQuestion"},
			func(eval.Continuation) int { return 9 }},
		// Half of the room.
		{"gsm8k", "", 300, []string{"\nQuestion:", "\n\nQuestion"}, func(eval.Continuation) int { return 150 }},
		{"needle", "", 400, line, func(g eval.Continuation) int { return len(g.Text) }},
		{"ruler_values", "", 400, line, func(g eval.Continuation) int { return len(g.Text) }},
		{"samples", "tokens=5", 400, nil, func(eval.Continuation) int { return 5 }},
		{"samples", "", 400, nil, func(eval.Continuation) int { return 48 }},
	} {
		opt := eval.Options{Seed: 1, Shots: -1, Limit: 2, Set: map[string]string{}}
		if key, value, ok := strings.Cut(c.set, "="); ok {
			opt.Set[c.task+"."+key] = value
		}
		j := prepared(t, lookup(t, c.task), opt, c.context)
		w := &pen{}
		if _, err := j.Ask(t.Context(), w, []int{1}); err != nil {
			t.Fatal(err)
		}
		var g eval.Continuation
		if len(j.Gold) > 1 {
			g = j.Gold[1]
		}
		if r := w.reqs[0]; len(w.reqs) != 1 || !slices.Equal(r.Until, c.until) || r.MaxTokens != c.most(g) ||
			g.Context != "" && r.Prompt != g.Context {
			t.Errorf("%s %s of %d tokens: %d tokens until %q, want %d until %q", c.task, c.set, c.context, r.MaxTokens,
				r.Until, c.most(g), c.until)
		}
	}
}

// By hand: scores of an output against the right answers and the source. Summaries have no exact match.
func TestGroundedScores(t *testing.T) {
	items := []groundedItem{{source: "never asked"},
		{source: "Anna went to the old mill.", task: " Where?", answer: "the mill", also: []string{"an old mill"}}}
	for _, summary := range []bool{false, true} {
		got, err := askGrounded(t.Context(), &pen{text: " Anna went to old mill.\n"}, nil, items, []int{1}, 9, summary)
		if err != nil {
			t.Fatal(err)
		}
		v := got[0].Values
		// ROUGE-L: "old mill" of 5 and 3 words; "anna went to" is a span of the source; F1 of "anna went to old mill"
		// with "old mill".
		want := map[string]float64{"rouge_l": 2 * 2. / 8, "grounded": 3. / 5, "f1": 2 * 2. / 7, "em": 0}
		if summary {
			delete(want, "f1")
			delete(want, "em")
		}
		for name, x := range want {
			if y, ok := v[name]; !ok || !near(x, y, 1e-12) {
				t.Errorf("%s is %g, want %g", name, y, x)
			}
		}
		if len(v) != len(want) || got[0].Doc["answer"] != "Anna went to old mill." ||
			got[0].Doc["wanted"] != "the mill" || got[0].Doc["prompt"] != "Anna went to the old mill. Where?" {
			t.Errorf("%v, %v", v, got[0].Doc)
		}
	}
}

// The judge sees every question with its own right answers and output; asked again, the prompt insists, more each time.
func TestJudgeSeesItsQuestion(t *testing.T) {
	items := []groundedItem{{task: " A?", answer: "a"}, {task: " B?", answer: "b", also: []string{"bb"}},
		{task: " C?", answer: "c"}}
	judge := &judgeStub{say: "hm"}
	out, err := askGrounded(t.Context(), &pen{text: " said "}, judge, items, []int{1, 2}, 9, false)
	if err != nil || len(judge.asked) != 6 {
		t.Fatalf("%d prompts, %v", len(judge.asked), err)
	}
	for i, want := range []string{judgePrompt("B?", "b\nor: bb", "said"), judgePrompt("C?", "c", "said")} {
		for try := range 3 {
			again := strings.TrimSuffix(want, "Reply:") + strings.Repeat("Say only yes or no. ", try) + "Reply:"
			if got := judge.asked[2*try+i]; got != again {
				t.Errorf("try %d: %q, want %q", try, got, again)
			}
		}
		if out[i].Doc["judge"] != "hm" {
			t.Errorf("%v", out[i].Doc)
		}
	}
}

// Where held-out text comes from, and what the result calls it.
func TestHeldOutSources(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "lm/valid", fmt.Sprintf(`{"text": %q}`, strings.Repeat("valid text here. ", 40)))
	writeSet(t, dir, "own", fmt.Sprintf(`{"text": %q}`, strings.Repeat("text of one's own. ", 40)))
	own := filepath.Join(dir, "own.jsonl")
	for _, c := range []struct{ data, text, source, begins string }{{"", "", eval.StandIn, ""},
		{dir, "", "lm/valid", "valid text"}, {dir, own, own, "text of one's own"},
		{"", own, own, "text of one's own"}} {
		j := prepared(t, lookup(t, "lm"),
			eval.Options{Data: c.data, Limit: 2, Set: map[string]string{"lm.text": c.text, "lm.length": "16"}}, 64)
		texts, source, err := heldOut(t.Context(), j.Plan, c.text, 16, 2)
		if err != nil || source != c.source || j.Config["source"] != c.source || len(texts) != 2 ||
			!strings.HasPrefix(texts[0], c.begins) || (len(j.Data()) > 0) != (c.source != eval.StandIn) {
			t.Errorf("%+v: %q of %s, %v; the job says %v of %d files", c, texts, source, err, j.Config["source"],
				len(j.Data()))
		}
	}
}

// A task that asks another one's questions takes a file's task before a built-in one of the same name.
func TestInnerTaskOfAFile(t *testing.T) {
	mine := *lookup(t, "boolq")
	mine.Name = "piqa"
	opt := eval.Options{Seed: 1, Shots: -1, Limit: 3, Set: map[string]string{"noise.task": "piqa"}}
	for _, tasks := range [][]eval.Task{nil, {mine}} {
		opt.Tasks = tasks
		j := prepared(t, lookup(t, "noise"), opt, 1024)
		if text := fmt.Sprint(j.Gold); strings.Contains(text, "is the magic code of") != (tasks != nil) {
			t.Errorf("%s", text)
		}
	}
}
