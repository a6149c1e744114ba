// Package recipe describes complete runs as values.
//
// A recipe function (Tiny, Small, …) returns a whole run: model, tokenizer, data, training, optimiser. Set changes one
// field by its dotted path; Read and JSON convert from and to files. The resolved run is written into its folder, where
// it is a recipe again. Pair returns two runs whose models have the same number of parameters to within 1 %, with the
// same data and seed, for a fair comparison.
package recipe

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
)

// Recipe is one complete run.
type Recipe struct {
	Name      string       `json:"name" doc:"what to call the run"`
	Model     model.Config `json:"model"`
	Tokenizer Tokenizer    `json:"tokenizer"`
	Data      Data         `json:"data"`
	Train     Train        `json:"train"`
	Optim     optim.Config `json:"optim"`
}

// Tokenizer selects the tokenizer.
type Tokenizer struct {
	Path    string `json:"path" doc:"a tokenizer.json to use; empty trains one on the data, \"bytes\" is the plain byte tokenizer"`
	Vocab   int    `json:"vocab" doc:"size of the tokenizer to train"`
	Docs    int    `json:"docs" doc:"documents to train it on; 0 takes all"`
	Pattern string `json:"pattern" doc:"how text is split before merging: llama3 (default), gpt2 or qwen2"`
}

// Data selects the text.
type Data struct {
	Sources   []Source `json:"sources" doc:"files, folders, globs, synthetic[:options], goroot, or one built token set; PATH@WEIGHT or {path, weight, epochs} draws rows in proportion to weights, at most that many passes over each"`
	HeldOut   float64  `json:"held_out" doc:"share of the text kept for validation, never trained on"`
	HeldOutBy string   `json:"held_out_by" doc:"what is held out: pieces of about 1,024 tokens spread over every source, or whole documents (a text file is cut into documents of 64 KiB)"`
	MaxTokens int64    `json:"max_tokens" doc:"stop building after this many tokens; 0 takes all"`
	Isolate   bool     `json:"isolate" doc:"packed documents do not attend to each other"`
	Order     string   `json:"order" doc:"random: a batch is a random sample of all rows; stream: documents shuffled, rows one after the other"`
}

// Train sets length, batch sizes, evaluation and checkpoints.
type Train struct {
	From        string          `json:"from,omitempty" doc:"model whose weights to begin with, and not random ones"`
	Seed        uint64          `json:"seed" doc:"decides weights and data order"`
	Steps       int             `json:"steps" doc:"optimiser steps; 0 writes the initial checkpoint and stops"`
	Batch       int             `json:"batch" doc:"sequences per step"`
	MicroBatch  int             `json:"micro_batch" doc:"sequences at a time; gradients add up; must divide batch"`
	Recompute   layer.Recompute `json:"recompute" doc:"activations dropped and computed again in the backward pass, same bits: off, attention or blocks"`
	SeqLen      int             `json:"seq_len" doc:"tokens per sequence; at most model.context"`
	LogEvery    int             `json:"log_every" doc:"steps between printed lines; every step goes to metrics.jsonl"`
	EvalEvery   int             `json:"eval_every" doc:"steps between held-out losses; 0 only at the end"`
	EvalBatches int             `json:"eval_batches" doc:"micro-batches per held-out loss"`
	SaveEvery   int             `json:"save_every" doc:"steps between checkpoints; 0 only at the end"`
	KeepLast    int             `json:"keep_last" doc:"checkpoints to keep"`
	StrictSave  bool            `json:"strict_save" doc:"stop when a checkpoint cannot be written instead of trying again later"`
}

// Patterns lists the values of tokenizer.pattern.
var Patterns = []string{"llama3", "gpt2", "qwen2"}

// Orders lists the values of data.order.
var Orders = []string{"random", "stream"}

// HeldOutWays lists the values of data.held_out_by.
var HeldOutWays = []string{"pieces", "documents"}

// Complete fills defaults and checks all fields; the error names the first wrong field by its path.
func (r Recipe) Complete() (Recipe, error) {
	if r.Tokenizer.Path == "bytes" {
		r.Tokenizer.Vocab = 0
	}
	if r.Tokenizer.Pattern == "" {
		r.Tokenizer.Pattern = Patterns[0]
	}
	if r.Data.Order == "" {
		r.Data.Order = Orders[0]
	}
	if r.Data.HeldOutBy == "" {
		r.Data.HeldOutBy = HeldOutWays[0]
	}
	if r.Train.MicroBatch == 0 {
		r.Train.MicroBatch = r.Train.Batch
	}
	if r.Train.Recompute == "" {
		r.Train.Recompute = layer.RecomputeOff
	}
	var err error
	if r.Model, err = r.Model.Complete(); err != nil {
		return r, fmt.Errorf("model.%w", err)
	}
	if err := r.Optim.Check(); err != nil {
		return r, fmt.Errorf("optim.%w", err)
	}
	return r, r.check()
}

// Limits that keep products of settings within their types; both are far above any real run.
const (
	maxTokens = 1 << 31
	maxSteps  = 1 << 31
)

// plainName reports whether a name is safe as the name of the run's folder.
func plainName(s string) bool {
	return len(s) <= 200 && s != "." && filepath.IsLocal(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '/' || r == '\\' || r == ':' || unicode.IsControl(r)
	})
}

func (r *Recipe) check() error {
	t := r.Train
	if !plainName(r.Name) {
		return fmt.Errorf("name: %q cannot be the name of a folder; want letters, digits, dots, dashes and the like",
			r.Name)
	}
	for _, f := range []struct {
		name    string
		v, from int
	}{
		{"steps", t.Steps, 0}, {"batch", t.Batch, 1}, {"micro_batch", t.MicroBatch, 1}, {"seq_len", t.SeqLen, 1},
		{"log_every", t.LogEvery, 1}, {"eval_every", t.EvalEvery, 0}, {"eval_batches", t.EvalBatches, 0},
		{"save_every", t.SaveEvery, 0}, {"keep_last", t.KeepLast, 1},
	} {
		if f.v < f.from {
			return fmt.Errorf("train.%s: is %d, must be at least %d", f.name, f.v, f.from)
		}
	}
	if err := r.Data.checkSources(); err != nil {
		return err
	}
	switch {
	case t.Batch > maxTokens/t.SeqLen:
		return fmt.Errorf("train.batch: is %d, times train.seq_len = %d is more than %d tokens per step", t.Batch,
			t.SeqLen, maxTokens)
	case t.Steps > maxSteps:
		return fmt.Errorf("train.steps: is %d, must be at most %d", t.Steps, maxSteps)
	case t.Batch%t.MicroBatch != 0:
		return fmt.Errorf("train.micro_batch: %d does not divide train.batch = %d", t.MicroBatch, t.Batch)
	case !slices.Contains(layer.Recomputes, t.Recompute):
		return fmt.Errorf("train.recompute: is %q, must be one of %q", t.Recompute, layer.Recomputes)
	case t.SeqLen > r.Model.Context:
		return fmt.Errorf("train.seq_len: is %d, model.context is %d", t.SeqLen, r.Model.Context)
	case !(r.Data.HeldOut >= 0 && r.Data.HeldOut < 1): // NaN too
		return fmt.Errorf("data.held_out: is %g, must be in [0, 1)", r.Data.HeldOut)
	case r.Data.MaxTokens < 0:
		return fmt.Errorf("data.max_tokens: is %d, must be at least 0; 0 takes all", r.Data.MaxTokens)
	case r.Tokenizer.Docs < 0:
		return fmt.Errorf("tokenizer.docs: is %d, must be at least 0; 0 takes all", r.Tokenizer.Docs)
	case !slices.Contains(Orders, r.Data.Order):
		return fmt.Errorf("data.order: is %q, must be one of %q", r.Data.Order, Orders)
	case !slices.Contains(HeldOutWays, r.Data.HeldOutBy):
		return fmt.Errorf("data.held_out_by: is %q, must be one of %q", r.Data.HeldOutBy, HeldOutWays)
	case r.Tokenizer.Path == "" && r.Tokenizer.Vocab > r.Model.Vocab:
		return fmt.Errorf("tokenizer.vocab: is %d, model.vocab only %d", r.Tokenizer.Vocab, r.Model.Vocab)
	case !slices.Contains(Patterns, r.Tokenizer.Pattern):
		return fmt.Errorf("tokenizer.pattern: is %q, must be one of %q", r.Tokenizer.Pattern, Patterns)
	case r.Tokenizer.Path == "" && r.Tokenizer.Vocab < 257:
		return fmt.Errorf("tokenizer.vocab: is %d, must be at least 257 (256 bytes and the end-of-text token)",
			r.Tokenizer.Vocab)
	}
	return nil
}
