package experiment

import (
	"context"
	"path/filepath"
	"slices"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/tokenizer"
)

// rehearse draws the questions of all tasks and probes once before anything is trained, with the experiment's tokens:
// what is wrong with a text, a haystack or a length is found now and not after the first run.
func (l *lab) rehearse(ctx context.Context, runs []Run) error {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return l.done(&r) })
	tok, err := tokenizer.Load(filepath.Join(l.set, data.TokenizerName))
	if err != nil {
		return err
	}
	for _, t := range rooms(runs) {
		for _, list := range [][]Ask{l.spec.Tasks, l.spec.Probes} {
			if len(list) == 0 {
				continue
			}
			tasks, err := tasks(list, l.set, t.row)
			if err != nil {
				return err
			}
			like := eval.Target{LM: &eval.Subject{Tokenizer: tok}, Model: eval.Model{Context: t.context}}
			if err := eval.Rehearse(ctx, like, tasks, eval.Options{Seed: l.spec.EvalSeed, Shots: -1}); err != nil {
				return err
			}
		}
	}
	return nil
}
