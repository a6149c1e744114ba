package main

import (
	"context"
	"errors"
	"fmt"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/eval"
)

// overCheckpoints evaluates every kept checkpoint of the run folders, one at a time, so that only one model is in
// memory.
func (f *evalFlags) overCheckpoints(ctx context.Context, a *app, d device.Device, choose chosen) error {
	if f.opt.Output == "" {
		return usage(errors.New("--checkpoints: needs --output, where results are collected"))
	}
	named, err := f.named()
	if err != nil {
		return err
	}
	for _, m := range named {
		if err := f.overRun(ctx, a, d, choose, m.name, m.path); err != nil {
			return err
		}
	}
	if f.team.follows() {
		return nil
	}
	store, err := eval.ReadStores(f.opt.Output)
	if err != nil {
		return err
	}
	return f.present(a, eval.Assemble(store.Cells()))
}

// overRun evaluates the checkpoints of one run.
func (f *evalFlags) overRun(ctx context.Context, a *app, d device.Device, choose chosen, name, dir string) error {
	s, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return badInput{fmt.Errorf("--checkpoints: %s: %w", dir, err)}
	}
	steps, err := s.Steps()
	if err == nil && len(steps) == 0 {
		err = errors.New("it holds no checkpoint")
	}
	if err != nil {
		return badInput{fmt.Errorf("--checkpoints: %s: %w", dir, err)}
	}
	for _, step := range steps {
		c, err := s.At(step)
		if err != nil {
			return badInput{fmt.Errorf("--checkpoints: %s: step %d: %w", dir, step, err)}
		}
		t, err := f.target(a, d, fmt.Sprintf("%s@%d", name, step), c.Dir)
		if err != nil {
			return err
		}
		t.Run = name
		_, err = f.ask(ctx, a, []eval.Target{t}, choose)
		t.LM.(*eval.Subject).Model.Free()
		if err != nil {
			return err
		}
	}
	return nil
}
