package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
)

// noAnswers are the tasks in which nothing is right or wrong. All others are held to right answers, to chance and to
// copying: a new task cannot escape.
var noAnswers = map[string]bool{"lm": true, "samples": true, "maps": true, "throughput": true}

// beside are measures that right answers need not raise to 1.
var beside = map[string]bool{"grounded": true}

// small are options that make a task short.
func small(task *eval.Task) eval.Options {
	opt := eval.Options{Seed: 5, Limit: 200, Shots: -1}
	opt.Set = map[string]string{}
	if task.Group == "icl" || task.Group == "icl_order" {
		opt.Set[task.Group+".items"] = "20"
	}
	if slices.ContainsFunc(task.Settings, func(s eval.Setting) bool { return s.Key == "lengths" }) && !task.Inside {
		opt.Set[task.Name+".lengths"] = "400"
	}
	if task.Name == "noise" {
		opt.Set["noise.with"] = "lengths=400"
	}
	return opt
}

// On every task a model that always gives the right answers scores 1, and one that guesses scores chance.
func TestRightAndGuessed(t *testing.T) {
	for _, task := range All() {
		if task.Inside || noAnswers[task.Name] {
			continue
		}
		t.Run(task.Name, func(t *testing.T) {
			j := prepared(t, &task, small(&task), 2048)
			if len(j.Gold) != len(j.IDs) {
				t.Fatalf("%d right answers for %d questions; a task without right answers belongs into noAnswers",
					len(j.Gold), len(j.IDs))
			}
			stub := knows(j.Job)
			stub.noisy = task.Name == "noise"
			right := answer(t, &task, small(&task), stub, 2048)
			guessed := answer(t, &task, small(&task), guesser{rand.New(rand.NewPCG(1, 2))}, 2048)
			checked := 0
			for _, measure := range task.Measures {
				m, ok := right.Metric(measure.Name)
				if !ok || measure.Better != eval.Higher || beside[m.Name] {
					continue
				}
				checked++
				if !near(m.Value, 1, 1e-9) {
					t.Errorf("%s of right answers is %g", m.Name, m.Value)
				}
				g, _ := guessed.Metric(m.Name)
				chance := j.Floors[m.Name]["chance"]
				if g.Value == 0 && writes(&task, m.Name) { // the stub writes nothing, which earns nothing
					chance = 0
				}
				if d := math.Abs(g.Value - chance); d > 4*math.Max(g.StdErr,
					math.Sqrt(chance*(1-chance)/float64(g.N))) {
					t.Errorf("%s of guesses is %g ± %g, chance is %g", m.Name, g.Value, g.StdErr, chance)
				}
			}
			if checked == 0 {
				t.Errorf("nothing that right answers would raise among %+v", right.Metrics)
			}
		})
	}
}

// writes reports whether a measure is of generated text, not of a choice.
func writes(task *eval.Task, measure string) bool {
	return measure != "constrained" && task.Group != "icl" && task.Group != "icl_order"
}

// A model that names every hidden number scores the copy floor and no more, wherever there is one; only free credits it
// with all.
func TestCopied(t *testing.T) {
	found := 0
	for _, task := range All() {
		if task.Inside || noAnswers[task.Name] {
			continue
		}
		opt := small(&task)
		j := prepared(t, &task, opt, 2048)
		if !slices.ContainsFunc(slices.Collect(maps.Values(j.Floors)),
			func(f map[string]float64) bool { return f["copy"] > 0 }) {
			continue
		}
		for _, words := range []bool{false, true} {
			found += copiedFloors(t, &task, j, answer(t, &task, opt, copier{rand.New(rand.NewPCG(5, 6)), words}, 2048))
		}
	}
	if found < 3 {
		t.Errorf("%d measures have the floor copy", found)
	}
}

// copiedFloors checks a copier's scores against the floors, and counts them.
func copiedFloors(t *testing.T, task *eval.Task, j *eval.Prepared, copied *eval.Result) (found int) {
	for measure, floors := range j.Floors {
		floor, ok := floors["copy"]
		if !ok {
			continue
		}
		found++
		m, _ := copied.Metric(measure)
		most := floor + 4*math.Max(m.StdErr, math.Sqrt(floor*(1-floor)/float64(m.N)))
		if measure == "free" {
			most = 1
		}
		if m.Value > most {
			t.Errorf("%s: %s of a model that copies everything is %g ± %g, the floor %g", task.Name, measure, m.Value,
				m.StdErr, floor)
		}
	}
	return found
}

// The same options draw the same questions, and another seed others.
func TestSeeds(t *testing.T) {
	for _, task := range All() {
		if task.Inside || task.Slow {
			continue
		}
		opt := small(&task)
		a, b := prepared(t, &task, opt, 1024), prepared(t, &task, opt, 1024)
		opt.Seed++
		c := prepared(t, &task, opt, 1024)
		if len(a.Gold) == 0 {
			continue
		}
		same := 0
		for i := range a.Gold {
			if a.Gold[i] != b.Gold[i] {
				t.Fatalf("%s: question %d differs between two draws", task.Name, i)
			}
			if i < len(c.Gold) && a.Gold[i] == c.Gold[i] {
				same++
			}
		}
		if same == len(a.Gold) {
			t.Errorf("%s: another seed draws the same questions", task.Name)
		}
	}
}

// Every task is complete, and found by its name or its group.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range All() {
		if seen[x.Name] || x.Version < 1 || x.Doc == "" || len(x.Measures) == 0 || x.Prepare == nil {
			t.Errorf("task %q is there twice or incomplete", x.Name)
		}
		for _, m := range x.Measures {
			if m.Label == "" {
				t.Errorf("%s: the measure %s has no label", x.Name, m.Name)
			}
		}
		seen[x.Name] = true
	}
	got, err := eval.Select(All(), []string{"piqa", "mc", "lm"})
	if err != nil || len(got) != len(mcSets)+1 || got[0].Name != "piqa" || got[len(got)-1].Name != "lm" {
		t.Errorf("%d tasks, %v", len(got), err)
	}
	if _, err := eval.Select(All(), []string{"pica"}); err == nil ||
		!strings.Contains(err.Error(), `"pica" is unknown; there are lm, mc`) {
		t.Errorf("%v", err)
	}
}

// ending counts how often it is asked whether it has ended, and has ended at one of them.
type ending struct {
	context.Context
	asked, end int
}

func (c *ending) Err() error {
	if c.asked++; c.end > 0 && c.asked >= c.end {
		return context.Canceled
	}
	return nil
}

// Drawing questions can take long, and it can be stopped: every task asks for the context's end at least once for each
// of its questions or texts, and heeds every answer.
func TestPrepareStops(t *testing.T) {
	for _, task := range All() {
		opt := small(&task)
		opt.Limit = 20
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, 1024)})
		ctx := &ending{Context: t.Context()}
		j, err := opt.Prepare(ctx, &task)
		if err != nil {
			t.Fatalf("%s: %v", task.Name, err)
		}
		if texts := strings.Contains(fmt.Sprint(j.Config), "text_hash") && task.Name != "maps" &&
			task.Name != "samples"; ctx.asked < 1+len(j.Gold) || texts && ctx.asked < 3 {
			t.Errorf("%s: %d questions, the context was asked %d times", task.Name, len(j.IDs), ctx.asked)
		}
		for end := 1; end <= ctx.asked; end += 1 + ctx.asked/5 {
			if _, err := opt.Prepare(&ending{Context: t.Context(), end: end}, &task); !errors.Is(err,
				context.Canceled) {
				t.Errorf("%s: stopped at question %d of %d: %v", task.Name, end, ctx.asked, err)
			}
		}
	}
}

// A number out of range in any setting of any task is the caller's mistake: no panic, not the error of a bad file, and
// nothing below zero is taken for something else.
func TestSettingsOutOfRange(t *testing.T) {
	refused := 0
	for _, task := range All() {
		for _, s := range task.Settings {
			switch s.Default.(type) {
			case string, []string, bool:
				continue
			}
			for _, value := range []string{"-1", "0", "99999"} {
				opt := small(&task)
				opt.Limit = 2
				opt.Set[task.Name+"."+s.Key] = value
				opt.Measure([]eval.Target{modelOf("stub", &knower{}, 512)})
				_, err := opt.Prepare(context.Background(), &task)
				var in *eval.InputError
				if err != nil && !(errors.As(err, &in) && in.Usage) {
					t.Errorf("%s.%s=%s: %v is not an error of the setting", task.Name, s.Key, value, err)
				}
				if err != nil {
					refused++
				} else if value == "-1" {
					t.Errorf("%s.%s=-1 is accepted", task.Name, s.Key)
				}
			}
		}
	}
	if refused < 60 {
		t.Errorf("%d values are refused", refused)
	}
}

// Without data every task is marked as a stand-in, except tasks that show no score of a set.
func TestGeneratedIsMarked(t *testing.T) {
	// The last stands in for no set.
	others := map[string]any{"maps": nil, "samples": nil, "throughput": nil, "ruler_common": "generated"}
	for _, task := range All() {
		opt := small(&task)
		opt.Limit = 4
		want, other := others[task.Name]
		if !other {
			want = eval.StandIn
		}
		if source := prepared(t, &task, opt, 2048).Config["source"]; source != want {
			t.Errorf("%s: the source of generated questions is %v, want %v", task.Name, source, want)
		}
	}
}

// Tasks without written questions tell their texts apart too: other text, other wrong answers or other examples is
// another question.
func TestQuestionsKnowTheTexts(t *testing.T) {
	dir := t.TempDir()
	question := func(name string, opt eval.Options) string {
		s := subject(t, ref.New(), "diff", 512)
		tasks := run(t, *lookup(t, name), opt, modelOf("m", s, 512))
		return tasks["m"].Question
	}
	for _, name := range []string{"lm", "outliers", "geometry", "attention"} {
		set := map[string]string{}
		switch name {
		case "geometry":
			set["geometry.length"] = "8"
		case "outliers":
			set["outliers.length"], set["outliers.tokens"] = "8", "8"
		}
		keys := map[string]bool{}
		for _, word := range []string{"one", "two"} {
			writeSet(t, dir, "lm/valid", `{"text": "`+strings.Repeat("This is sentence "+word+" of many. ", 300)+`"}`)
			keys[question(name, eval.Options{Data: dir, Limit: 1, Set: set})] = true
		}
		if len(keys) != 2 {
			t.Errorf("%s: the same question for other text", name)
		}
	}
	for name, set := range map[string]map[string]string{"piqa": nil,
		"noise":  {"noise.task": "piqa", "noise.kinds": "drop", "noise.words": "0.5"},
		"lowbit": {"lowbit.task": "piqa", "lowbit.texts": "0"}} {
		keys := map[string]bool{}
		for _, wrong := range []string{"b", "c"} {
			writeSet(t, dir, "mc/piqa_val", `{"id": 1, "query": "q", "choices": ["a", "`+wrong+`"], "gold": 0}`)
			keys[question(name, eval.Options{Data: dir, Set: set})] = true
		}
		if len(keys) != 2 {
			t.Errorf("%s: the same question for another wrong answer", name)
		}
	}
}

// A model whose numbers are not finite is named as such, before they spoil a mean or a file.
func TestDiverged(t *testing.T) {
	_, err := eval.Run(context.Background(), []eval.Target{modelOf("m", &diverged{}, 256)},
		[]eval.Task{*lookup(t, "lambada_openai")}, eval.Options{Limit: 2, Shots: -1})
	if err == nil || !strings.Contains(err.Error(), "nll is NaN: the model has diverged") {
		t.Errorf("%v", err)
	}
}

type diverged struct{ knower }

func (*diverged) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i := range out {
		out[i].LogProb = math.NaN()
	}
	return out, nil
}

// What is kept of a sample on request: the question, what was wanted and what the model said. A model that is always
// right has said what was wanted.
func TestSamplesAreLogged(t *testing.T) {
	for _, task := range All() {
		if task.Inside || task.Name == "noise" || task.Slow { // noise asks each question many times over
			continue
		}
		opt := small(&task)
		opt.Limit, opt.LogSamples = 3, true
		j := prepared(t, &task, opt, 2048)
		if len(j.Gold) == 0 {
			continue
		}
		r := answer(t, &task, opt, knows(j.Job), 2048)
		for i, a := range r.Answers {
			text := fmt.Sprint(a.Doc)
			right := strings.TrimPrefix(strings.Trim(strings.TrimSpace(j.Gold[i].Text), "."), "#### ")
			if len(a.Doc) < 2 || !strings.Contains(text, right) {
				t.Errorf("%s: sample %s of %q logs %.300s", task.Name, a.ID, right, text)
				break
			}
			if said, ok := a.Doc["answer"].(string); ok && !strings.Contains(said, right) {
				t.Errorf("%s: said %q, right is %q", task.Name, said, right)
			}
			if asked, ok := a.Doc["prompt"].(string); ok && asked != j.Gold[i].Context {
				t.Errorf("%s: logs the prompt %q, asked was %q", task.Name, asked, j.Gold[i].Context)
			}
		}
		opt.LogSamples = false
		if plain := answer(t, &task, opt, knows(j.Job), 2048); len(plain.Answers[0].Doc) > 0 {
			t.Errorf("%s logs without being asked", task.Name)
		}
	}
}
