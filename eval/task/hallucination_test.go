package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"antiphase/eval"
)

// judgeStub returns given answers, and records its prompts.
type judgeStub struct {
	knower
	say   string
	then  string // to all but the first, where it is not empty
	asked []string
}

func (j *judgeStub) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	if len(reqs) == 0 {
		return nil, errors.New("asked for nothing")
	}
	out := make([]string, len(reqs))
	for i, r := range reqs {
		j.asked = append(j.asked, r.Prompt)
		if out[i] = j.say; i > 0 && j.then != "" {
			out[i] = j.then
		}
	}
	return out, nil
}

// The judge sees output and right answer; its prompt is part of the result.
func TestJudge(t *testing.T) {
	for say, want := range map[string]float64{" Yes.": 1, "no": 0} {
		judge := &judgeStub{say: say}
		opt := eval.Options{Limit: 3, Judge: judge, JudgeName: "stub"}
		j := prepared(t, lookup(t, "hotpotqa"), opt, 512)
		r := answer(t, lookup(t, "hotpotqa"), opt, knows(j.Job), 512)
		if m, ok := r.Metric("judge"); !ok || m.Value != want || m.N != 3 {
			t.Errorf("%q: %+v", say, r.Metrics)
		}
		right := strings.TrimSpace(j.Gold[0].Text)
		if len(judge.asked) != 3 || strings.Count(judge.asked[0], "\n"+right+"\n") != 2 {
			t.Errorf("asked %q, the answer is %q", judge.asked, right)
		}
		if !strings.Contains(r.Config["judge_prompt"].(string), "yes or no") || r.Config["judge"] != "stub" {
			t.Errorf("config %v", r.Config)
		}
	}
}

// An unclear verdict is asked for again; if it stays unclear it is counted as such, and the evaluation ends, whether
// all or some are.
func TestUnclearJudge(t *testing.T) {
	for name, c := range map[string]struct {
		judge          *judgeStub
		judged, asked  int
		unclear, value float64
	}{
		// Each call's first is clear.
		"one of three is clear": {&judgeStub{say: "yes", then: "perhaps"}, 1 + 1 + 1, 3 + 2 + 1, 0, 1},
		"none is ever":          {&judgeStub{say: "perhaps"}, 0, 9, 1, 0},
	} {
		opt := eval.Options{Limit: 3, Judge: c.judge, JudgeName: "stub"}
		j := prepared(t, lookup(t, "hotpotqa"), opt, 512)
		r := answer(t, lookup(t, "hotpotqa"), opt, knows(j.Job), 512)
		m, ok := r.Metric("judge")
		u, _ := r.Metric("unclear")
		if ok != (c.judged > 0) || m.N != c.judged || m.Value != c.value || u.Value != c.unclear || u.N != 3 ||
			len(c.judge.asked) != c.asked {
			t.Errorf("%s: judge %+v, unclear %+v, asked %d times", name, m, u, len(c.judge.asked))
		}
	}
}

// Sources that are too long lose their middle; the question always stays.
func TestSourcesFit(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("word ", 2000)
	writeSet(t, dir, "longqa/elife_digest_summ", `{"id": 1, "document": "BEGIN `+long+` END", "summary": "s"}`)
	j := prepared(t, lookup(t, "elife"), eval.Options{Data: dir}, 400)
	prompt := j.Gold[0].Context
	if n := j.Plan.Count(prompt) + j.Config["used_max_tokens"].(int); n > 400 || n < 300 {
		t.Errorf("%d tokens with the answer, the context is 400", n)
	}
	if !strings.HasPrefix(prompt, "BEGIN") || !strings.Contains(prompt, "END\n\nSummary of the article") ||
		j.Config["sources_cut"] != 1 {
		t.Errorf("%q … %q, %v", prompt[:40], prompt[len(prompt)-80:], j.Config)
	}
}

// A text is left alone if it fits to the token; else its ends stay, whole characters, and nearly as much as fits.
// Without room little is left, but the cutting ends.
func TestFitMiddle(t *testing.T) {
	p := &eval.Plan{Count: func(s string) int { return len(s) }}
	for _, letter := range []string{"x", "é", "漢"} {
		for length := range 60 {
			text := strings.Repeat(letter, length)
			for tokens := -5; tokens < 200; tokens++ {
				got := fitMiddle(p, text, tokens)
				begin, end, cut := strings.Cut(got, " … ")
				switch {
				case len(text) <= tokens || len(text) < 8:
					if got != text {
						t.Errorf("%d bytes for %d: %q", len(text), tokens, got)
					}
				case !cut || !utf8.ValidString(got) || !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end):
					t.Errorf("%d bytes of %s for %d: %q", len(text), letter, tokens, got)
				case len(got) > max(tokens, 12) || len(got) < tokens*3/4-8 || len(begin)-len(end) > 4 ||
					len(end)-len(begin) > 4:
					t.Errorf("%d bytes of %s for %d: %d and %d stay", len(text), letter, tokens, len(begin), len(end))
				}
			}
		}
	}
	if got := fitMiddle(p, "BEGIN and then a long story until THE END", 24); !strings.HasPrefix(got, "BEGIN") ||
		!strings.HasSuffix(got, "THE END") {
		t.Errorf("%q", got)
	}
}

// Generated sets have forty questions or as many as are asked for, of the set's own kind; a context without room for an
// answer is refused.
func TestGroundedStandIns(t *testing.T) {
	for _, set := range groundedSets {
		for items, want := range map[int]int{1: 1, 39: 39, 40: 40, 100: 40} {
			j := prepared(t, lookup(t, set.name),
				eval.Options{Set: map[string]string{set.name + ".items": fmt.Sprint(items)}}, 1024)
			if len(j.IDs) != want || j.IDs[want-1] != fmt.Sprintf("%d %d", want-1, want-1) ||
				strings.HasSuffix(j.Gold[0].Context, "\nSummary:") != set.summary {
				t.Errorf("%s: %d of %d questions, %q", set.name, len(j.IDs), items, j.Gold[0].Context)
			}
		}
		for context, ok := range map[int]bool{3: false, 4: true} {
			opt := eval.Options{Limit: 1}
			opt.Measure([]eval.Target{modelOf("stub", &knower{}, context)})
			if _, err := opt.Prepare(t.Context(), lookup(t, set.name)); (err == nil) != ok {
				t.Errorf("%s in a context of %d: %v", set.name, context, err)
			}
		}
	}
}

// Questions of several papers come in turn, and a limit cuts them.
func TestPapers(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "longqa/qasper_leval",
		`{"id": 1, "document": "D1", "questions": ["a?", "b?"], "answers": ["A", "B\n"]}`,
		`{"id": 2, "document": "D2", "questions": ["c?"], "answers": ["C"]}`)
	j := prepared(t, lookup(t, "qasper"), eval.Options{Data: dir}, 400)
	var got []string
	for _, g := range j.Gold {
		got = append(got, g.Text)
	}
	if strings.Join(got, "") != " A C B" || j.IDs[2] != "2 1.1" {
		t.Errorf("%v, %v", got, j.IDs)
	}
	if j := prepared(t, lookup(t, "qasper"), eval.Options{Data: dir, Limit: 2}, 400); len(j.IDs) != 2 {
		t.Errorf("%v", j.IDs)
	}
}

// By hand: a question that stands twice in a paper is asked once, and either answer is right.
func TestTwoRightAnswers(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "longqa/qasper_leval",
		`{"id": 1, "document": "D", "questions": ["a?", "b?", "a?"], "answers": ["red fox", "B", "blue"]}`)
	j := prepared(t, lookup(t, "qasper"), eval.Options{Data: dir}, 400)
	if len(j.IDs) != 2 {
		t.Fatalf("%v", j.IDs)
	}
	for said, want := range map[string][2]float64{"The blue.": {1, 1}, "red fox": {1, 1}, "fox": {0, 2.0 / 3},
		"green": {0, 0}} {
		got, err := j.Ask(context.Background(), &judgeStub{say: said}, []int{0})
		if err != nil || got[0].Values["em"] != want[0] || !near(got[0].Values["f1"], want[1], 1e-12) {
			t.Errorf("%q: %v, %v, want %v", said, got, err, want)
		}
	}
}
