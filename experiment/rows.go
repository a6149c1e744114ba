package experiment

import (
	"encoding/json"
	"fmt"

	"antiphase/eval"
	"antiphase/internal/escape"
)

// Row is one measure of one run, with everything that statistics over runs need. Pages and documents are made from
// rows.
type Row struct {
	origin

	Measure  string             `json:"measure"`          // such as "lm.loss" or "curve.valid_loss"
	Metric   string             `json:"metric,omitempty"` // of the task
	Label    string             `json:"label,omitempty"`
	Better   eval.Better        `json:"better,omitempty"`
	Value    float64            `json:"value"`
	StdErr   float64            `json:"stderr,omitempty"` // over items
	N        int                `json:"n,omitempty"`
	Floors   map[string]float64 `json:"floors,omitempty"`
	Task     *TaskInfo          `json:"task,omitempty"`
	Items    []float64          `json:"items,omitempty"`    // by sample, in the order of the questions
	Weights  []float64          `json:"weights,omitempty"`  // of the samples; none: all 1
	Clusters []string           `json:"clusters,omitempty"` // of the samples; none: each its own
	Curve    [][2]float64       `json:"curve,omitempty"`    // training tokens and value, at most CurvePoints of them
	Detail   json.RawMessage    `json:"detail,omitempty"`   // data of the task's figures
	Timing   bool               `json:"timing,omitempty"`   // differs between machines and calls
	Note     string             `json:"note,omitempty"`
}

// origin is what all rows of a run share.
type origin struct {
	Experiment string  `json:"experiment,omitempty"`
	Run        string  `json:"run,omitempty"`
	Size       string  `json:"size,omitempty"`
	Arch       string  `json:"arch,omitempty"`
	LR         float64 `json:"lr,omitempty"`
	Seed       uint64  `json:"seed,omitempty"`
	Tuned      string  `json:"tuned_by,omitempty"` // the measure that chooses learning rates; none: held-out loss
	Parameters int     `json:"parameters,omitempty"`
	Steps      int     `json:"steps,omitempty"`
	Tokens     int64   `json:"tokens,omitempty"`
	Data       string  `json:"data,omitempty"`     // hash of the token set; rows of older versions have none
	Settings   string  `json:"settings,omitempty"` // see Run.settings; rows of older versions have none

	Precision string `json:"precision,omitempty"` // see origin.precision
	Machine   string `json:"machine,omitempty"`
	Commit    string `json:"commit,omitempty"`
	Command   string `json:"command,omitempty"`
}

// TaskInfo describes the question.
type TaskInfo struct {
	Name     string         `json:"name,omitempty"`
	Kind     string         `json:"kind,omitempty"`
	Question string         `json:"question"` // runs with the same one can be paired by item
	Place    int            `json:"place,omitempty"`
	Version  int            `json:"version,omitempty"`
	Context  int            `json:"context,omitempty"`
	Seed     uint64         `json:"seed,omitempty"` // that drew the questions
	Config   map[string]any `json:"config,omitempty"`
}

// The measures that end the rows of a run.
const (
	Finished = "finished" // its value is the number of rows before it
	Failed   = "failed"   // the loss was not finite; its value is the number of finite steps
)

// whole reports whether the rows of a run are complete.
func whole(rows []Row) bool {
	if len(rows) == 0 {
		return false
	}
	last := rows[len(rows)-1]
	return last.Measure == Failed || last.Measure == Finished && int(last.Value) == len(rows)-1
}

// CurvePoints is the largest number of points of a curve in a row.
const CurvePoints = 200

// check finds what no row has.
func (r *Row) check() error {
	for _, f := range [][2]string{{"run", r.Run}, {"measure", r.Measure}, {"size", r.Size}, {"arch", r.Arch}} {
		if f[1] == "" {
			return fmt.Errorf("not a row of an experiment: it has no %s", f[0])
		}
	}
	for _, x := range append([]float64{r.StdErr, r.LR, float64(min(r.N, r.Parameters, r.Steps, int(r.Tokens)))},
		r.Weights...) {
		if x < 0 {
			return fmt.Errorf("%s of %s: standard error, weights, counts and learning rate: is %g, must not be "+
				"negative", r.Measure, r.Run, x)
		}
	}
	if n, w, c := len(r.Items), len(r.Weights), len(r.Clusters); w > 0 && w != n || c > 0 && c != n {
		return fmt.Errorf("%d items, %d weights and %d clusters: there must be as many", n, w, c)
	}
	return nil
}

// escape makes control characters visible in all words that tables and documents print.
func (r *Row) escape() {
	list := []*string{&r.Experiment, &r.Run, &r.Size, &r.Arch, &r.Tuned, &r.Data, &r.Settings, &r.Precision,
		&r.Machine, &r.Commit, &r.Command, &r.Measure, &r.Metric, &r.Label, &r.Note}
	if t := r.Task; t != nil {
		list = append(list, &t.Name, &t.Kind, &t.Question)
	}
	for _, text := range list {
		*text = escape.Line(*text)
	}
}
