package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Options are what a user asks of an evaluation.
type Options struct {
	Data       string            // folder of data sets; empty: generated stand-ins
	Seed       uint64            // draws examples, orders, prompts and stand-ins
	Limit      int               // most samples of each task; 0: all
	Shots      int               // solved examples before each question; negative: each task's own number
	Set        map[string]string // settings of tasks, see Setting
	Output     string            // folder of logs and results; empty: nothing is written
	LogSamples bool              // keep prompts and answers
	Judge      LM                // decides in tasks whose answers no rule can score; nil: none
	JudgeName  string            // says which, for the report
	Progress   func(Progress)

	context int              // tokens: the smallest context of the models
	count   func(string) int // tokens of a text, by the first model that can tell
}

// Progress says how far a task has come.
type Progress struct {
	Model, Task string
	Done, Total int
	Elapsed     time.Duration // in this call
}

// Target is a model to be judged.
type Target struct {
	Name    string
	Key     string // what it is, to the byte if possible: a log of another key is not continued
	LM      LM
	Context int // tokens
}

// InputError is data, settings or a choice of tasks that cannot be used. Nothing was asked then.
type InputError struct {
	error
	Usage bool // it is the caller's choice, not a file, that is wrong
}

// Unwrap gives the cause.
func (e *InputError) Unwrap() error { return e.error }

// job is a prepared task.
type job struct {
	*Job
	task *Task
	plan *Plan
}

// Run prepares all tasks, then puts them to one model after the other. With an output folder a call that was stopped goes on
// where it was: samples that its logs hold are not asked again.
func Run(ctx context.Context, targets []Target, tasks []Task, opt Options) (*Evaluation, error) {
	if err := check(targets, tasks); err != nil {
		return nil, &InputError{err, true}
	}
	opt.measure(targets)
	if err := opt.checkSettings(tasks); err != nil {
		return nil, &InputError{err, true}
	}
	var jobs []job
	for i := range tasks {
		j, err := opt.prepare(&tasks[i])
		if err != nil {
			var in *InputError
			return nil, &InputError{fmt.Errorf("%s: %w", tasks[i].Name, err), errors.As(err, &in) && in.Usage}
		}
		jobs = append(jobs, j)
	}
	ev := &Evaluation{Seed: opt.Seed, Limit: opt.Limit, Data: opt.Data}
	for i := range targets {
		m := Judged{Name: targets[i].Name, Context: targets[i].Context}
		if s, ok := targets[i].LM.(*Subject); ok {
			m.Arch, m.Parameters = s.Model.Config.Arch, s.Model.Params.Count()
		}
		for _, j := range jobs {
			r, err := opt.run(ctx, &targets[i], j)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", targets[i].Name, j.task.Name, err)
			}
			m.Results = append(m.Results, *r)
		}
		if s, ok := targets[i].LM.(*Subject); ok {
			s.Close()
		}
		ev.Models = append(ev.Models, m)
	}
	ev.compare(opt.Seed)
	ev.average(tasks)
	return ev, nil
}

// check finds what cannot work before anything is read.
func check(targets []Target, tasks []Task) error {
	if len(targets) == 0 || len(tasks) == 0 {
		return errors.New("an evaluation needs a model and a task")
	}
	var names []string
	for _, t := range targets {
		if slices.Contains(names, fileName(t.Name)) {
			return fmt.Errorf("two models have the name %s", t.Name)
		}
		names = append(names, fileName(t.Name))
		for _, task := range tasks {
			if _, ours := t.LM.(*Subject); task.Inside && !ours {
				return fmt.Errorf("task %s looks into the model, which %s does not allow; leave it out", task.Name, t.Name)
			}
		}
	}
	return nil
}

// measure takes what prompts are sized by from the models.
func (o *Options) measure(targets []Target) {
	o.context = targets[0].Context
	o.count = func(s string) int { return (len(s) + 3) / 4 } // a usual ratio, where no tokenizer is at hand
	for i := len(targets) - 1; i >= 0; i-- {
		o.context = min(o.context, targets[i].Context)
		if s, ok := targets[i].LM.(*Subject); ok {
			o.count = func(text string) int { return len(s.encode(text)) }
		}
	}
}

func (o *Options) prepare(t *Task) (job, error) {
	p, err := o.plan(t)
	if err != nil {
		return job{}, err
	}
	j, err := t.Prepare(p)
	if err != nil {
		return job{}, err
	}
	if len(j.IDs) == 0 {
		return job{}, errors.New("there is nothing to ask: the set is empty")
	}
	seen := map[string]bool{}
	for _, id := range j.IDs {
		if seen[id] {
			return job{}, fmt.Errorf("two samples have the id %q", id)
		}
		seen[id] = true
	}
	if j.Config == nil {
		j.Config = map[string]any{}
	}
	if j.Chance > 0 {
		j.Config["chance"] = j.Chance
	}
	for _, s := range t.Settings {
		j.Config[s.Key] = p.values[s.Key]
	}
	return job{Job: j, task: t, plan: p}, nil
}

// key identifies what a log's samples answer: task, settings, questions and model.
func (o *Options) key(t *Target, j job) (string, error) {
	b, err := json.Marshal([]any{t.Key, t.Context, o.context, j.task.Name, j.task.Version, j.plan.shots, o.Seed, o.Data, o.JudgeName, j.Config, j.IDs, j.Gold})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), nil
}

// run asks one model what its log does not hold yet.
func (o *Options) run(ctx context.Context, t *Target, j job) (r *Result, err error) {
	key, err := o.key(t, j)
	if err != nil {
		return nil, err
	}
	path := ""
	if o.Output != "" {
		path = filepath.Join(o.Output, fileName(t.Name), "samples_"+fileName(j.task.Name)+".jsonl")
	}
	log, done, seconds, err := openLog(path, logHead{j.task.Name, key, len(j.IDs)}, o.LogSamples)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	var open []int
	for i, id := range j.IDs {
		if _, ok := done[id]; !ok {
			open = append(open, i)
		}
	}
	if done == nil {
		done = map[string]Answer{}
	}
	spent, err := o.ask(ctx, t, j, log, open, done)
	if err != nil {
		return nil, err
	}
	return j.result(done, seconds+spent)
}

// ask puts the open questions in chunks, and logs each chunk.
func (o *Options) ask(ctx context.Context, t *Target, j job, log *sampleLog, open []int, done map[string]Answer) (seconds float64, err error) {
	chunk := j.Chunk
	if chunk == 0 {
		chunk = 64
	}
	begin := time.Now()
	for len(open) > 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if o.Progress != nil {
			o.Progress(Progress{t.Name, j.task.Name, len(j.IDs) - len(open), len(j.IDs), time.Since(begin)})
		}
		n := min(chunk, len(open))
		start := time.Now()
		samples, err := j.Ask(ctx, t.LM, open[:n])
		if err != nil {
			return 0, err
		}
		if len(samples) != n {
			return 0, fmt.Errorf("%d questions gave %d samples", n, len(samples))
		}
		if err := allFinite(samples); err != nil {
			return 0, err
		}
		for i := range samples {
			samples[i].ID = j.IDs[open[i]]
		}
		took := time.Since(start).Seconds()
		if err := log.write(samples, took); err != nil {
			return 0, err
		}
		for _, s := range samples {
			done[s.ID] = s
		}
		seconds += took
		open = open[n:]
	}
	return seconds, nil
}

// result gathers the samples in the order of the questions.
func (j job) result(done map[string]Answer, seconds float64) (*Result, error) {
	t := j.task
	r := &Result{Task: t.Name, Group: t.Group, Version: t.Version, Shots: max(j.plan.shots, 0), N: len(j.IDs), Seconds: seconds, Config: j.Config}
	for _, id := range j.IDs {
		r.Answers = append(r.Answers, done[id])
	}
	for _, m := range t.Measures {
		if x := meanOf(r.Answers, m.Name); x.N > 0 {
			r.Add(m.Name, m.Better, x)
		}
	}
	if j.Finish != nil {
		if err := j.Finish(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// allFinite refuses what no file can hold and no mean survives.
func allFinite(list []Answer) error {
	for i := range list {
		for name, x := range list[i].Values {
			if !finite(x) {
				return fmt.Errorf("%s is %g: the model has diverged, or its weights are damaged", name, x)
			}
		}
	}
	return nil
}
