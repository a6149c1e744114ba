// Package eval evaluates models: it defines the language model as tasks see it, the evaluator, the result store and the
// statistics.
//
// A [Task] (one file each in eval/task) prepares its questions, asks an [LM] and scores the answers; a task that
// inspects the network takes a [Subject], one of our own models. [Run] runs tasks on models and appends every answer to
// a [Store], so an interrupted call continues and results accumulate over days and processes. [Assemble] turns the
// cells of a store into an [Evaluation]: models side by side, with paired comparisons. eval/report renders it.
package eval

import "context"

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

// Score is a log-likelihood in nats over a number of tokens; Greedy reports that every token was the most likely one.
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
