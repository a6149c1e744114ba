package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"antiphase/data"
	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/internal/flock"
	"antiphase/internal/vfs"
	"antiphase/recipe"
	"antiphase/results"
)

type speedrunFlags struct {
	plan    string
	minutes float64
	data    []string
	seed    uint64
	seeds   int
	jobs    int
	dir     string
	fresh   bool
	inexact bool
	json    bool
}

func speedrunVerb(a *app) *cobra.Command {
	var f speedrunFlags
	c := &cobra.Command{
		Use:   "speedrun",
		Short: "Train and evaluate a Transformer, a DIFF and a DIFF V2 model on the same batches, in minutes",
		Long: `Speedrun generates its data, trains a tokenizer, then trains a Transformer, a DIFF and a DIFF V2 model of equal
size on the same batches with the same seed. It evaluates all three, prints one table and writes report.html.
It is the smallest "antiphase compare": of three fixed plans (short, standard, long) it takes the longest that
fits --minutes at this machine's speed. The same plan gives the same table wherever the same kernels run.
Ctrl-C saves; the same command continues.

One seed of one tiny model proves little: the verdict contains only statements that held in at least 9 of 10
seeds when the plan was measured with --seeds 10.`,
		Example: `  antiphase speedrun
  antiphase speedrun --plan long --dir runs/long
  antiphase speedrun --data notes.txt
  antiphase speedrun --plan standard --seeds 10 --jobs 4 --dir runs/seeds`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if f.plan == "" {
				return nil
			}
			return idle(cmd.Flags(), "with --plan, which fixes the work", "minutes")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	fl := c.Flags()
	fl.StringVar(&f.plan, "plan", "",
		"fixed amount of work: "+planNames()+" (default: by --minutes and the machine's speed)")
	fl.Float64Var(&f.minutes, "minutes", 6, "wall-clock minutes that the plan must fit")
	fl.StringArrayVar(&f.data, "data", nil,
		"your own text, which becomes half of the training data; the other half is generated needles (repeatable)")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed of weights and data order")
	fl.IntVar(&f.seeds, "seeds", 0,
		"run the plan with this many seeds and print how often each statement of a verdict holds")
	fl.IntVar(&f.jobs, "jobs", 1, "models trained at the same time")
	fl.StringVarP(&f.dir, "dir", "d", filepath.Join("runs", "speedrun"), "working folder")
	fl.BoolVar(&f.fresh, "fresh", false, "delete an earlier speedrun in the folder and start over")
	inexactFlag(fl, &f.inexact)
	fl.BoolVar(&f.json, "json", false, "print the results as JSON instead of the table")
	return c
}

const baseline = "transformer"

var speedrunArchs = []string{baseline, "diff", "diff2"}

func (f *speedrunFlags) run(ctx context.Context, a *app) error {
	begin := time.Now()
	switch {
	case !(f.minutes > 0 && f.minutes < 1e6):
		return usage(fmt.Errorf("--minutes: is %g, must be positive", f.minutes))
	case f.dir == "":
		return usage(errors.New("--dir: is empty; name a folder"))
	case f.seeds > 0 && f.seed > math.MaxUint64-uint64(f.seeds-1):
		return usage(fmt.Errorf("--seed: %d and %d more exceed the largest seed", f.seed, f.seeds-1))
	case f.seeds < 0 || f.seeds > 1000:
		return usage(fmt.Errorf("--seeds: is %d, must be 1 to 1000", f.seeds))
	}
	devices, err := a.openJobs(f.jobs)
	if err != nil {
		return err
	}
	defer closeAll(devices)
	name, err := f.prepare()
	if err != nil {
		return err
	}
	p, err := f.choosePlan(ctx, a, devices[0], name)
	if err != nil {
		return err
	}
	spec, err := f.spec(p)
	if err != nil {
		return err
	}
	had := finishedSeconds(f.dir)
	rows, err := runExperiment(ctx, a, spec, experiment.Options{Dir: f.dir, Devices: devices, Keep: experiment.KeepLast,
		Inexact: f.inexact})
	if err != nil {
		return err
	}
	if f.seeds > 0 {
		return f.presentRepeats(a, p, rows)
	}
	page, err := f.page(a, p, rows)
	if err != nil {
		return err
	}
	if page.Seconds = time.Since(begin).Seconds(); had > 0 {
		page.Seconds = had // of the call that did the work
	}
	return f.publish(a, page)
}

// freshSpeedrun deletes an earlier speedrun under the folder's lock.
func freshSpeedrun(dir string) error {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil
	}
	lock, err := flock.Acquire(dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	return clearSpeedrun(dir)
}

// finishedSeconds is the time stated in the folder's report, 0 if there is none.
func finishedSeconds(dir string) float64 {
	var old struct{ Seconds float64 }
	b, err := vfs.ReadFile(vfs.OS{}, filepath.Join(dir, "report.json"), maxReport)
	if err != nil || json.Unmarshal(b, &old) != nil {
		return 0
	}
	return old.Seconds
}

// spec is the plan as an experiment.
func (f *speedrunFlags) spec(p plan) (*experiment.Spec, error) {
	s := &experiment.Spec{Name: planPrefix + p.name, Sizes: []string{speedrunSize}, Archs: speedrunArchs,
		Steps: p.steps, EvalSeed: 20,
		Seeds: []uint64{f.seed}, Tasks: speedrunTasks, Probes: speedrunProbes, Every: p.steps / 10}
	if f.seeds > 0 {
		s.Seeds = nil
		for i := range f.seeds {
			s.Seeds = append(s.Seeds, f.seed+uint64(i))
		}
	}
	if len(f.data) > 0 {
		own, err := ownText(f.data, p)
		if err != nil {
			return nil, usage(fmt.Errorf("--data: %w", err))
		}
		s.Data = own
	}
	if err := s.Resolve(); err != nil {
		return nil, usage(err)
	}
	if err := s.Check(); err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// ownText mixes sources with the plan's own text, half and half. As much of that is generated as the steps draw.
func ownText(list []string, p plan) ([]string, error) {
	r, err := recipe.Named(speedrunSize, baseline)
	if err != nil {
		return nil, err
	}
	half := float64(p.steps*r.Train.Batch*r.Train.SeqLen) / 2
	var out []string
	for _, s := range r.Data.Sources {
		src, err := data.Open(s.Path)
		if err != nil {
			return nil, err
		}
		g, share := src.(*data.Synthetic), cmp.Or(s.Weight, 1) // one source needs no weight
		// A document of at most 32 bytes has 5 tokens or more in the mean.
		g.Docs = max(1, int(half*share)/(g.Bytes*5/32))
		out = append(out, fmt.Sprintf("%s@%g", g.Name(), share/2))
	}
	for _, d := range list {
		src, err := recipe.ParseSource(d)
		if err != nil {
			return nil, err
		}
		if src.Weight > 0 {
			return nil, fmt.Errorf("%s: has a weight; own text is half of the mixture here, \"antiphase compare\" "+
				"takes weights", d)
		}
		out = append(out, fmt.Sprintf("%s@%g", src.Path, 0.5/float64(len(list))))
	}
	return out, nil
}

// page is the experiment's page, with repeated statements instead of verdicts on claims.
func (f *speedrunFlags) page(a *app, p plan, rows []experiment.Row) (*report.Page, error) {
	page := experiment.Summarize(rows)
	page.Title = "Antiphase speedrun"
	x := page.Experiment
	known, err := experiment.ReadRepeats(results.SpeedrunSeeds, p.name, p.steps)
	if err != nil {
		return nil, err
	}
	if len(f.data) > 0 {
		known = nil // measured on the plan's own text
	}
	x.Lead, x.Verdicts = experiment.Repeated(known, rows, speedrunArchs)
	x.Rule = "Differences that held in at least 9 of 10 seeds of this plan, with this run's own figures."
	model := filepath.Join(f.dir, "runs", rows[len(rows)-1].Run)
	x.Next = []string{
		fmt.Sprintf("Let a model write: %s generate --model %s -p \"The magic code is\"", called(),
			experiment.ShellWord(model)),
		fmt.Sprintf("Own text: %s speedrun --data FILE --dir runs/own", called()),
		fmt.Sprintf("Several seeds and learning rates, with intervals and verdicts on the paper's claims: %s "+
			"compare --size tiny --seeds 3", called()),
		fmt.Sprintf("What the words mean: %s help glossary", called()),
	}
	return page, nil
}

// publish writes report.html and report.json and prints the table.
func (f *speedrunFlags) publish(a *app, p *report.Page) error {
	var html, data bytes.Buffer
	if err := p.HTML(&html); err != nil {
		return err
	}
	if err := p.JSON(&data); err != nil {
		return err
	}
	path := filepath.Join(f.dir, "report.html")
	for name, b := range map[string][]byte{"report.html": html.Bytes(), "report.json": data.Bytes()} {
		if err := writeBytes(filepath.Join(f.dir, name), b); err != nil {
			return err
		}
	}
	if f.json {
		_, err := a.out.Write(data.Bytes())
		return err
	}
	fmt.Fprintln(a.out)
	fmt.Fprint(a.out, p.Table(a.colored(a.out)))
	fmt.Fprintf(a.out, "\n%s\n", p.Experiment.Lead)
	for _, v := range p.Experiment.Verdicts {
		fmt.Fprintf(a.out, "  %s: %s; %s, %s\n", v.Claim, v.Figure, v.Source, v.Basis)
	}
	a.note("\n%s in %s", path, seconds(p.Seconds))
	for _, n := range p.Experiment.Next {
		a.note("  %s", n)
	}
	return nil
}

// presentRepeats prints how often each statement held, and stores the numbers.
func (f *speedrunFlags) presentRepeats(a *app, p plan, rows []experiment.Row) error {
	list := experiment.Repeats(p.name, rows)
	path := filepath.Join(f.dir, "speedrun-seeds.jsonl")
	if err := experiment.WriteRepeats(path, list); err != nil {
		return err
	}
	if f.json {
		return a.json(list)
	}
	for _, l := range experiment.Lines(list, speedrunArchs) {
		mark := " "
		if l.Repeated() {
			mark = "▸"
		}
		fmt.Fprintf(a.out, "%s %2d of %-3d %s\n", mark, l.Held, l.Of, l.Text)
	}
	a.note("\n▸ repeats in 9 of 10 seeds; %s has every value: the lines of results/speedrun-seeds.jsonl for plan %s",
		path, p.name)
	return nil
}
