package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
)

var errBroken = errors.New("the model is gone")

// breaks is an LM, or several that share calls, of which one call fails.
type breaks struct {
	guesser
	calls *int // until the one that fails
	fell  *bool
}

func (b breaks) fails() error {
	if *b.calls--; *b.calls == -1 {
		*b.fell = true
		return errBroken
	}
	return nil
}

func (b breaks) Loglikelihood(ctx context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	return b.guesser.Loglikelihood(ctx, reqs)
}

func (b breaks) LoglikelihoodRolling(ctx context.Context, texts []string) ([]eval.Score, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	return b.guesser.LoglikelihoodRolling(ctx, texts)
}

func (b breaks) GenerateUntil(ctx context.Context, reqs []eval.Generation) ([]string, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	return b.guesser.GenerateUntil(ctx, reqs)
}

func (b breaks) Choose(ctx context.Context, reqs []eval.Choice) ([]int, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	return b.guesser.Choose(ctx, reqs)
}

func (b breaks) Losses(ctx context.Context, texts []string) ([][]eval.TokenLoss, error) {
	if err := b.fails(); err != nil {
		return nil, err
	}
	out := make([][]eval.TokenLoss, len(texts))
	for i, text := range texts {
		for k := range len(text) {
			out[i] = append(out[i], eval.TokenLoss{ID: int32(text[k]), Position: k + 1, Loss: 1})
		}
	}
	return out, nil
}

// Whichever call of a model or a judge fails, the task fails with its error: no answer is made of what is missing.
func TestEveryFailedCall(t *testing.T) {
	for _, task := range All() {
		if task.Inside {
			continue
		}
		t.Run(task.Name, func(t *testing.T) {
			for n := 0; ; n++ {
				calls, fell := n, false
				lm := breaks{guesser{rand.New(rand.NewPCG(1, 2))}, &calls, &fell}
				opt := small(&task)
				opt.Limit, opt.Judge, opt.JudgeName = 3, lm, "judge"
				j := prepared(t, &task, opt, 2048)
				_, err := j.Ask(t.Context(), lm, []int{0, len(j.IDs) - 1})
				if fell != errors.Is(err, errBroken) {
					t.Errorf("call %d failed: %v; the answers' error: %v", n+1, fell, err)
				}
				if !fell {
					if n == 0 {
						t.Error("the model was not asked")
					}
					break
				}
			}
		})
	}
}

// Whenever the context ends, a task that looks into the model says so, and leaves the model as it was.
func TestEveryLookEnds(t *testing.T) {
	for _, task := range All() {
		if !task.Inside || task.Timed { // which takes its time
			continue
		}
		t.Run(task.Name, func(t *testing.T) {
			opt := small(&task)
			opt.Limit = 2
			if task.Name == "geometry" {
				opt.Set["geometry.tokens"] = "24"
			}
			s := subject(t, ref.New(), "diff", 512)
			opt.Measure([]eval.Target{modelOf("m", s, 512)})
			j, err := opt.Prepare(t.Context(), &task)
			if err != nil {
				t.Fatal(err)
			}
			for n := 1; ; n += 1 + n/2 {
				ctx := &ending{Context: t.Context(), end: n}
				_, err := j.Ask(ctx, s, []int{0})
				if s.Model.ByHost() {
					t.Errorf("ended at check %d: the model is left changed", n)
				}
				if ctx.asked < n {
					if n == 1 || err != nil {
						t.Errorf("%d checks, %v", ctx.asked, err)
					}
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended at check %d: %v", n, err)
				}
			}
		})
	}
}
