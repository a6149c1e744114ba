package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"antiphase/eval"
)

// Row is one measure of one run, with everything that statistics over runs need. Pages and documents are made from
// rows.
type Row struct {
	Experiment string  `json:"experiment"`
	Run        string  `json:"run"`
	Size       string  `json:"size"`
	Arch       string  `json:"arch"`
	LR         float64 `json:"lr"`
	Seed       uint64  `json:"seed"`
	Tuned      string  `json:"tuned_by,omitempty"` // the measure that chooses learning rates; none: held-out loss
	Parameters int     `json:"parameters"`
	Steps      int     `json:"steps"`
	Tokens     int64   `json:"tokens"`

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

	Machine string `json:"machine,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Command string `json:"command,omitempty"`
}

// TaskInfo describes the question.
type TaskInfo struct {
	Name     string         `json:"name"`
	Kind     string         `json:"kind"`
	Question string         `json:"question"` // runs with the same one can be paired by item
	Place    int            `json:"place"`
	Version  int            `json:"version"`
	Context  int            `json:"context"`
	Seed     uint64         `json:"seed"` // that drew the questions
	Config   map[string]any `json:"config,omitempty"`
}

// The measures that end the rows of a run.
const (
	Finished = "finished" // its value is the number of rows before it
	Failed   = "failed"   // the loss was not finite; its value is the number of finite steps
)

// whole reports whether the rows of a run are complete.
func whole(rows []Row) bool {
	last := rows[len(rows)-1]
	return last.Measure == Failed || last.Measure == Finished && int(last.Value) == len(rows)-1
}

// CurvePoints is the largest number of points of a curve in a row.
const CurvePoints = 200

// ReadRows reads rows, one JSON object per line.
func ReadRows(r io.Reader) ([]Row, error) {
	var out []Row
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var x Row
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err := x.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, x)
	}
	return out, in.Err()
}

// check finds what no row has.
func (r *Row) check() error {
	for _, f := range [][2]string{{"run", r.Run}, {"measure", r.Measure}, {"size", r.Size}, {"arch", r.Arch}} {
		if f[1] == "" {
			return fmt.Errorf("not a row of an experiment: it has no %s", f[0])
		}
	}
	if n, w, c := len(r.Items), len(r.Weights), len(r.Clusters); w > 0 && w != n || c > 0 && c != n {
		return fmt.Errorf("%d items, %d weights and %d clusters: there must be as many", n, w, c)
	}
	return nil
}

// ReadRowFiles reads the rows of some files.
func ReadRowFiles(paths ...string) ([]Row, error) {
	var out []Row
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		rows, err := ReadRows(f)
		_ = f.Close() // opened for reading only
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, rows...)
	}
	return out, nil
}

// encode writes rows, one JSON object per line.
func encode(rows []Row) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range rows {
		if err := e.Encode(&rows[i]); err != nil {
			return nil, fmt.Errorf("row %s of %s: %w", rows[i].Measure, rows[i].Run, err)
		}
	}
	return b.Bytes(), nil
}
