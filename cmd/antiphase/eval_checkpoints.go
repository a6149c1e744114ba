package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/eval"
)

// evalCheckpoints evaluates every kept checkpoint of the run folders, one at a time, so that only one model is in
// memory.
func (a *app) evalCheckpoints(ctx context.Context, d device.Device, f *evalFlags, choose chosen) error {
	if f.opt.Output == "" {
		return usage(errors.New("--checkpoints: needs --output, where results are collected"))
	}
	for _, m := range f.models {
		name, path := modelName(m)
		group, paths, err := expand(name, path)
		if err != nil {
			return badInput{err}
		}
		for _, dir := range paths {
			if group != "" {
				name = group + "/" + filepath.Base(filepath.Clean(dir))
			}
			if err := a.evalRun(ctx, d, f, choose, name, dir); err != nil {
				return err
			}
		}
	}
	if f.team.follows() {
		return nil
	}
	store, err := eval.ReadStores(f.opt.Output)
	if err != nil {
		return err
	}
	return a.present(f, eval.Assemble(store.Cells()))
}

// evalRun evaluates the checkpoints of one run.
func (a *app) evalRun(ctx context.Context, d device.Device, f *evalFlags, choose chosen, name, dir string) error {
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
		t, err := a.target(d, fmt.Sprintf("%s@%d", name, step), c.Dir, f)
		if err != nil {
			return err
		}
		t.Run = name
		_, err = a.ask(ctx, f, []eval.Target{t}, choose)
		t.LM.(*eval.Subject).Model.Free()
		if err != nil {
			return err
		}
	}
	return nil
}
