package eval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"antiphase/tokenizer"
)

// Options are the user's settings of an evaluation.
type Options struct {
	Data       string            // folder of data sets; empty: generated stand-ins
	Seed       uint64            // seed of examples, orders, prompts and stand-ins
	Limit      int               // maximum samples per task; 0: all
	Shots      int               // solved examples before each question; negative: each task's default
	Set        map[string]string // settings of tasks, see Setting
	Output     string            // folder of the store; empty: nothing is written
	Replicate  string            // name of a repetition, whose results are stored in addition to the first
	LogSamples bool              // keep prompts and answers
	Judge      LM                // judges answers that no rule can score; nil: none
	JudgeName  string            // its name, for the report
	Tasks      []Task            // additional tasks, for tasks that use another task: those from files
	Machine    string            // for the report, and part of the identity of tasks that measure speed
	Commit     string            // of this program, for the report
	Progress   func(Progress)

	context int              // tokens: the smallest context of the models
	count   func(string) int // tokens of a text, by the first model that can count them
	tokens  *tokenizer.Tokenizer
}

// Progress is the progress of a task.
type Progress struct {
	Model, Task string
	Done, Total int
	Elapsed     time.Duration // in this call
}

// Target is a model to be evaluated.
type Target struct {
	Model
	LM LM
}

// InputError is data, settings or a choice of tasks that cannot be used. Nothing was asked.
type InputError struct {
	error
	Usage bool // the caller's choice is wrong, not a file
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.error }

// BadSetting is an InputError about a task's settings: a value out of range, or one that does not fit the models'
// context. Other errors of Prepare are about files.
func BadSetting(format string, args ...any) error {
	return &InputError{fmt.Errorf(format, args...), true}
}

// Prepared is a task with its questions drawn.
type Prepared struct {
	*Job
	Task *Task
	Plan *Plan
}

// Data identifies the content of all files that the questions come from.
func (j *Prepared) Data() []string { return j.Plan.dataHash() }

// Run prepares all tasks, then runs them on one model after the other. Cells that the store already has are not asked
// again; partial cells are completed.
func Run(ctx context.Context, targets []Target, tasks []Task, opt Options) (ev *Evaluation, err error) {
	jobs, skipped, err := opt.jobs(ctx, targets, tasks)
	if err != nil {
		return nil, err
	}
	store, err := OpenStore(opt.Output)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var cells []*Cell
	for i := range targets {
		for _, j := range jobs {
			c, err := opt.run(ctx, store, &targets[i], j)
			if errors.Is(err, ErrCannot) {
				skipped = append(skipped, Skip{targets[i].Name, j.Task.Name, err.Error()})
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", targets[i].Name, j.Task.Name, err)
			}
			cells = append(cells, c)
		}
		if s, ok := targets[i].LM.(*Subject); ok {
			s.Close()
		}
	}
	if len(cells) == 0 {
		return nil, &InputError{fmt.Errorf("%s: %s: %s; nothing else was asked for", skipped[0].Model, skipped[0].Task,
			skipped[0].Why), true}
	}
	ev = Assemble(cells)
	ev.Warnings, ev.Skipped = store.Warnings, skipped
	return ev, nil
}

// Rehearse prepares all tasks and asks nothing: it finds what is wrong with settings, texts and files. The target needs
// a tokenizer and a context, but no model.
func Rehearse(ctx context.Context, like Target, tasks []Task, opt Options) error {
	_, _, err := opt.jobs(ctx, []Target{like}, tasks)
	return err
}

// jobs checks the input and prepares the tasks that at least one model can be asked.
func (o *Options) jobs(ctx context.Context, targets []Target, tasks []Task) (jobs []*Prepared,
	skipped []Skip, err error) {
	if err := check(targets, tasks); err != nil {
		return nil, nil, &InputError{err, true}
	}
	o.Measure(targets)
	if err := o.CheckSettings(tasks); err != nil {
		return nil, nil, &InputError{err, true}
	}
	for i := range tasks {
		if why := unable(targets, &tasks[i]); len(why) == len(targets) { // no model can be asked: no need to prepare it
			skipped = append(skipped, why...)
			continue
		}
		j, err := o.Prepare(ctx, &tasks[i])
		if err != nil && ctx.Err() != nil {
			return nil, nil, fmt.Errorf("%s: %w", tasks[i].Name, err) // interrupted: the input is not at fault
		}
		if err != nil {
			var in *InputError
			return nil, nil, &InputError{fmt.Errorf("%s: %w", tasks[i].Name, err), errors.As(err, &in) && in.Usage}
		}
		jobs = append(jobs, j)
	}
	return jobs, skipped, nil
}

// check finds errors before anything is read.
func check(targets []Target, tasks []Task) error {
	if len(targets) == 0 || len(tasks) == 0 {
		return errors.New("an evaluation needs a model and a task")
	}
	var names []string
	for _, t := range targets {
		if slices.Contains(names, t.Name) {
			return fmt.Errorf("two models have the name %s", t.Name)
		}
		names = append(names, t.Name)
	}
	return nil
}

// Measure takes the sizes for prompts from the models.
func (o *Options) Measure(targets []Target) {
	o.context = targets[0].Context
	o.count = func(s string) int { return (len(s) + 3) / 4 } // a typical ratio, if there is no tokenizer
	for i := len(targets) - 1; i >= 0; i-- {
		o.context = min(o.context, targets[i].Context)
		if s, ok := targets[i].LM.(*Subject); ok {
			o.count = s.Count
			o.tokens = s.Tokenizer
		}
	}
}

// Within returns the same options for prompts of at most this many tokens.
func (o *Options) Within(tokens int) Options {
	out := *o
	out.context = min(o.context, tokens)
	return out
}

// Prepare draws a task's questions. Measure must have been called.
func (o *Options) Prepare(ctx context.Context, t *Task) (*Prepared, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := o.plan(t)
	if err != nil {
		return nil, err
	}
	j, err := t.Prepare(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(j.IDs) == 0 {
		return nil, errors.New("there is nothing to ask: the set is empty")
	}
	seen := map[string]bool{}
	for _, id := range j.IDs {
		if seen[id] {
			return nil, BadSetting("a setting asks for the same question twice: two samples have the id %q", id)
		}
		seen[id] = true
	}
	if j.Config == nil {
		j.Config = map[string]any{}
	}
	for _, s := range t.Settings {
		j.Config[s.Key] = p.Values[s.Key]
	}
	return &Prepared{Job: j, Task: t, Plan: p}, nil
}

// hash identifies values that JSON can represent.
func hash(values ...any) (string, error) {
	b, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12]), nil
}

// question identifies everything that is asked, independent of the model.
func (o *Options) question(j *Prepared) (string, error) {
	return hash(j.Task.Name, j.Task.Version, j.Plan.Shots, o.Seed, o.context, o.JudgeName, j.Config, j.Plan.dataHash(),
		j.IDs, j.Gold, o.Replicate)
}

// head returns a cell's key and head.
func (o *Options) head(t *Target, j *Prepared) (string, Head, error) {
	question, err := o.question(j)
	if err != nil {
		return "", Head{}, err
	}
	m := t.Model
	m.Hash = cmp.Or(m.Hash, "named "+m.Name) // nothing else is known that distinguishes it
	if s, ok := t.LM.(*Subject); ok {
		m.Arch, m.Parameters = s.Model.Config.Arch, s.Model.Params.Count()
	}
	machine := ""
	if j.Task.Timed {
		machine = o.Machine
	} else {
		m.Threads = 0
	}
	key, err := hash(question, m.Hash, m.Context, m.Precision, m.Device, m.Threads, machine)
	return key, Head{Model: m, Question: question, Task: publicName(j.Task.Name, j.Config), Version: j.Task.Version,
		Shots: max(j.Plan.Shots, 0), Config: j.Config, Data: o.Data, Seed: o.Seed, Limit: o.Limit, Samples: len(j.IDs),
		Replicate: o.Replicate,
		Machine:   o.Machine, Commit: o.Commit, Time: time.Now().UTC().Truncate(time.Second)}, err
}

// open finds a model's cell, or begins it, and lists the questions without an answer in the store.
func (o *Options) open(store *Store, t *Target, j *Prepared) (key string, head Head, open []int, err error) {
	if err := t.can(j.Task); err != nil {
		return "", head, nil, err
	}
	if key, head, err = o.head(t, j); err != nil {
		return key, head, nil, err
	}
	cell := store.cells[key]
	if cell == nil || cell.Head.Model != head.Model { // a new cell, or one with another label
		if err := store.write(row{Cell: key, Head: &head}); err != nil {
			return key, head, nil, err
		}
		cell = store.cells[key]
	}
	for i, id := range j.IDs {
		if _, ok := cell.Answers[id]; !ok || o.LogSamples && !cell.logged[id] {
			open = append(open, i)
		}
	}
	return key, head, open, nil
}

// run asks one model what the store does not have yet.
func (o *Options) run(ctx context.Context, store *Store, t *Target, j *Prepared) (*Cell, error) {
	key, head, open, err := o.open(store, t, j)
	if err != nil {
		return nil, err
	}
	cell := store.cells[key]
	if err := o.ask(ctx, store, key, t, j, open); err != nil {
		return nil, err
	}
	if cell.Result == nil || len(open) > 0 {
		r, err := j.result(cell)
		if err != nil {
			return nil, err
		}
		r.Question = head.Question
		if err := store.write(row{Cell: key, Result: r}); err != nil {
			return nil, err
		}
	}
	cell.Result.Answers = j.ordered(cell)
	return cell, nil
}

// ask asks the open questions in chunks, and stores each chunk.
func (o *Options) ask(ctx context.Context, store *Store, key string, t *Target, j *Prepared, open []int) error {
	chunk := j.Chunk
	if chunk == 0 {
		chunk = 64
	}
	begin := time.Now()
	for len(open) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(Progress{t.Name, j.Task.Name, len(j.IDs) - len(open), len(j.IDs), time.Since(begin)})
		}
		n := min(chunk, len(open))
		start := time.Now()
		answers, err := j.Ask(ctx, t.LM, open[:n])
		if err != nil {
			return err
		}
		if len(answers) != n {
			return fmt.Errorf("%d questions gave %d samples", n, len(answers))
		}
		if err := allFinite(answers); err != nil {
			return err
		}
		rows := make([]row, n)
		for i := range answers {
			answers[i].ID = j.IDs[open[i]]
			if !o.LogSamples {
				answers[i].Doc = nil
			}
			rows[i] = row{Cell: key, Answer: &answers[i], Logged: o.LogSamples}
		}
		rows[n-1].Seconds = time.Since(start).Seconds()
		if err := store.write(rows...); err != nil {
			return err
		}
		open = open[n:]
	}
	return nil
}

// ordered returns the answers in the order of the questions.
func (j *Prepared) ordered(c *Cell) []Answer {
	out := make([]Answer, len(j.IDs))
	for i, id := range j.IDs {
		out[i] = c.Answers[id]
	}
	return out
}

// result computes the metrics from the answers.
func (j *Prepared) result(c *Cell) (*Result, error) {
	t := j.Task
	r := &Result{Task: publicName(t.Name, j.Config), Kind: t.Name, Group: t.Group, Beside: t.Beside, Place: t.Place,
		Version: t.Version, Shots: max(j.Plan.Shots, 0), N: len(j.IDs), Context: j.Plan.Context, Limit: j.Plan.Limit,
		Seconds: c.Seconds, Config: j.Config, Answers: j.ordered(c)}
	for _, m := range t.Measures {
		x := MeanOf(r.Answers, m.Name)
		if x.N == 0 {
			continue
		}
		r.Add(m.Name, m.Label, m.Better, x)
		last := &r.Metrics[len(r.Metrics)-1]
		last.Low, last.High = meanInterval(r.Answers, m.Name, x)
	}
	if j.Finish != nil {
		if err := j.Finish(r); err != nil {
			return nil, err
		}
	}
	for i := range r.Metrics {
		r.Metrics[i].Floors = j.Floors[r.Metrics[i].Name]
	}
	return r, nil
}

// allFinite rejects values that are not finite, which neither JSON nor a mean can handle.
func allFinite(list []Answer) error {
	for i := range list {
		for name, x := range list[i].Values {
			if !Finite(x) {
				return fmt.Errorf("%s is %g: %w", name, x, ErrDiverged)
			}
		}
	}
	return nil
}
