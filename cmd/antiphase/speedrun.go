package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antiphase/data"
	"antiphase/device"
	"antiphase/eval"
	"antiphase/internal/flock"
	"antiphase/recipe"
	"antiphase/train"
)

// plan is what a speedrun decided at its start; it is kept in the folder, so that a second call continues the same one.
type plan struct {
	Minutes float64 `json:"minutes"`
	Size    string  `json:"size"`
	Arch    string  `json:"arch"`
	Seed    uint64  `json:"seed"`
	Steps   int     `json:"steps"`
}

type speedrunFlags struct {
	plan
	dir     string
	fresh   bool
	inexact bool
	json    bool
}

func speedrunVerb(a *app) *cobra.Command {
	var f speedrunFlags
	c := &cobra.Command{
		Use:   "speedrun",
		Short: "From nothing to a judged pair: train a Transformer and a DIFF model and compare them",
		Long: `Speedrun makes its own data, trains a tokenizer, trains a Transformer and a differential model of
equal size on the same batches from the same seed, judges both, prints one table and writes a page,
report.html. It fits its number of steps to the machine's speed and the minutes given. Ctrl-C saves;
the same command continues.`,
		Example: `  antiphase speedrun
  antiphase speedrun --minutes 20 --arch diff2
  antiphase speedrun --minutes 120 --size small --dir runs/overnight`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.speedrun(cmd.Context(), &f) },
	}
	fl := c.Flags()
	fl.Float64Var(&f.Minutes, "minutes", 5, "wall-clock time to aim at")
	fl.StringVar(&f.Size, "size", "tiny", "size of the pair, see \"antiphase recipes\"")
	fl.StringVar(&f.Arch, "arch", "diff", "the challenger: diff or diff2")
	fl.Uint64Var(&f.Seed, "seed", 1, "decides data, weights and order")
	fl.StringVarP(&f.dir, "dir", "d", filepath.Join("runs", "speedrun"), "folder to work in")
	fl.BoolVar(&f.fresh, "fresh", false, "delete what the folder holds of an earlier speedrun and begin anew")
	inexactFlag(fl, &f.inexact)
	fl.BoolVar(&f.json, "json", false, "print the results as JSON instead of the table")
	return c
}

const baseline = "transformer"

func (a *app) speedrun(ctx context.Context, f *speedrunFlags) error {
	begin := time.Now()
	ra, rb, err := f.pair()
	if err != nil {
		return usage(err)
	}
	d, err := a.openTraining()
	if err != nil {
		return err
	}
	defer d.Close()
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	lock, err := flock.Acquire(f.dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	if f.fresh {
		if err := clearSpeedrun(f.dir); err != nil {
			return err
		}
	}
	pair := []recipe.Recipe{ra, rb}
	if err := a.planSpeedrun(d, f, pair); err != nil {
		return err
	}
	a.note("%s: %s against %s, %d steps of %s tokens each, on %s", f.dir, baseline, f.Arch, f.Steps, count(float64(ra.Train.Batch*ra.Train.SeqLen)), d.Name())
	for _, r := range pair {
		dir := filepath.Join(f.dir, r.Model.Arch)
		a.note("\n%s", a.paint(bold, "training "+r.Model.Arch))
		if _, err := a.trainRun(ctx, d, r, train.Options{Dir: dir, Data: filepath.Join(f.dir, "data"),
			Tokenizer: filepath.Join(f.dir, "tokenizer.json"), Inexact: f.inexact}); err != nil {
			return err
		}
	}
	a.note("\n%s", a.paint(bold, "judging"))
	report, err := a.judge(ctx, d, f, pair)
	if err != nil {
		return err
	}
	report.Seconds = time.Since(begin).Seconds()
	return a.publish(f, report)
}

// pair checks the flags and gives both recipes.
func (f *speedrunFlags) pair() (a, b recipe.Recipe, err error) {
	if !(f.Minutes > 0 && f.Minutes < 1e6) {
		return a, b, fmt.Errorf("--minutes: is %g, must be positive", f.Minutes)
	}
	if f.Arch == baseline {
		return a, b, fmt.Errorf("--arch: %s is what the challenger is compared with; take another", baseline)
	}
	if a, b, err = recipe.Pair(f.Size, baseline, f.Arch); err != nil {
		return a, b, err
	}
	const room = 256 // tokens: a needle prompt with its answer
	if a.Model.Context < room {
		return a, b, fmt.Errorf("--size: the context of %s is %d tokens, needle prompts need %d", f.Size, a.Model.Context, room)
	}
	return a, b, nil
}

// planSpeedrun takes the folder's plan, or measures the pair and makes one, and applies it to both recipes.
func (a *app) planSpeedrun(d device.Device, f *speedrunFlags, pair []recipe.Recipe) error {
	path := filepath.Join(f.dir, "plan.json")
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		var old plan
		if err := json.Unmarshal(b, &old); err != nil {
			return badInput{fmt.Errorf("%s: %w", path, err)}
		}
		f.Steps = old.Steps
		if old != f.plan {
			return usage(fmt.Errorf("%s holds another speedrun (%s); use --fresh to begin anew, or another --dir", f.dir, string(b)))
		}
	case !os.IsNotExist(err):
		return err
	default:
		if err := a.measure(d, f, pair); err != nil {
			return err
		}
		b, _ := json.Marshal(f.plan) // plain numbers and strings
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	for i := range pair {
		f.apply(&pair[i])
	}
	return nil
}

// measure fits the number of steps to the time: what is left after data and judging, shared by both models.
func (a *app) measure(d device.Device, f *speedrunFlags, pair []recipe.Recipe) error {
	const share = 0.8 // of the time for training
	var step time.Duration
	for _, r := range pair {
		t, err := train.Measure(d, r)
		if err != nil {
			return err
		}
		step += t
	}
	f.Steps = max(int(share*f.Minutes*float64(time.Minute)/float64(step)), 20)
	return nil
}

// apply makes a recipe one side of the speedrun.
func (f *speedrunFlags) apply(r *recipe.Recipe) {
	t := &r.Train
	t.Steps, t.Seed = f.Steps, f.Seed
	t.EvalEvery, t.SaveEvery = max(f.Steps/10, 1), max(f.Steps/10, 1)
	r.Optim.Warmup = max(f.Steps/20, 1)
	for i, s := range r.Data.Sources {
		if strings.HasPrefix(s.Path, "synthetic:") {
			r.Data.Sources[i].Path = fmt.Sprintf("%s,seed=%d", s.Path, f.Seed)
		}
	}
	// One pass over as much data as the steps need, with the held-out part on top.
	r.Data.MaxTokens = int64(float64(f.Steps*t.Batch*t.SeqLen) * 1.05 / (1 - r.Data.HeldOut))
}

// judge evaluates both models on the same questions.
func (a *app) judge(ctx context.Context, d device.Device, f *speedrunFlags, pair []recipe.Recipe) (*eval.Report, error) {
	rep := &eval.Report{Title: "Antiphase speedrun", Machine: d.Name() + ", " + runtime.GOOS + "/" + runtime.GOARCH, Commit: version(),
		Date: time.Now().UTC().Format("2006-01-02"), Recipe: pair[1].JSON()}
	set, err := data.OpenSet(filepath.Join(f.dir, "data"), true)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	valid, err := set.Split(data.Valid)
	if err != nil {
		return nil, err
	}
	for _, r := range pair {
		side, err := a.judgeSide(ctx, d, r, filepath.Join(f.dir, r.Model.Arch), valid)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Model.Arch, err)
		}
		rep.Sides = append(rep.Sides, *side)
	}
	return rep, nil
}

func (a *app) judgeSide(ctx context.Context, d device.Device, r recipe.Recipe, dir string, valid *data.Split) (*eval.Side, error) {
	l, err := a.load(d, dir)
	if err != nil {
		return nil, err
	}
	defer l.Model.Free()
	s := &eval.Subject{Name: r.Model.Arch, Model: l.Model, Tokenizer: l.Tokenizer, Batch: 16}
	line := a.newLine()
	defer line.end()
	return eval.Judge(ctx, s, eval.JudgeOptions{
		Valid: valid, SeqLen: r.Train.SeqLen, Isolate: r.Data.Isolate, Metrics: filepath.Join(dir, "metrics.jsonl"),
		Progress: func(what string) { line.show(r.Model.Arch+": "+what, false) },
	})
}

// publish writes report.html and report.json and prints the table.
func (a *app) publish(f *speedrunFlags, r *eval.Report) error {
	page := filepath.Join(f.dir, "report.html")
	w, err := os.Create(page)
	if err != nil {
		return err
	}
	if err := r.HTML(w); err != nil {
		w.Close()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	var j bytes.Buffer
	if err := r.JSON(&j); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.dir, "report.json"), j.Bytes(), 0o644); err != nil {
		return err
	}
	if f.json {
		_, err := a.out.Write(j.Bytes())
		return err
	}
	fmt.Fprintln(a.out)
	fmt.Fprint(a.out, r.Table(a.colored() && terminal(a.out)))
	a.note("\n%s in %s; look inside: %s", page, seconds(r.Seconds), called()+" generate --model "+filepath.Join(f.dir, f.Arch)+" -p \"The magic code is\"")
	return nil
}
