package eval

import (
	"context"
	"strings"
	"testing"
)

// judgeStub says what it is told, and keeps what it was asked.
type judgeStub struct {
	knower
	say   string
	then  string // to all but the first, where it is not empty
	asked []string
}

func (j *judgeStub) GenerateUntil(_ context.Context, reqs []Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		j.asked = append(j.asked, r.Prompt)
		if out[i] = j.say; i > 0 && j.then != "" {
			out[i] = j.then
		}
	}
	return out, nil
}

// The judge sees output and right answer; its prompt is part of the result; what is neither yes nor no does not count.
func TestJudge(t *testing.T) {
	for say, want := range map[string]float64{" Yes.": 1, "no": 0} {
		judge := &judgeStub{say: say}
		j := prepared(t, lookup(t, "hotpotqa"), Options{Limit: 3, Judge: judge, JudgeName: "stub"}, 512)
		r := answer(t, j, knows(j.Job))
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
	mixed := &judgeStub{say: "yes", then: "perhaps"} // of three the first is clear
	j := prepared(t, lookup(t, "hotpotqa"), Options{Limit: 3, Judge: mixed, JudgeName: "stub"}, 512)
	r := answer(t, j, knows(j.Job))
	if m, ok := r.Metric("judge"); !ok || m.Value != 1 || m.N != 1 {
		t.Errorf("mixed: %+v", r.Metrics)
	}
	e := &Evaluation{Models: []Judged{{Name: "m", Results: []Result{*r}}}}
	if got := strings.Join(e.remarks(), "|"); !strings.Contains(got, "neither yes nor no to 2 of 3") {
		t.Errorf("remarks %q", got)
	}
	if got := e.judgeNote(); len(got) != 1 || !strings.Contains(got[0], "stub, was asked: “You check") {
		t.Errorf("note %q", got)
	}
	j = prepared(t, lookup(t, "hotpotqa"), Options{Limit: 1, Judge: &judgeStub{say: "perhaps"}}, 512)
	if _, err := j.Ask(context.Background(), knows(j.Job), []int{0}); err == nil || !strings.Contains(err.Error(), "want yes or no") {
		t.Errorf("%v", err)
	}
}

// Sources that are too long lose their middle; the question always stays.
func TestSourcesFit(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("word ", 2000)
	writeSet(t, dir, "longqa/elife_digest_summ", `{"id": 1, "document": "BEGIN `+long+` END", "summary": "s"}`)
	j := prepared(t, lookup(t, "elife"), Options{Data: dir}, 400)
	prompt := j.Gold[0].Context
	if n := j.plan.count(prompt) + j.Config["used_max_tokens"].(int); n > 400 || n < 300 {
		t.Errorf("%d tokens with the answer, the context is 400", n)
	}
	if !strings.HasPrefix(prompt, "BEGIN") || !strings.Contains(prompt, "END\n\nSummary of the article") || j.Config["sources_cut"] != 1 {
		t.Errorf("%q … %q, %v", prompt[:40], prompt[len(prompt)-80:], j.Config)
	}
}

// Questions of several papers come in turn, and a limit cuts them.
func TestPapers(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "longqa/qasper_leval", `{"id": 1, "document": "D1", "questions": ["a?", "b?"], "answers": ["A", "B\n"]}`,
		`{"id": 2, "document": "D2", "questions": ["c?"], "answers": ["C"]}`)
	j := prepared(t, lookup(t, "qasper"), Options{Data: dir}, 400)
	var got []string
	for _, g := range j.Gold {
		got = append(got, g.Text)
	}
	if strings.Join(got, "") != " A C B" || j.IDs[2] != "2 1.1" {
		t.Errorf("%v, %v", got, j.IDs)
	}
	if j := prepared(t, lookup(t, "qasper"), Options{Data: dir, Limit: 2}, 400); len(j.IDs) != 2 {
		t.Errorf("%v", j.IDs)
	}
}

// By hand: a question that stands twice in a paper is asked once, and either answer is right.
func TestTwoRightAnswers(t *testing.T) {
	dir := t.TempDir()
	writeSet(t, dir, "longqa/qasper_leval", `{"id": 1, "document": "D", "questions": ["a?", "b?", "a?"], "answers": ["red fox", "B", "blue"]}`)
	j := prepared(t, lookup(t, "qasper"), Options{Data: dir}, 400)
	if len(j.IDs) != 2 {
		t.Fatalf("%v", j.IDs)
	}
	for said, want := range map[string][2]float64{"The blue.": {1, 1}, "red fox": {1, 1}, "fox": {0, 2.0 / 3}, "green": {0, 0}} {
		got, err := j.Ask(context.Background(), &judgeStub{say: said}, []int{0})
		if err != nil || got[0].Values["em"] != want[0] || !near(got[0].Values["f1"], want[1], 1e-12) {
			t.Errorf("%q: %v, %v, want %v", said, got, err, want)
		}
	}
}
