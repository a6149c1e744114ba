package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Task is one way to judge a model. A task's file holds a function that returns it (or a family of them), and one line
// of Tasks lists that function.
type Task struct {
	Name     string    // as in --tasks and in results; the evaluation harness's name where it has the same task
	Group    string    // naming the group asks for all of its members
	Version  int       // raised whenever questions or scoring change
	Doc      string    // one line
	Shots    int       // solved examples before each question, unless the user says otherwise; −1: the task has none
	Measures []Measure // what each sample is measured by, the headline first
	Settings []Setting // the task's own dials
	Inside   bool      // looks into the model: for our own only
	Beside   bool      // accompanies its group and is not part of the group's mean
	Slow     bool      // left out of "all": must be asked for by name

	// Prepare reads the data and draws the questions, so that bad data is found before any long work. Every model gets
	// the same questions.
	Prepare func(p *Plan) (*Job, error)
}

// Measure is a number that every sample of a task has.
type Measure struct {
	Name   string
	Better direction
}

// Job is a prepared task: its questions are fixed.
type Job struct {
	Config map[string]any // what was decided, for the report
	IDs    []string       // one per sample, unique: the log and the paired test go by them
	Chunk  int            // questions per Ask; 0: 64
	Chance float64        // what guessing scores in the headline measure; 0 where nothing can be guessed
	Gold   []Continuation // prompt and right answer of each sample, where there is one right answer

	// Ask puts some of the questions, by their index in IDs, to a model.
	Ask func(ctx context.Context, lm LM, which []int) ([]Answer, error)
	// Finish adds what is more than a mean over samples: derived measures, the data of figures. It may be nil.
	Finish func(r *Result) error
}

// jobOf begins a job with one sample for each text: they are numbered, and another set of texts is another job.
func jobOf(texts []string, chunk int) *Job {
	j := &Job{Chunk: chunk, Config: map[string]any{"text_hash": textHash(texts...)}}
	for i := range texts {
		j.IDs = append(j.IDs, strconv.Itoa(i))
	}
	return j
}

// Answer is a model's answer to one question. Values hold the task's measures and whatever else Finish needs;
// Weights say how many units (tokens, say) a value is the mean of, where it is not 1.
type Answer struct {
	ID      string             `json:"id"`
	Values  map[string]float64 `json:"values"`
	Weights map[string]float64 `json:"weights,omitempty"`
	Cluster string             `json:"cluster,omitempty"` // samples of one cluster (the same text asked about in several ways) count as one for errors
	Doc     map[string]any     `json:"doc,omitempty"`     // prompt, answer, what was wanted: kept where asked for
}

// cluster is what the sample's error goes by.
func (a *Answer) cluster() string { return cmp.Or(a.Cluster, a.ID) }

// weight is the number of units behind a value.
func (a *Answer) weight(name string) float64 {
	if w, ok := a.Weights[name]; ok {
		return w
	}
	return 1
}

// Tasks lists every task, in the order of the paper.
func Tasks() []Task {
	return slices.Concat(
		lmTasks(),
		mcTasks(),
		needleTasks(),
		attentionTasks(),
		outlierTasks(),
		geometryTasks(),
		lowbitTasks(),
		throughputTasks(),
		iclTasks(),
		orderTasks(),
		hallucinationTasks(),
		mathTasks(),
	)
}

// Select resolves names of tasks and groups, each task once, in the order named. "all" stands for every task that is not slow.
func Select(names []string) ([]Task, error) {
	all := Tasks()
	var out []Task
	add := func(t Task) {
		if !slices.ContainsFunc(out, func(o Task) bool { return o.Name == t.Name }) {
			out = append(out, t)
		}
	}
	for _, name := range names {
		known := false
		for _, t := range all {
			if t.Name == name || t.Group == name || name == "all" && !t.Slow {
				add(t)
				known = true
			}
		}
		if !known {
			return nil, fmt.Errorf("task %q is unknown; there are %s", name, strings.Join(taskNames(all), ", "))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no task; there are %s", strings.Join(taskNames(all), ", "))
	}
	return out, nil
}

// taskNames are the groups, and the tasks that are in none.
func taskNames(all []Task) []string {
	var out []string
	for _, t := range all {
		if n := cmp.Or(t.Group, t.Name); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
