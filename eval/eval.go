// Package eval judges models: it holds the language model as tasks see it, the evaluator, the store of results and the statistics.
//
// A [Task] (one file each in eval/task) prepares its questions, puts them to an [LM] and scores the answers; a task that looks
// inside the network takes a [Subject], one of our own models. [Run] takes tasks and models through that and appends every
// answer to a [Store], so a stopped call continues and results accumulate over days and processes. [Assemble] turns the cells
// of a store into an [Evaluation]: models side by side, with paired comparisons. eval/report renders it.
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
