package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/experiment"
)

type compareFlags struct {
	spec          experiment.Spec
	seeds, tuneBy string
	tasks, probes []string
	have          []string
	variants      []string
	dir, keep     string
	jobs          int
	dry, json     bool
	inexact       bool
}

func compareVerb(a *app) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare",
		Short: "Compare architectures over learning rates and seeds in one resumable experiment",
		Long: `Compare trains every architecture at every size with every learning rate and seed on the same batches,
evaluates each model on the same questions, and writes one row per run and measure (rows.jsonl, rows.csv) and
one page (report.html) with intervals over seeds and items, paired tests, the whole tuning grid and a
verdict per claim. With several learning rates each gets --tune-seeds seeds; the best one of each
architecture, by held-out loss or by --tune-by, then gets the rest of --seeds.

It can be stopped at any time. The same command continues: finished runs are kept, and unfinished runs continue
from their checkpoints. The lists of sizes, architectures, learning rates and seeds may grow from call to call.

Under mpirun or srun the ranks divide the runs; all must see --dir.`,
		Example: `  antiphase compare --size tiny --seeds 3 --dir runs/tiny
  antiphase compare --size small --data 'books/*.jsonl.zst' --lr 5e-4,1e-3,2e-3 --tune-seeds 1 --seeds 3 --keep none
  antiphase compare --size tiny --seeds 5 --task "needle needles=4 queries=2" --probe "needle needles=4 queries=2 samples=8"
  antiphase compare --size 160m --data books --seeds 3 --dry-run`,
		Args:    cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return f.idle(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.together(cmd.Context(), func(ctx context.Context, t *team) error { return f.run(ctx, a, t) })
		},
	}
	f.add(c.Flags())
	return c
}

// add declares the flags.
func (f *compareFlags) add(fl *pflag.FlagSet) {
	s := &f.spec
	fl.StringArrayVar(&s.Data, "data", nil,
		"data source, as in train: a file, a folder, a glob, synthetic; PATH@WEIGHT to mix (repeatable)")
	fl.StringVar(&s.Tokenizer, "tokenizer", "", "a tokenizer.json to use instead of training one, or bytes")
	fl.StringSliceVar(&s.Sizes, "size", []string{"tiny"}, "sizes, separated by commas; see \"antiphase recipes\"")
	fl.StringSliceVar(&s.Archs, "arch", []string{baseline, "diff", "diff2"},
		"architectures; the others are compared with the first")
	fl.StringArrayVar(&f.variants, "variant", nil, "an architecture with its own settings: "+
		"\"diff-flat diff model.lambda_init=constant model.lambda_const=0.2\" (repeatable)")
	fl.Float64SliceVar(&s.LRs, "lr", nil, "learning rates to choose from (default: the size's own)")
	fl.StringVar(&f.seeds, "seeds", "3", "number of seeds N (1 to N), or a list: 11,12,13")
	fl.IntVar(&s.TuneSeeds, "tune-seeds", 1,
		"seeds per learning rate before the best one is chosen; 0 gives every rate all seeds")
	fl.StringVar(&f.tuneBy, "tune-by", "loss", "what chooses the learning rate: loss (held out), probe (the first "+
		"one's end) or a task, as --task has it")
	fl.IntVar(&s.Steps, "steps", 0, "optimiser steps of each run (default: the size's own)")
	fl.StringArrayVar(&s.Set, "set", nil, "change a field of every recipe: --set train.batch=16 (repeatable)")
	fl.StringArrayVar(&f.tasks, "task", nil,
		"evaluation task with its settings: \"needle needles=4 queries=2\" (repeatable; default: text, "+
			"needles, attention, outliers)")
	fl.StringArrayVar(&f.probes, "probe", nil,
		"task to run during training, or none (repeatable; default: two of four needles)")
	fl.IntVar(&s.Every, "probe-every", 0, "steps between probes (default: 24 probes a run)")
	fl.Uint64Var(&s.EvalSeed, "eval-seed", experiment.EvalSeed, "random seed of the questions")
	fl.StringVar(&s.Name, "name", "", "name in the rows (default: the folder's)")
	fl.StringVarP(&f.dir, "dir", "d", filepath.Join("runs", "compare"), "folder of the experiment")
	fl.StringArrayVar(&f.have, "have", nil,
		"rows.jsonl of the same experiment from another machine; its finished runs are not repeated (repeatable)")
	fl.IntVar(&f.jobs, "jobs", 1, "runs trained at the same time on one device")
	fl.StringVar(&f.keep, "keep", "last", "checkpoints of finished runs to keep: none, last or all")
	fl.BoolVar(&f.dry, "dry-run", false, "print runs, tokens, memory and hours, then exit")
	fl.BoolVar(&f.json, "json", false, "print the summary (or the dry run) as JSON")
	inexactFlag(fl, &f.inexact)
}

func (f *compareFlags) run(ctx context.Context, a *app, t *team) error {
	if err := f.resolve(); err != nil || f.dry && t.follows() {
		return err
	}
	devices, err := a.openJobs(f.jobs)
	if err != nil {
		return err
	}
	defer closeAll(devices)
	if f.dry {
		return f.forecast(ctx, a, devices[0])
	}
	opt := experiment.Options{Dir: f.dir, Devices: devices, Keep: experiment.Keep(f.keep), Have: f.have,
		Inexact: f.inexact}
	if t != nil {
		opt.Rank, opt.Ranks, opt.Wait = t.rank, t.size, t.wait
	}
	rows, err := runExperiment(ctx, a, &f.spec, opt)
	if err != nil || t.follows() {
		return err
	}
	opt.Program = called()
	return presentExperiment(a, &opt, rows, f.json)
}

// idle rejects flags without effect, and rows that do not exist.
func (f *compareFlags) idle(given *pflag.FlagSet) error {
	if slices.Equal(f.probes, []string{"none"}) {
		if err := idle(given, "with --probe none", "probe-every"); err != nil {
			return err
		}
	}
	if len(f.spec.LRs) < 2 {
		if err := idle(given, "with one learning rate: --lr names several", "tune-seeds",
			"tune-by"); err != nil {
			return err
		}
	}
	for _, path := range f.have {
		if _, err := os.Stat(path); err != nil {
			return badInput{fmt.Errorf("--have: %w", err)}
		}
	}
	return f.given(given)
}

// given rejects values that stand for a default when a flag is not given, and could pass for something else.
func (f *compareFlags) given(fl *pflag.FlagSet) error {
	switch {
	case fl.Changed("steps") && f.spec.Steps < 1:
		return usage(fmt.Errorf("--steps: is %d, must be positive", f.spec.Steps))
	case fl.Changed("probe-every") && f.spec.Every < 1:
		return usage(fmt.Errorf("--probe-every: is %d, must be positive", f.spec.Every))
	case f.dir == "":
		return usage(errors.New("--dir: is empty; name a folder"))
	case f.tuneBy == "":
		return usage(errors.New("--tune-by: is empty; want loss, probe or a task"))
	case len(f.probes) > 1 && slices.Contains(f.probes, "none"):
		return usage(errors.New("--probe: none, and others; none stands alone"))
	}
	return nil
}

// runExperiment runs an experiment with progress on stderr.
func runExperiment(ctx context.Context, a *app, spec *experiment.Spec,
	opt experiment.Options) ([]experiment.Row, error) {
	line := newWorkLine(a)
	defer line.end()
	opt.Kind, opt.Precision = computes(opt.Devices[0])
	opt.Machine, opt.Commit, opt.Command = machine(opt.Devices[0]), version(), commandLine(os.Args[1:])
	opt.Program = called()
	opt.Say, opt.Progress = line.say, line.progress
	rows, err := experiment.Work(ctx, spec, opt)
	return rows, experimentError(err)
}

// experimentError is an error of an experiment with its exit code.
func experimentError(err error) error {
	var input *eval.InputError
	switch {
	case errors.Is(err, experiment.ErrOther), errors.As(err, &input) && input.Usage:
		return usage(err)
	case input != nil:
		return badInput{err}
	}
	return err
}

// commandLine is this call in a form that can be typed again. Rows that it already had are left out: whoever repeats it
// has none, and the runs of all stretches are then of one command.
func commandLine(args []string) string {
	words := []string{"antiphase"}
	for i := 0; i < len(args); i++ {
		if args[i] == "--have" {
			i++
		} else if !strings.HasPrefix(args[i], "--have=") {
			words = append(words, experiment.ShellWord(args[i]))
		}
	}
	return strings.Join(words, " ")
}

// openJobs opens the device once for each concurrent run; CPU threads are divided among them.
func (a *app) openJobs(n int) (list []device.Device, err error) {
	if n < 1 || n > 64 {
		return nil, usage(fmt.Errorf("--jobs: is %d, must be 1 to 64", n))
	}
	shared := *a
	if n > 1 {
		threads := a.threads
		if threads == 0 {
			threads = runtime.NumCPU()
		}
		shared.threads = max(threads/n, 1)
	}
	for range n {
		d, err := shared.openTraining()
		if err != nil {
			closeAll(list)
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

func closeAll(list []device.Device) {
	for _, d := range list {
		d.Close()
	}
}

// resolve completes and checks the spec; an error is a usage error, or about a file that it names.
func (f *compareFlags) resolve() error {
	s := &f.spec
	var err error
	if s.Seeds, err = parseSeeds(f.seeds); err != nil {
		return usage(err)
	}
	switch experiment.Keep(f.keep) {
	case experiment.KeepNone, experiment.KeepLast, experiment.KeepAll:
	default:
		return usage(fmt.Errorf("--keep: %q is unknown; there are none, last and all", f.keep))
	}
	for _, v := range f.variants {
		s.Variants = append(s.Variants, experiment.Variant(v))
	}
	if s.Name == "" {
		s.Name = filepath.Base(filepath.Clean(f.dir))
	}
	if err := s.Resolve(); err != nil {
		return badInput{err}
	}
	if len(s.Sizes) == 0 || len(s.Archs) == 0 {
		return usage(s.Check())
	}
	s.Tasks, s.Probes = f.asks()
	if f.tuneBy != "loss" {
		s.TuneBy = experiment.Ask(f.tuneBy)
	}
	if err := s.Check(); err != nil {
		return usage(err)
	}
	return nil
}

// asks returns the tasks and probes; by default those that fit the models' context.
func (f *compareFlags) asks() (tasks, probes []experiment.Ask) {
	for _, t := range f.tasks {
		tasks = append(tasks, experiment.Ask(t))
	}
	for _, p := range f.probes {
		if p != "none" {
			probes = append(probes, experiment.Ask(p))
		}
	}
	usual, usualProbes := experiment.DefaultAsks(f.spec.Sizes, f.spec.Archs[0])
	if len(tasks) == 0 {
		tasks = usual
	}
	if len(f.probes) == 0 {
		probes = usualProbes
	}
	return tasks, probes
}

// parseSeeds reads a count or a list.
func parseSeeds(s string) (list []uint64, err error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > 1000 {
			return nil, fmt.Errorf("--seeds: is %d, must be 1 to 1000, or a list such as 11,12,13", n)
		}
		for i := range n {
			list = append(list, uint64(i+1))
		}
		return list, nil
	}
	for _, w := range strings.Split(strings.TrimSuffix(s, ","), ",") {
		x, err := strconv.ParseUint(strings.TrimSpace(w), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--seeds: %q is not a seed; want a count, or integers separated by commas", w)
		}
		list = append(list, x)
	}
	return list, nil
}
