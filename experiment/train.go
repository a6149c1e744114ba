package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/model"
	"antiphase/tensor"
	"antiphase/tokenizer"
	"antiphase/train"
)

// train trains a run to its last step and judges the model where it is, without reading it back from a checkpoint. A
// run whose loss is not finite is a result, not an error: note then says so.
func (l *lab) train(ctx context.Context, d device.Device, r *Run) (judged []Row, note string, err error) {
	rec := r.Recipe
	after := cmp.Or(l.SaveAfter, 30*time.Second)
	switch l.Keep {
	case KeepAll:
		rec.Train.KeepLast, after = rec.Train.Steps+1, 0
	case KeepLast, KeepNone:
		rec.Train.KeepLast = 1
	}
	if l.Keep != KeepAll && rec.Train.SaveEvery == saveEvery(rec.Train.Steps) {
		rec.Train.SaveEvery = 0 // none is kept: they only have to be recent enough to continue from
	}
	l.watch.begin(r.Name())
	l.mu.Lock()
	l.survey.by[r.Name()].begin(time.Now())
	l.mu.Unlock()
	steps := 0
	opt := train.Options{Dir: l.dir(r), Data: l.set, Built: true, Device: d, SaveAfter: after, Inexact: l.Inexact,
		ProbeEvery: l.every(r), Discard: l.Keep == KeepNone,
		Say: func(format string, args ...any) { l.Say(r.Name()+": "+format, args...) },
		Report: func(row train.Row) {
			steps++
			l.watch.step(r.Name(), &row)
			l.report(r, &row, "")
		},
		Finish: func(ctx context.Context, m *model.Model, tok *tokenizer.Tokenizer) (err error) {
			l.watch.trained(r.Name())
			if steps > 0 { // a GPU need not repeat the model to the bit that gave the answers in the store
				if err := os.RemoveAll(filepath.Join(l.dir(r), "eval")); err != nil {
					return err
				}
			}
			judged, err = l.judge(ctx, r, m, tok)
			return err
		}}
	if len(l.spec.Probes) > 0 {
		opt.Probe = l.probe(r)
	}
	_, err = train.Run(ctx, rec, opt)
	if errors.As(err, new(*tensor.NoMemory)) { // gradients and moments are freed now, and the failed call has saved
		judged, err = l.reread(ctx, d, r, err)
	}
	note, err = divergence(err)
	return judged, note, err
}

// reread judges a model from the checkpoint of its last step. If there is none, memory did not even suffice to train
// it, and the error is the one given.
func (l *lab) reread(ctx context.Context, d device.Device, r *Run, full error) ([]Row, error) {
	saved, err := train.Open(l.dir(r), func(s string) { l.Say("%s: %s", r.Name(), s) })
	if err != nil {
		return nil, full
	}
	defer saved.Close()
	if saved.State.Step < r.Recipe.Train.Steps {
		return nil, full
	}
	l.Say("%s: not enough memory to evaluate the model beside its training; it is read from its checkpoint", r.Name())
	m, err := saved.Model(d)
	if err != nil {
		return nil, err
	}
	defer m.Free()
	return l.judge(ctx, r, m, saved.Tokenizer)
}

// divergence is the note about a run that diverged; any other error is returned.
func divergence(err error) (note string, _ error) {
	if errors.Is(err, train.ErrNotFinite) || errors.Is(err, eval.ErrDiverged) {
		return err.Error(), nil
	}
	return "", err
}

// saveEvery is the number of steps between checkpoints that --keep all keeps.
func saveEvery(steps int) int { return max(steps/8, 1) }

// every is the number of steps between probes.
func (l *lab) every(r *Run) int {
	if l.spec.Every > 0 {
		return l.spec.Every
	}
	const probes = 24 // of a run
	return max(r.Recipe.Train.Steps/probes, 1)
}

// report forwards a step, or a task that a run is being asked.
func (l *lab) report(r *Run, row *train.Row, asked string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if c := l.survey.by[r.Name()]; row != nil {
		c.step(now, row)
	} else {
		c.judged(now)
	}
	o := l.survey.look(now, l.Say)
	l.Progress(Progress{Run: r.Name(), Row: row, Task: asked, Finished: l.finished, Runs: len(l.runs), Share: o.share,
		Left: o.left})
}

// probe runs the probes of a model in training. Answers go to a store, where each step is a separate model: a probe
// that ran before the process was killed is not repeated.
func (l *lab) probe(r *Run) train.Probe {
	return func(ctx context.Context, step int, m *model.Model, tok *tokenizer.Tokenizer) error {
		defer l.watch.probe(r.Name(), time.Now())
		tasks, err := tasks(l.spec.Probes, l.set, r.Recipe.Train.SeqLen)
		if err != nil {
			return err
		}
		t := l.target(r, m, tok)
		t.Name = stepName(step)
		t.Hash = fmt.Sprintf("%s step %d", r.Name(), step)
		_, err = eval.Run(ctx, []eval.Target{t}, tasks, l.evalOptions(r, "probe"))
		return err
	}
}

func stepName(step int) string { return fmt.Sprintf("step-%09d", step) }

// target is a model of a run in the evaluator's form.
func (l *lab) target(r *Run, m *model.Model, tok *tokenizer.Tokenizer) eval.Target {
	s := &eval.Subject{Name: r.Name(), Model: m, Tokenizer: tok, Batch: 32}
	return eval.Target{LM: s, Model: eval.Model{Name: r.Name(), Hash: r.Name(), Context: m.Config.Context,
		Precision: l.Precision, Device: l.Kind}}
}

// evalOptions are those of a store of a run.
func (l *lab) evalOptions(r *Run, store string) eval.Options {
	return eval.Options{Seed: l.spec.EvalSeed, Shots: -1, Output: filepath.Join(l.dir(r), store), Machine: l.Machine,
		Commit: l.Commit,
		Progress: func(p eval.Progress) {
			if store != "probe" {
				l.report(r, nil, fmt.Sprintf("%s %d/%d", p.Task, p.Done, p.Total))
			}
		}}
}

// judge runs the experiment's tasks with the trained model.
func (l *lab) judge(ctx context.Context, r *Run, m *model.Model, tok *tokenizer.Tokenizer) ([]Row, error) {
	tasks, err := tasks(l.spec.Tasks, l.set, r.Recipe.Train.SeqLen)
	if err != nil {
		return nil, err
	}
	defer l.watch.judged(r.Name(), time.Now())
	ev, err := eval.Run(ctx, []eval.Target{l.target(r, m, tok)}, tasks, l.evalOptions(r, "eval"))
	if err != nil {
		return nil, err
	}
	var out []Row
	for i := range ev.Models[0].Results {
		out = append(out, l.record(r).answers(&ev.Models[0].Results[i])...)
	}
	return out, nil
}
