package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// headlines are the measures by which a task with right answers says how often a model was right.
var headlines = []string{"acc", "acc_norm", "f1", "em", "rouge_l"}

// small are options that make every task short.
func small() Options {
	return Options{Seed: 5, Limit: 40, Shots: -1, Set: map[string]string{"icl.items": "40", "icl_order.items": "10"}}
}

func prepared(t *testing.T, task *Task, opt Options, context int) job {
	t.Helper()
	opt.context, opt.count = context, func(s string) int { return (len(s) + 3) / 4 }
	j, err := opt.prepare(task)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func answer(t *testing.T, j job, lm LM) *Result {
	t.Helper()
	opt := *j.plan.Options
	r, err := opt.run(context.Background(), &Target{Name: "stub", LM: lm}, j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// On every task with right answers a model that always gives them scores 1, and one that guesses scores chance.
func TestRightAndGuessed(t *testing.T) {
	for _, task := range Tasks() {
		if task.Inside || task.Slow {
			continue
		}
		t.Run(task.Name, func(t *testing.T) {
			j := prepared(t, &task, small(), 2048)
			if len(j.Gold) == 0 {
				t.Skip("nothing here is right or wrong")
			}
			if len(j.Gold) != len(j.IDs) {
				t.Fatalf("%d right answers for %d questions", len(j.Gold), len(j.IDs))
			}
			right := answer(t, j, knows(j.Job))
			guessed := answer(t, j, guesser{rand.New(rand.NewPCG(1, 2))})
			checked := 0
			for _, name := range headlines {
				m, ok := right.Metric(name)
				if !ok {
					continue
				}
				checked++
				if !near(m.Value, 1, 1e-12) {
					t.Errorf("%s of right answers is %g", name, m.Value)
				}
				g, _ := guessed.Metric(name)
				if d := math.Abs(g.Value - j.Chance); d > 4*math.Max(g.StdErr, math.Sqrt(j.Chance*(1-j.Chance)/float64(g.N))) {
					t.Errorf("%s of guesses is %g ± %g, chance is %g", name, g.Value, g.StdErr, j.Chance)
				}
			}
			if checked == 0 {
				t.Errorf("none of %v among %+v", headlines, right.Metrics)
			}
		})
	}
}

// The same options draw the same questions, and another seed others.
func TestSeeds(t *testing.T) {
	for _, task := range Tasks() {
		if task.Inside || task.Slow {
			continue
		}
		opt := small()
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
