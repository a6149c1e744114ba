// Package eval judges models: one file per task, every number with its standard error.
//
// A task (task.go) prepares its questions, puts them to a language model and scores the answers. It asks for three things only (LM):
// the likelihood of a continuation, the likelihood of a whole text, and text up to a stop; what needs to see inside takes a Subject, our
// own model. Run (run.go) takes tasks and models through that, logs answers so that a stopped call goes on, and gives an Evaluation:
// results side by side with paired tests (paired.go), as a table, as JSON, under the evaluation harness's keys (harness.go), as a page.
//
// A Report is the same for a speedrun: report.go holds its data, compare.go says which side is better, table.go and html.go render it.
package eval

import (
	"context"
	"math"
)

// LM is a language model as tasks see it: strings in, numbers and strings out.
type LM interface {
	// Loglikelihood scores each continuation given its context.
	Loglikelihood(ctx context.Context, reqs []Continuation) ([]Score, error)
	// LoglikelihoodRolling scores whole texts, long ones in windows of the model's context.
	LoglikelihoodRolling(ctx context.Context, texts []string) ([]Score, error)
	// GenerateUntil continues each prompt greedily until a stop text or MaxTokens.
	GenerateUntil(ctx context.Context, reqs []Generation) ([]string, error)
}

// Continuation asks for log P(Text | Context).
type Continuation struct{ Context, Text string }

// Score is a log-likelihood in nats over a number of tokens; Greedy says that every token was the likeliest.
type Score struct {
	LogProb float64
	Tokens  int
	Greedy  bool
}

// Generation asks for text.
type Generation struct {
	Prompt    string
	Until     []string
	MaxTokens int
}

// Tokenwise is an LM that shows the loss of every token.
type Tokenwise interface {
	// Losses scores whole texts, long ones in windows of the model's context.
	Losses(ctx context.Context, texts []string) ([][]TokenLoss, error)
}

// TokenLoss is −log P of a token (nats) at a position of its window, counted from 1.
type TokenLoss struct {
	ID       int32
	Position int
	Loss     float64
}

// Mean is an average with its standard error over n samples.
type Mean struct {
	Value  float64 `json:"value"`
	StdErr float64 `json:"stderr"`
	N      int     `json:"n"`
}

// tally accumulates a Mean.
type tally struct {
	n          int
	sum, sumSq float64
}

func (t *tally) add(x float64) {
	t.n++
	t.sum += x
	t.sumSq += x * x
}

func (t *tally) mean() Mean {
	if t.n == 0 {
		return Mean{}
	}
	n := float64(t.n)
	m := Mean{Value: t.sum / n, N: t.n}
	if t.n > 1 {
		variance := max(0, (t.sumSq-t.sum*t.sum/n)/(n-1))
		m.StdErr = math.Sqrt(variance / n)
	}
	return m
}

// ratio accumulates Σx/Σt over samples.
type ratio struct {
	n                int
	x, t, xx, xt, tt float64
}

func (r *ratio) add(x, t float64) {
	r.n++
	r.x += x
	r.t += t
	r.xx += x * x
	r.xt += x * t
	r.tt += t * t
}

// mean is v = Σx/Σt; its error is that of the mean residual x − v·t, over the mean t (first order).
func (r *ratio) mean() Mean {
	if r.n == 0 || r.t == 0 {
		return Mean{N: r.n}
	}
	n, v := float64(r.n), r.x/r.t
	m := Mean{Value: v, N: r.n}
	if r.n > 1 {
		residual := max(0, r.xx-2*v*r.xt+v*v*r.tt)
		m.StdErr = math.Sqrt(residual/(n*(n-1))) / math.Abs(r.t/n)
	}
	return m
}
