package eval_test

import (
	"context"
	"fmt"
	"strings"

	"antiphase/eval"
	"antiphase/eval/task"
)

// yes is a language model that finds "yes" likelier than anything else.
type yes struct{}

func (yes) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i, r := range reqs {
		out[i] = eval.Score{LogProb: -10, Tokens: 1}
		if strings.TrimSpace(r.Text) == "yes" {
			out[i].LogProb = -1
		}
	}
	return out, nil
}

func (yes) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	return make([]eval.Score, len(texts)), nil
}

func (yes) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	return make([]string, len(reqs)), nil
}

// Whatever has the three methods of an LM can be put to the tasks. About half of the stand-in's answers are yes.
func ExampleRun() {
	tasks, err := eval.Select(task.All(), []string{"boolq"})
	if err != nil {
		fmt.Println(err)
		return
	}
	target := eval.Target{Model: eval.Model{Name: "yes", Context: 1024}, LM: yes{}}
	ev, err := eval.Run(context.Background(), []eval.Target{target}, tasks, eval.Options{Seed: 1, Limit: 50, Shots: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, _ := ev.Models[0].Result("boolq")
	acc, _ := r.Metric("acc")
	fmt.Printf("%d questions, accuracy near one half: %v\n", r.N, acc.Value > 0.3 && acc.Value < 0.7)
	// Output: 50 questions, accuracy near one half: true
}
