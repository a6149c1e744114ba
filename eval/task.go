package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Task is one kind of evaluation.
type Task struct {
	Name     string    // as in --tasks and in results; the evaluation harness's name where it has the same task
	Group    string    // selecting the group selects all of its members
	Place    int       // position in listings and reports
	Version  int       // raised whenever questions or scoring change
	Doc      string    // one line
	Shots    int       // solved examples before each question by default; −1: the task has none
	Measures []Measure // measures of each sample, the headline first
	Settings []Setting // the task's own settings
	Inside   bool      // inspects the model: only for our own
	Beside   bool      // accompanies its group but is not part of the group's mean
	Slow     bool      // not part of "all": must be selected by name
	Timed    bool      // measures speed: threads and machine are part of its result's identity

	// Valid rejects settings that do not fit each other or the context; each by itself is checked by its Rule. It reads
	// no files and counts no tokens, so that it can be asked before there is a tokenizer. It may be nil.
	Valid func(p *Plan) error

	// Prepare reads the data and draws the questions, so that bad data is found before any long work. Every model gets
	// the same questions. It returns soon after the context ends: every loop over samples, rows or documents checks it.
	Prepare func(ctx context.Context, p *Plan) (*Job, error)

	preset map[string]string // settings fixed by With
}

// With returns the task with some settings fixed; the user's own settings still override them.
func (t Task) With(set map[string]string) Task {
	merged := maps.Clone(t.preset)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, set)
	t.preset = merged
	return t
}

// Measure is a number that every sample of a task has.
type Measure struct {
	Name   string
	Better Better
	Label  string // description for readers; empty: the name
}

// Better is the direction in which a metric improves.
type Better int8

// The directions.
const (
	Neither Better = iota
	Lower
	Higher
)

// Job is a prepared task: its questions are fixed.
type Job struct {
	Config map[string]any // decisions made, for the report
	IDs    []string       // one per sample, unique; used by the log and the paired test
	Chunk  int            // questions per Ask; 0: 64
	Floors Floors         // what guessing scores
	Gold   []Continuation // prompt and right answer of each sample, if there is exactly one right answer

	// Ask asks a model some of the questions, given by their index in IDs.
	Ask func(ctx context.Context, lm LM, which []int) ([]Answer, error)
	// Finish adds results that are not means over samples: derived measures, data of figures. It may be nil.
	Finish func(r *Result) error
}

// Floors are scores that need no knowledge: metric → name of the floor → value. "chance" is what guessing earns.
type Floors map[string]map[string]float64

// Chance is the floor "chance" of some metrics.
func Chance(value float64, metrics ...string) Floors {
	f := Floors{}
	for _, m := range metrics {
		f.Set(m, "chance", value)
	}
	return f
}

// Set adds a floor.
func (f Floors) Set(metric, floor string, value float64) {
	if f[metric] == nil {
		f[metric] = map[string]float64{}
	}
	f[metric][floor] = value
}

// NewJob begins a job with one numbered sample for each text; other texts make another job.
func NewJob(texts []string, chunk int) *Job {
	j := &Job{Chunk: chunk, Config: map[string]any{"text_hash": HashText(texts...)}}
	for i := range texts {
		j.IDs = append(j.IDs, strconv.Itoa(i))
	}
	return j
}

// ErrDiverged says that an answer has a number that is not finite.
var ErrDiverged = errors.New("the model has diverged, or its weights are damaged")

// Answer is a model's answer to one question. Values holds the task's measures; Weights is the number of units (for
// example tokens) that a value is the mean of, if not 1; Detail is further data for Finish, in the task's own type.
type Answer struct {
	ID      string             `json:"id"`
	Values  map[string]float64 `json:"values"`
	Weights map[string]float64 `json:"weights,omitempty"`
	Cluster string             `json:"cluster,omitempty"` // samples of a cluster, such as one text, are one for errors
	Detail  json.RawMessage    `json:"detail,omitempty"`
	Doc     map[string]any     `json:"doc,omitempty"` // prompt, answer, what was wanted: kept on request
}

// cluster is the unit over which the sample's error is computed.
func (a *Answer) cluster() string { return cmp.Or(a.Cluster, a.ID) }

// Weight is the number of units of a value.
func (a *Answer) Weight(name string) float64 {
	if w, ok := a.Weights[name]; ok {
		return w
	}
	return 1
}

// Put stores sum/n as the mean of n units, if n is not zero.
func (a *Answer) Put(name string, sum, n float64) {
	if n <= 0 {
		return
	}
	if a.Values == nil {
		a.Values = map[string]float64{}
	}
	if a.Weights == nil {
		a.Weights = map[string]float64{}
	}
	a.Values[name], a.Weights[name] = sum/n, n
}

// SetDetail stores the task's own data of this answer.
func (a *Answer) SetDetail(v any) error {
	b, err := marshal(v)
	a.Detail = b
	return err
}

// marshal encodes JSON. A number that JSON cannot represent comes from a diverged model.
func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	var bad *json.UnsupportedValueError
	if errors.As(err, &bad) {
		err = fmt.Errorf("%w: %w", err, ErrDiverged)
	}
	return b, err
}

// Details reads the details of all answers in the task's own type.
func Details[T any](answers []Answer) ([]T, error) {
	out := make([]T, len(answers))
	for i := range answers {
		if err := json.Unmarshal(answers[i].Detail, &out[i]); err != nil {
			return nil, fmt.Errorf("detail of sample %s: %w", answers[i].ID, err)
		}
	}
	return out, nil
}

// Select resolves names of tasks and groups, each task once, in the order named. "all" is every task that is not slow.
func Select(all []Task, names []string) ([]Task, error) {
	var out []Task
	add := func(t Task) {
		if !slices.ContainsFunc(out, func(o Task) bool { return o.Name == t.Name }) {
			out = append(out, t)
		}
	}
	for _, name := range names {
		known := false
		for _, t := range all {
			if t.Name == name || t.Group != "" && t.Group == name || name == "all" && !t.Slow {
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

// taskNames lists the groups, and the tasks without a group.
func taskNames(all []Task) []string {
	var out []string
	for _, t := range all {
		if n := cmp.Or(t.Group, t.Name); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// MarshalText writes a direction as "higher", "lower" or nothing.
func (d Better) MarshalText() ([]byte, error) { return []byte(directions[d]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Better) UnmarshalText(b []byte) error {
	for k, name := range directions {
		if name == string(b) {
			*d = k
			return nil
		}
	}
	return fmt.Errorf("eval: %q is not a direction; want higher, lower or nothing", b)
}

var directions = map[Better]string{Neither: "", Lower: "lower", Higher: "higher"}
