package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/device"
	"antiphase/experiment"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

// trainFlags are train's own flags.
type trainFlags struct {
	size, arch, dir   string
	from              string
	archSet           bool // --arch was given
	data              []string
	tokenizer         string
	set               []string
	parallel          string
	bandwidth         float64 // GB/s, for a dry run
	job               jobFlags
	sample            sampleFlags
	steps             int
	stepsSet          bool // --steps was given; 0 writes the initial checkpoint
	dry, print, force bool
	inexact, json     bool
	given             *pflag.FlagSet
}

func trainVerb(a *app) *cobra.Command {
	var f trainFlags
	c := &cobra.Command{
		Use:   "train [recipe.json|recipe.yaml ...] [key=value ...]",
		Short: "Train a model; run the same command again to resume",
		Long: `Train runs a recipe in a run folder. The same command continues an interrupted run from the newest
complete checkpoint, bit for bit. Ctrl-C finishes the step, saves and exits with code 75.

A recipe is a named size (--size, see "antiphase recipes") and any number of files, applied in the order given:
a field of a file overrides that of the size and of the files before it. Any field can be set by its dotted
path, whatever files say.

Under mpirun or srun the ranks train one run together: each takes its own rows of the recipe's batch, so the
result is that of one process. All ranks must see the same run folder.

--from starts with the weights, shape, context and tokenizer of another model: a run, a checkpoint, a
Hugging Face folder or org/name in its cache. The optimiser starts fresh, with a learning rate, warm-up and
sequence length suited to continued training; --set changes them.`,
		Example: `  antiphase train --size tiny --arch diff --dir runs/tiny-diff
  antiphase train --size small --arch diff2 --data 'books/*.jsonl.zst' --set train.steps=2000
  antiphase train runs/tiny-diff/recipe.json --dir runs/again
  antiphase train base.json long-context.yaml train.steps=2000 --dir runs/long
  antiphase train --from org/model --data notes.jsonl --steps 500
  antiphase train --size 830m --arch diff --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags()
			f.archSet = cmd.Flags().Changed("arch")
			f.stepsSet = cmd.Flags().Changed("steps")
			if f.from != "" && !f.archSet {
				f.arch = ""
			}
			return f.run(cmd.Context(), a, args)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.size, "size", "tiny", "named recipe to start from")
	fl.StringVar(&f.arch, "arch", "diff", "architecture: "+strings.Join(archNames([]string{"all"}), ", "))
	fl.StringVar(&f.from, "from", "",
		"model to start from: run folder, checkpoint, Hugging Face folder or org/name in its cache")
	fl.StringVarP(&f.dir, "dir", "d", "", "run folder (default runs/NAME)")
	fl.StringArrayVar(&f.data, "data", nil,
		`data source: a file, a folder, a glob, synthetic, goroot or a built token set; PATH@WEIGHT or {"path": PATH, "weight": W, "epochs": E} to mix (repeatable)`)
	fl.StringVar(&f.tokenizer, "tokenizer", "",
		"a tokenizer.json to use instead of training one, or bytes; short for --set tokenizer.path=FILE")
	fl.StringArrayVar(&f.set, "set", nil, "change a field: --set train.steps=100 (repeatable)")
	fl.IntVar(&f.steps, "steps", 0, "short for --set train.steps=N; 0 writes the initial checkpoint and exits")
	fl.BoolVar(&f.dry, "dry-run", false, "print size, memory, FLOPs and expected time, then exit")
	fl.BoolVar(&f.print, "print-config", false, "print the resolved recipe, then exit")
	fl.BoolVar(&f.force, "force", false, "continue a run although its recipe changed")
	inexactFlag(fl, &f.inexact)
	fl.BoolVar(&f.json, "json", false, "print the result (or the dry run) as JSON")
	fl.StringVar(&f.parallel, "parallel", "",
		"layout of several ranks, such as dp=4,tp=2,zero=1: dp divides the batch, tp the model's heads and columns, "+
			"zero=1 shards the optimiser's moments over dp (default: dp over all ranks, or what fits)")
	fl.Float64Var(&f.bandwidth, "bandwidth", 12.5,
		"network bandwidth per rank in GB/s, for the forecast of --dry-run; 12.5 is 100 Gbit/s")
	f.job.add(fl)
	f.sample.add(fl)
	return c
}

// inexactFlag is a flag of every verb that resumes training.
func inexactFlag(fl *pflag.FlagSet, p *bool) {
	fl.BoolVar(p, "inexact", false,
		"continue a run with another device, precision or kernel set; results then differ in their last bits")
}

// begin is the named recipe, or the one for continuing from the model of --from.
func (f *trainFlags) begin(ctx context.Context, a *app) (recipe.Recipe, error) {
	if f.from != "" {
		return f.goOn(ctx, a)
	}
	r, err := recipe.Named(f.size, f.arch)
	if err != nil {
		return r, usage(err)
	}
	return r, nil
}

// archOf takes the architecture from a recipe file, so that the named size is that architecture's, of equal size to the
// others.
func (f *trainFlags) archOf(path string) error {
	var r recipe.Recipe
	if err := r.Read(path); err != nil {
		return err
	}
	switch {
	case r.Model.Arch == "", f.from != "":
	case f.archSet && f.arch != r.Model.Arch:
		return fmt.Errorf("--arch: is %s, %s says %s", f.arch, path, r.Model.Arch)
	default:
		if _, err := layer.LookupArch(r.Model.Arch); err != nil {
			return fmt.Errorf("%s: model.%w", path, err)
		}
		f.arch = r.Model.Arch
	}
	return nil
}

// resolve merges size, file, flags and overrides, in that order.
func (f *trainFlags) resolve(ctx context.Context, a *app, args []string) (recipe.Recipe, error) {
	var files []string
	for _, arg := range args {
		if strings.Contains(arg, "=") {
			f.set = append(f.set, arg)
			continue
		}
		if err := f.archOf(arg); err != nil {
			return recipe.Recipe{}, usage(err)
		}
		files = append(files, arg)
	}
	r, err := f.begin(ctx, a)
	if err != nil {
		return r, err
	}
	base := r
	for _, path := range files {
		if err := r.Read(path); err != nil {
			return r, usage(err)
		}
	}
	if len(f.data) > 0 {
		if r.Data.Sources, err = parseSources(f.data); err != nil {
			return r, usage(fmt.Errorf("--data: %w", err))
		}
	}
	if f.tokenizer != "" {
		r.Tokenizer.Path = f.tokenizer
	}
	if f.stepsSet {
		r.Train.Steps = f.steps
	}
	for _, s := range f.set {
		if arch, ok := strings.CutPrefix(s, "model.arch="); ok && arch != r.Model.Arch {
			return r, usage(fmt.Errorf("--set: model.arch alone would keep the heads of %s; use --arch %s",
				r.Model.Arch, arch))
		}
		if err := r.SetPair(s); err != nil {
			return r, usage(fmt.Errorf("--set: %w", err))
		}
	}
	if r, err = f.complete(base, r); err != nil && len(files) > 0 {
		return r, usage(fmt.Errorf("%s: %w", strings.Join(files, ", "), err))
	}
	return r, err
}

// complete fills dependent settings and checks the result; a setting without effect is rejected.
func (f *trainFlags) complete(base, r recipe.Recipe) (recipe.Recipe, error) {
	changed := map[string]bool{}
	for _, c := range recipe.Diff(base, r) {
		changed[c.Path] = true
	}
	for _, key := range []string{"tokenizer.vocab", "tokenizer.docs", "tokenizer.pattern"} {
		if changed[key] && r.Tokenizer.Path != "" && !changed["tokenizer.path"] {
			return r, usage(fmt.Errorf("%s: has no effect, since tokenizer.path=%s trains no tokenizer; add --set "+
				"tokenizer.path= to train one", key, r.Tokenizer.Path))
		}
	}
	if f.from != "" && !changed["optim.warmup"] && r.Train.Steps > 0 {
		r.Optim.Warmup = min(r.Optim.Warmup, max(r.Train.Steps/20, 1))
	}
	r, err := r.Complete()
	if err != nil {
		return r, usage(err)
	}
	return r, nil
}

// parseSources reads PATH, PATH@WEIGHT or an object each.
func parseSources(specs []string) (list []recipe.Source, err error) {
	for _, spec := range specs {
		s, err := recipe.ParseSource(spec)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// check rejects flags that are wrong, or have no effect with the others.
func (f *trainFlags) check() error {
	if f.sample.every == 0 {
		if err := idle(f.given, "without --sample-every", "sample-prompt", "sample-tokens"); err != nil {
			return err
		}
	}
	if !f.dry {
		if err := idle(f.given, "without --dry-run", "bandwidth"); err != nil {
			return err
		}
	}
	return f.sample.check()
}

func (f *trainFlags) run(ctx context.Context, a *app, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := f.resolve(ctx, a, args)
	if err != nil {
		return err
	}
	if err := f.sample.fits(r.Train.Steps); err != nil {
		return err
	}
	l, err := f.job.launch()
	if err != nil {
		return err
	}
	if f.print && l.Rank == 0 {
		_, err = a.out.Write(r.JSON())
	}
	if f.print {
		return err
	}
	if err := f.job.alone(l, f.given); err != nil {
		return err
	}
	a.share(l)
	d, err := a.openTraining()
	if err != nil {
		return err
	}
	defer d.Close()
	way, err := f.layout(l, d, r)
	if err != nil {
		return err
	}
	if f.dry && l.Rank > 0 {
		return nil
	}
	if f.dry {
		return f.forecast(ctx, a, d, r, way)
	}
	if f.dir == "" {
		f.dir = filepath.Join("runs", r.Name)
	}
	if err := noExperiment(f.dir); err != nil {
		return err
	}
	if l.World > 1 {
		return f.trainRank(ctx, a, l, d, r, way)
	}
	return f.trainHere(ctx, a, d, r, train.Options{})
}

// trainHere trains in this process, alone or as one of several ranks.
func (f *trainFlags) trainHere(ctx context.Context, a *app, d device.Device, r recipe.Recipe, opt train.Options) error {
	opt.Dir, opt.Force, opt.Inexact, opt.Begin = f.dir, f.force, f.inexact, parentOf(ctx, a, r)
	a.note("%s: %s, %s parameters, on %s", f.dir, r.Model.Arch, count(float64(model.Table(r.Model).Count())), d.Name())
	if _, ok := f.begun(); f.from != "" && !ok {
		if err := sayFrom(ctx, a, r); err != nil {
			return err
		}
	}
	f.sample.probe(a, f.dir, &opt)
	res, err := runTraining(ctx, a, d, r, opt)
	if err != nil {
		return err
	}
	if res.Steps == 0 {
		a.note("done: the initial checkpoint is in %s", f.dir)
	} else {
		a.note("done: step %d, loss %.4f%s; try: %s generate --model %s \"Once\"",
			res.Steps, res.Loss, heldOut(res.Valid), called(), experiment.ShellWord(f.dir))
	}
	if f.json && (opt.Ranks == nil || opt.Ranks.Rank() == 0) {
		return a.json(map[string]any{"dir": f.dir, "steps": res.Steps, "loss": res.Loss, "valid_loss": res.Valid,
			"resumed_from": res.Resumed})
	}
	return nil
}

// runTraining runs a recipe with progress on stderr.
func runTraining(ctx context.Context, a *app, d device.Device, r recipe.Recipe,
	opt train.Options) (train.Result, error) {
	l := a.newLine()
	opt.Device = d
	ask, stop := saveSignal()
	defer stop()
	opt.Save = ask
	opt.Say = func(format string, args ...any) { l.end(); a.note(format, args...) }
	opt.Progress = func(stage string, done, total int64) { l.show(prepareLine(stage, done, total), false) }
	valid := math.NaN() // the last one measured
	opt.Report = func(row train.Row) {
		measured := !math.IsNaN(row.Valid)
		if measured {
			valid = row.Valid
		}
		l.show(stepLine(row, valid), row.Step == row.Total || !l.live && (measured || row.Step%r.Train.LogEvery == 0))
	}
	res, err := train.Run(ctx, r, opt)
	l.end()
	return res, err
}

// heldOut formats the held-out loss, if there is one.
func heldOut(loss float64) string {
	if loss == 0 {
		return ""
	}
	return fmt.Sprintf(", held-out %.4f", loss)
}

func prepareLine(stage string, done, total int64) string {
	if total > 0 {
		return fmt.Sprintf("%s %s of %s (%.0f %%)", stage, count(float64(done)), count(float64(total)),
			100*float64(done)/float64(total))
	}
	return fmt.Sprintf("%s %s", stage, count(float64(done)))
}

// stepLine formats one step; valid is the last held-out loss, NaN for none.
func stepLine(r train.Row, valid float64) string {
	s := fmt.Sprintf("step %d/%d (%.0f %%) | loss %.4f", r.Step, r.Total, r.Percent, r.LossEMA)
	if !math.IsNaN(valid) {
		s += fmt.Sprintf(" | held-out %.4f", valid)
	}
	s += fmt.Sprintf(" | grad %.2f | lr %.2e | %s tok/s | mfu %.0f %%", r.GradNorm, r.LR, count(r.TokS), 100*r.MFU)
	if !math.IsNaN(r.LambdaMin) {
		s += fmt.Sprintf(" | λ %.2f…%.2f", r.LambdaMin, r.LambdaMax)
	}
	if r.Warnings > 0 {
		s += fmt.Sprintf(" | %d warned", r.Warnings)
	}
	return s + " | eta " + seconds(r.ETA)
}
