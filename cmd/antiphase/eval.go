package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/eval/harness"
	"antiphase/eval/report"
	"antiphase/eval/task"
	"antiphase/experiment"
)

type evalFlags struct {
	models, tasks, set []string
	taskFiles          []string
	opt                eval.Options
	judge              string
	batch              int
	chat               bool
	context, parallel  int // of endpoints
	json, save         bool
	preset, scale      string
	checkpoints        bool
	changed            func(flag string) bool // whether the user gave the flag
	team               *team                  // divides the questions; nil for a single process
}

func evalVerb(a *app) *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval",
		Short: "Evaluate models: every table and figure of the paper is a task",
		Long: `Eval asks one or more models the same questions and prints a table with standard errors. With several models each
difference to the first one has a paired test. Without --data the tasks generate small stand-ins for their data
sets; with --data they read the sets from a folder (docs/evaluation.md lists its files).

--output is a store to which results are added, in any order and from several processes. Questions already in
the store are not asked again, and "antiphase report" makes a page of it. NAME=GLOB makes a group of models that
differ in their training seed; groups are compared using the variance between seeds.

Under mpirun or srun the ranks divide the questions; all must see --output.`,
		Example: `  antiphase eval ls
  antiphase eval --tasks mc,needle --model runs/speedrun/runs/tiny-transformer-lr0.001-s1 --model runs/speedrun/runs/tiny-diff-lr0.001-s1
  antiphase eval --tasks all --limit 50 --model runs/a --model runs/b --output results/a-b
  antiphase eval --tasks needle --set needle.lengths=4096,8192 --model runs/a --json
  antiphase eval --preset table2 --scale fit --model runs/a --model runs/b
  antiphase eval --preset figure9 --scale fit --model runs/a --model runs/b --output results/figure9
  antiphase eval --task-files my-tasks --tasks sciq --model runs/a
  antiphase eval --tasks lm --model 'diff=runs/diff-*' --model 'base=runs/base-*' --output results/seeds`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.changed = cmd.Flags().Changed
			return a.together(cmd.Context(), func(ctx context.Context, t *team) error {
				f.team = t
				return f.run(ctx, a)
			})
		},
	}
	f.flags(c.Flags())
	c.AddCommand(evalListVerb(a), presetsVerb(a))
	return c
}

// flags declares eval's own flags.
func (f *evalFlags) flags(fl *pflag.FlagSet) {
	fl.StringArrayVarP(&f.models, "model", "m", nil, modelWords+", or endpoint "+
		"URL#MODEL; also NAME=…, a group with a pattern: NAME=runs/a-* (repeatable)")
	fl.StringSliceVarP(&f.tasks, "tasks", "t", nil,
		"tasks or groups, separated by commas; \"all\"; see \"antiphase eval ls\"")
	fl.StringArrayVar(&f.taskFiles, "task-files", nil, "lm-evaluation-harness YAML task file, or a folder of them; "+
		"--tasks selects some, the default is all (repeatable)")
	fl.StringVar(&f.preset, "preset", "",
		"a published table or figure by name, such as table2 or figure5; see \"antiphase eval presets\"")
	fl.StringVar(&f.scale, "scale", "paper",
		"with --preset: paper (published settings) or fit (the models' context, fewer samples)")
	fl.BoolVar(&f.checkpoints, "checkpoints", false,
		"evaluate every kept checkpoint of the run folders in turn; needs --output")
	fl.StringVar(&f.opt.Data, "data", "", "folder of data sets (default: generated stand-ins)")
	fl.IntVar(&f.opt.Limit, "limit", 0, "maximum samples per task; 0 takes all")
	fl.Uint64Var(&f.opt.Seed, "seed", 1, "random seed of examples, orders and prompts")
	fl.IntVar(&f.opt.Shots, "num-fewshot", -1, "solved examples before each question; -1 uses each task's default")
	fl.StringArrayVar(&f.set, "set", nil, "a task's setting, TASK.KEY=VALUE (repeatable); see \"antiphase eval ls\"")
	fl.BoolVar(&f.opt.LogSamples, "log-samples", false, "store prompts and answers in --output")
	fl.StringVarP(&f.opt.Output, "output", "o", "",
		"store of answers and results; questions already in it are not asked again")
	fl.StringVar(&f.opt.Replicate, "replicate", "",
		"name of a repetition; its results are stored in addition to those of the same cells")
	fl.StringVar(&f.judge, "judge", "", "endpoint (URL#MODEL or URL#MODEL#chat) that judges answers no rule can score")
	fl.BoolVar(&f.chat, "apply-chat-template", false,
		"format every prompt as a user message with the model's chat template")
	fl.IntVar(&f.context, "endpoint-context", 4096,
		"context size in tokens assumed for endpoints, which do not report it")
	fl.IntVar(&f.parallel, "endpoint-concurrency", 8, "concurrent requests per endpoint")
	fl.IntVar(&f.batch, "batch", 16, "sequences per batch")
	fl.BoolVar(&f.json, "json", false, "print the results as JSON, with lm-evaluation-harness's keys")
	fl.BoolVar(&f.save, "save", false, "append the numbers as rows to "+filepath.Join("results", "eval"))
}

// run checks the input, runs, prints and writes.
func (f *evalFlags) run(ctx context.Context, a *app) error {
	if len(f.models) == 0 {
		return usage(errors.New("--model: missing; name a " + modelWords))
	}
	for _, x := range []struct {
		flag     string
		n, least int
	}{{"limit", f.opt.Limit, 0}, {"num-fewshot", f.opt.Shots, -1}, {"batch", f.batch, 1},
		{"endpoint-context", f.context, 16}, {"endpoint-concurrency", f.parallel, 1}} {
		if x.n < x.least {
			return usage(fmt.Errorf("--%s is %d, must be %d or more", x.flag, x.n, x.least))
		}
	}
	if f.team != nil && f.opt.Output == "" {
		return usage(fmt.Errorf(
			"--output: missing; %d ranks combine their answers in a store, a folder that all of them can see",
			f.team.size))
	}
	if err := f.idle(); err != nil {
		return err
	}
	choose, err := f.choose(a)
	if err != nil {
		return err
	}
	if f.opt.Set, err = readSettings(f.set); err != nil {
		return usage(err)
	}
	if f.judge != "" {
		e, ok, err := endpoint(f.judge)
		if err != nil || !ok {
			return usage(fmt.Errorf("--judge: %q is not an endpoint; want URL#MODEL or URL#MODEL#chat", f.judge))
		}
		e.Parallel = f.parallel
		f.opt.Judge, f.opt.JudgeName = e, e.Model+" at "+e.URL
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	f.opt.Machine, f.opt.Commit = machine(d), version()
	if f.checkpoints {
		return f.overCheckpoints(ctx, a, d, choose)
	}
	targets, err := f.openTargets(a, d)
	if err != nil {
		return err
	}
	ev, err := f.ask(ctx, a, targets, choose)
	if err != nil || f.team.follows() {
		return err
	}
	return f.present(a, ev)
}

// ask runs the tasks on the models. Each of several ranks takes its share; rank 0 returns the evaluation, the others
// nil.
func (f *evalFlags) ask(ctx context.Context, a *app, targets []eval.Target, choose chosen) (*eval.Evaluation, error) {
	tasks, err := choose(targets)
	if err == nil {
		err = f.idleFor(tasks)
	}
	if err != nil {
		return nil, err
	}
	line := a.newLine()
	f.opt.Progress = func(p eval.Progress) { line.show(progress(p), p.Done == 0) }
	var ev *eval.Evaluation
	if f.team != nil {
		if err = eval.Share(ctx, targets, tasks, f.opt, f.team.rank, f.team.size); err == nil {
			err = f.team.wait()
		}
	}
	if err == nil && !f.team.follows() {
		ev, err = eval.Run(ctx, targets, tasks, f.opt)
	}
	line.end()
	var input *eval.InputError
	switch {
	case errors.As(err, &input) && input.Usage:
		return nil, usage(err)
	case input != nil:
		return nil, badInput{err}
	case err != nil:
		return nil, err
	}
	return ev, nil
}

// selectTasks finds the selected tasks among the built-in ones and those from files.
func (f *evalFlags) selectTasks(a *app) ([]eval.Task, error) {
	all, added, err := allTasks(a, f.taskFiles)
	if err != nil {
		return nil, err
	}
	f.opt.Tasks = slices.DeleteFunc(slices.Clone(all),
		func(t eval.Task) bool { return !slices.Contains(added, t.Name) })
	names := f.tasks
	if len(names) == 0 {
		names = added
	}
	tasks, err := eval.Select(all, names)
	if err != nil {
		return nil, usage(fmt.Errorf("--tasks: %w", err))
	}
	return tasks, nil
}

// allTasks returns the built-in tasks and those from files, and the names of the latter.
func allTasks(a *app, paths []string) (all []eval.Task, added []string, err error) {
	all = task.All()
	for _, path := range paths {
		files, notes, err := harness.Read(path)
		if err != nil {
			return nil, nil, badInput{fmt.Errorf("--task-files: %w", err)}
		}
		var more []string
		if all, more, err = harness.Merge(all, files); err != nil {
			return nil, nil, badInput{fmt.Errorf("--task-files: %w", err)}
		}
		for _, n := range append(notes, more...) {
			a.note("%s", n)
		}
		for _, t := range files {
			added = append(added, t.Name)
		}
	}
	return all, added, nil
}

// machine names the machine that produced the numbers.
func machine(d device.Device) string { return d.Name() + ", " + runtime.GOOS + "/" + runtime.GOARCH }

// progress is the line shown while a task runs.
func progress(p eval.Progress) string {
	s := fmt.Sprintf("%s: %s %d/%d", p.Model, p.Task, p.Done, p.Total)
	if p.Done > 0 && p.Elapsed > time.Second {
		s += ", " + seconds(p.Elapsed.Seconds())
	}
	return s
}

// readSettings parses TASK.KEY=VALUE.
func readSettings(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		key, value, ok := strings.Cut(s, "=")
		if !ok || !strings.Contains(key, ".") {
			return nil, fmt.Errorf("--set: %q is not a setting; want TASK.KEY=VALUE", s)
		}
		out[key] = value
	}
	return out, nil
}

// present prints the table or the JSON, and writes the files derived from the store.
func (f *evalFlags) present(a *app, ev *eval.Evaluation) error {
	for _, s := range ev.Skipped {
		a.note("%s: skipped %s: %s", s.Model, s.Task, s.Why)
	}
	if f.opt.Output != "" {
		store, err := eval.ReadStores(f.opt.Output)
		if err != nil {
			return err
		}
		if err := report.WriteHarness(f.opt.Output, eval.Assemble(store.Cells())); err != nil {
			return err
		}
	}
	if f.save {
		rows := report.Rows(ev, time.Now().UTC().Truncate(time.Second), strings.Join(os.Args[1:], " "))
		if err := report.SaveRows(filepath.Join("results", "eval"), rows); err != nil {
			return err
		}
	}
	if f.json {
		return report.HarnessJSON(a.out, ev)
	}
	p := report.Page{Evaluation: ev}
	fmt.Fprint(a.out, p.Table(a.colored(a.out)))
	if f.opt.Output != "" {
		a.note("\na page of all that %s holds: %s report %s", f.opt.Output, called(),
			experiment.ShellWord(f.opt.Output))
	}
	return nil
}
