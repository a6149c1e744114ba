package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/eval/task"
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
	taken := 0 // steps by this call
	for _, r := range pair {
		dir := filepath.Join(f.dir, r.Model.Arch)
		a.note("\n%s", a.paint(bold, "training "+r.Model.Arch))
		res, err := a.trainRun(ctx, d, r, train.Options{Dir: dir, Data: filepath.Join(f.dir, "data"),
			Tokenizer: filepath.Join(f.dir, "tokenizer.json"), Inexact: f.inexact})
		if err != nil {
			return err
		}
		taken += res.Steps - res.Resumed
	}
	a.note("\n%s", a.paint(bold, "judging"))
	page, err := a.judge(ctx, d, f, pair)
	if err != nil {
		return err
	}
	page.Seconds = time.Since(begin).Seconds()
	if old := reportSeconds(f.dir); taken == 0 && old > 0 {
		page.Seconds = old // of the call that did the work
	}
	return a.publish(f, page)
}

// reportSeconds is the time that the folder's report states, 0 when there is none.
func reportSeconds(dir string) float64 {
	var old struct{ Seconds float64 }
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil || json.Unmarshal(b, &old) != nil {
		return 0
	}
	return old.Seconds
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

// tasks are what a speedrun's models are asked, and the measures of each that its table shows.
func (f *speedrunFlags) tasks(r *recipe.Recipe) ([]eval.Task, map[string][]string) {
	text := "set:" + filepath.Join(f.dir, "data")
	length := fmt.Sprint(r.Model.Context * 3 / 4) // about as long as training documents
	needle := func(needles, queries, samples string) map[string]string {
		return map[string]string{"needles": needles, "queries": queries, "samples": samples, "lengths": length}
	}
	return []eval.Task{
			task.Named("lm").With(map[string]string{"text": text, "pieces": "128", "length": fmt.Sprint(r.Train.SeqLen)}),
			task.Named("needle").With(needle("1", "1", "40")),
			task.Named("needle").With(needle("4", "2", "40")),
			task.Named("attention").With(needle("4", "1", "20")),
			task.Named("outliers").With(map[string]string{"text": text, "tokens": fmt.Sprint(8 * r.Train.SeqLen), "length": fmt.Sprint(r.Train.SeqLen)}),
			task.Named("maps"),
			task.Named("samples"),
		}, map[string][]string{
			"lm": {"loss", "bits_per_byte", "perplexity"}, "attention": {"answer", "noise", "signed_answer", "signed_noise"},
			"outliers": {"logits_top1", "hidden_top1"}, "maps": {}, "samples": {},
		}
}

// judge puts the same questions to both models. Answers are kept, so that a stopped judgement continues.
func (a *app) judge(ctx context.Context, d device.Device, f *speedrunFlags, pair []recipe.Recipe) (*report.Page, error) {
	page := &report.Page{Title: "Antiphase speedrun", Recipe: pair[1].JSON(), Command: "antiphase " + strings.Join(os.Args[1:], " ")}
	var targets []eval.Target
	for _, r := range pair {
		dir := filepath.Join(f.dir, r.Model.Arch)
		t, err := a.target(d, r.Model.Arch, dir, 16)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Model.Arch, err)
		}
		defer t.LM.(*eval.Subject).Model.Free()
		targets = append(targets, t)
		training, err := a.trainingOf(t.Name, filepath.Join(dir, train.MetricsFile))
		if err != nil {
			return nil, err
		}
		page.Training = append(page.Training, training)
	}
	var tasks []eval.Task
	tasks, page.Brief = f.tasks(&pair[1])
	line := a.newLine()
	defer line.end()
	opt := eval.Options{Seed: 20, Shots: -1, Output: filepath.Join(f.dir, "eval"), Machine: machine(d), Commit: version(),
		Progress: func(p eval.Progress) { line.show(progress(p), false) }}
	var err error
	page.Evaluation, err = eval.Run(ctx, targets, tasks, opt)
	return page, err
}

// publish writes report.html and report.json and prints the table.
func (a *app) publish(f *speedrunFlags, p *report.Page) error {
	var html, data bytes.Buffer
	if err := p.HTML(&html); err != nil {
		return err
	}
	if err := p.JSON(&data); err != nil {
		return err
	}
	path := filepath.Join(f.dir, "report.html")
	if err := os.WriteFile(path, html.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.dir, "report.json"), data.Bytes(), 0o644); err != nil {
		return err
	}
	if f.json {
		_, err := a.out.Write(data.Bytes())
		return err
	}
	fmt.Fprintln(a.out)
	fmt.Fprint(a.out, p.Table(a.colored() && terminal(a.out)))
	a.note("\n%s in %s; look inside: %s", path, seconds(p.Seconds), called()+" generate --model "+filepath.Join(f.dir, f.Arch)+" -p \"The magic code is\"")
	return nil
}
