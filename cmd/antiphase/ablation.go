package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/eval/task"
	"antiphase/experiment"
	"antiphase/layer"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

type ablationFlags struct {
	size, arch, dir string
	data, set       []string
	steps           int
	seed            uint64
	inexact, json   bool
}

func ablationVerb(a *app) *cobra.Command {
	var f ablationFlags
	c := &cobra.Command{
		Use:   "ablation",
		Short: "Train and tabulate the published ablations of DIFF or DIFF V2 at any size",
		Long: `Ablation trains models on the same data with the same seed. For diff these are the paper's seven: the baseline,
the baseline with heads of twice the width and with a norm over each head; the differential model, without that
norm, and with a constant λ_init of 0.8 and of 0.5. For diff2 (DIFF V2) there are six: the baseline, the baseline
with 1.5 times the heads; V2, without λ, with λ without its sigmoid, and with pairs across groups. It prints the
held-out loss, overall and separately for recallable tokens (AR-Hit) and others, next to the paper's Table 6, and
how stable training was: spikes of loss and gradient norm. Ctrl-C saves; the same command continues.`,
		Example: `  antiphase ablation --size tiny --steps 500
  antiphase ablation --arch diff2 --size tiny --steps 500 --set optim.lr=6e-3
  antiphase ablation --size 160m --data 'books/*.jsonl.zst' --dir runs/ablation-160m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	fl := c.Flags()
	fl.StringVar(&f.size, "size", "tiny", "size of the models, see \"antiphase recipes\"")
	fl.StringVar(&f.arch, "arch", "diff", "architecture to ablate: diff or diff2")
	fl.StringVarP(&f.dir, "dir", "d", "", "folder to work in (default runs/ablation-ARCH)")
	fl.StringArrayVar(&f.data, "data", nil, "data source: a file, a folder, a glob, synthetic or goroot (repeatable)")
	fl.StringArrayVar(&f.set, "set", nil, "change a field of every recipe: --set train.batch=16 (repeatable)")
	fl.IntVar(&f.steps, "steps", 0, "optimiser steps per model; 0 keeps the recipe's")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed of weights and data order")
	inexactFlag(fl, &f.inexact)
	fl.BoolVar(&f.json, "json", false, "print the results as JSON instead of the table")
	return c
}

func (f *ablationFlags) run(ctx context.Context, a *app) error {
	rows, err := eval.Ablations(f.arch)
	if err != nil {
		return usage(fmt.Errorf("--arch: %w", err))
	}
	if f.steps < 0 {
		return usage(fmt.Errorf("--steps: is %d, must not be negative; 0 keeps the recipe's", f.steps))
	}
	if f.dir == "" {
		f.dir = filepath.Join("runs", "ablation-"+f.arch)
	}
	if err := noExperiment(f.dir); err != nil {
		return err
	}
	recipes := make([]recipe.Recipe, len(rows))
	for i, row := range rows {
		r, err := f.recipe(row)
		if err != nil {
			return usage(fmt.Errorf("%s: %w", row.Name, err))
		}
		recipes[i] = r
	}
	d, err := a.openTraining()
	if err != nil {
		return err
	}
	defer d.Close()
	t := recipes[0].Train
	out := &report.Ablation{Arch: f.arch, Size: f.size, Steps: t.Steps,
		Tokens: int64(t.Steps) * int64(t.Batch*t.SeqLen)}
	for i, row := range rows {
		if !a.quiet {
			fmt.Fprintln(a.err, "\n"+a.paint(bold, fmt.Sprintf("%s: %s (%d of %d)", row.Name, row.Doc, i+1, len(rows))))
		}
		opt := train.Options{Dir: filepath.Join(f.dir, row.Name), Data: filepath.Join(f.dir, "data"),
			Tokenizer: filepath.Join(f.dir, "tokenizer.json"), Inexact: f.inexact, Judged: true}
		if _, err := runTraining(ctx, a, d, recipes[i], opt); err != nil {
			return err
		}
	}
	for i, row := range rows {
		x, err := f.row(ctx, a, d, recipes[i], row)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
		out.Rows = append(out.Rows, *x)
	}
	return f.present(a, out)
}

// recipe is the recipe of a row's run.
func (f *ablationFlags) recipe(row eval.Ablation) (recipe.Recipe, error) {
	arch := baseline
	if row.Challenger {
		arch = f.arch
	}
	r, err := recipe.Named(f.size, arch)
	if err != nil {
		return r, err
	}
	if row.Change(&r.Model); r.Model.Heads < 1 || r.Model.FFN < 1 {
		return r, fmt.Errorf("%s is too small for this ablation: %d heads, MLP of width %d", f.size,
			r.Model.Heads, r.Model.FFN)
	}
	if len(f.data) > 0 {
		if r.Data.Sources, err = parseSources(f.data); err != nil {
			return r, fmt.Errorf("--data: %w", err)
		}
	}
	if f.steps > 0 {
		r.Train.Steps = f.steps
		r.Optim.Warmup = min(r.Optim.Warmup, max(f.steps/20, 1))
	}
	// One pass over as much data as the steps need, plus the held-out part.
	if t := r.Train; r.Data.MaxTokens == 0 && !r.Data.Mixed() {
		const least = 1 << 20 // something must be held out
		r.Data.MaxTokens = max(int64(float64(t.Steps*t.Batch*t.SeqLen)*1.05/(1-r.Data.HeldOut)), least)
	}
	r.Train.Seed, r.Name = f.seed, r.Name+"-"+row.Name
	for _, s := range f.set {
		if err := r.SetPair(s); err != nil {
			return r, fmt.Errorf("--set: %w", err)
		}
	}
	if r.Data.HeldOut <= 0 {
		return r, fmt.Errorf("data.held_out: is %g, must be above 0: the table shows held-out losses", r.Data.HeldOut)
	}
	return r.Complete()
}

// row runs the task lm with a trained model on the held-out text that all share.
func (f *ablationFlags) row(ctx context.Context, a *app, d device.Device, r recipe.Recipe,
	row eval.Ablation) (*report.AblationRow, error) {
	target, err := (&evalFlags{batch: 16}).target(a, d, row.Name, filepath.Join(f.dir, row.Name))
	if err != nil {
		return nil, err
	}
	defer target.LM.(*eval.Subject).Model.Free()
	lm := task.Named("lm").With(map[string]string{"text": "set:" + filepath.Join(f.dir, "data"), "pieces": "256",
		"length": fmt.Sprint(r.Train.SeqLen)})
	ev, err := eval.Run(ctx, []eval.Target{target}, []eval.Task{lm},
		eval.Options{Seed: 1, Shots: -1, Output: filepath.Join(f.dir, "eval"), Machine: machine(d), Commit: version()})
	if err != nil {
		return nil, err
	}
	x := &report.AblationRow{Name: row.Name, Doc: row.Doc, Arch: r.Model.Arch, Parameters: model.Table(r.Model).Count(),
		Heads: r.Model.Heads, HeadDim: r.Model.HeadDim, HeadNorm: r.Model.HeadNorm != layer.HeadNormOff}
	x.Fill(&ev.Models[0].Results[0])
	t, err := trainingOf(a, row.Name, filepath.Join(f.dir, row.Name, metrics.FileName))
	if err != nil {
		return nil, err
	}
	x.Steady = t.Steady
	return x, nil
}

func (f *ablationFlags) present(a *app, r *report.Ablation) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	path := filepath.Join(f.dir, ablationFile)
	if err := writeBytes(path, append(b, '\n')); err != nil {
		return err
	}
	if f.json {
		return a.json(r)
	}
	fmt.Fprintln(a.out)
	fmt.Fprint(a.out, r.Table(a.colored(a.out)))
	a.note("\n%s; a page of it: %s report %s", path, called(), experiment.ShellWord(f.dir))
	return nil
}
