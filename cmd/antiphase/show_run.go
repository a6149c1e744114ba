package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"antiphase/metrics"
	"antiphase/recipe"
	"antiphase/train"
)

// shownRun is what a checkpoint and its run's metrics state about the training.
type shownRun struct {
	Step       int              `json:"step"`
	Steps      int              `json:"total_steps"`
	Tokens     int64            `json:"tokens"`
	Loss       float64          `json:"loss"`
	LossEMA    float64          `json:"loss_ema"`
	Valid      *float64         `json:"valid_loss,omitempty"` // the last one measured
	Data       []recipe.Source  `json:"data"`
	DataSet    string           `json:"data_set"` // its hash
	Epoch      *float64         `json:"epoch,omitempty"`
	Began      *time.Time       `json:"began,omitempty"` // the first step's row
	Saved      *time.Time       `json:"saved,omitempty"` // this checkpoint
	Parent     *train.Parent    `json:"parent,omitempty"`
	Computed   []train.Computed `json:"computed,omitempty"`
	Warnings   map[string]int   `json:"warnings"` // steps with each kind
	WarnedLast int              `json:"last_warning,omitempty"`
}

// describeRun adds what is known about the training: the state, and the rows of the run folder if there is one.
func describeRun(a *app, s *shown, saved *train.Saved) {
	st, r := saved.State, saved.Recipe
	s.Run = &shownRun{Step: st.Step, Steps: r.Train.Steps, Tokens: st.Tokens, Loss: st.Loss, LossEMA: st.EMA,
		Data: r.Data.Sources, DataSet: st.Data.Dataset, Parent: st.Parent, Computed: st.Computed,
		Warnings: map[string]int{}}
	if st.Valid != 0 {
		s.Run.Valid = &st.Valid
	}
	if info, err := os.Stat(saved.Checkpoint.Path("MANIFEST.json")); err == nil {
		t := info.ModTime().UTC().Truncate(time.Second)
		s.Run.Saved = &t
	}
	path := filepath.Join(saved.Checkpoint.Dir, "..", "..", metrics.FileName)
	rows, err := metrics.Read(path, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return // a checkpoint without its run
	}
	if i := slices.IndexFunc(rows, func(r metrics.Row) bool { return r.Step > st.Step }); i >= 0 {
		rows = rows[:i]
	}
	for _, row := range rows {
		for _, name := range row.Warn.Names() {
			s.Run.Warnings[name]++
			s.Run.WarnedLast = row.Step
		}
	}
	if n := len(rows); st.Step > 0 && (n == 0 || rows[n-1].Step < st.Step) {
		a.note("warning: %s has no row of step %d, the checkpoint's", path, st.Step)
	}
	if len(rows) == 0 {
		return
	}
	first, last := rows[0], rows[len(rows)-1]
	if first.Time > 0 {
		t := time.UnixMilli(int64(1000 * (first.Time - first.StepMS/1000))).UTC().Truncate(time.Second)
		s.Run.Began = &t
	}
	s.Run.Epoch = &last.Epoch
	if last.Step == st.Step && !math.IsNaN(last.LambdaMin) {
		s.LambdaMin, s.LambdaMax = &last.LambdaMin, &last.LambdaMax
	}
}

// print writes the run's lines for display; nothing for a model that is not a run.
func (r *shownRun) print(w io.Writer) {
	if r == nil {
		return
	}
	imported := r.DataSet == "" && r.Step == 0
	if imported {
		fmt.Fprintf(w, "step\t%d, imported: not trained here yet\n", r.Step)
	} else {
		fmt.Fprintf(w, "step\t%d of %d, %s tokens\n", r.Step, r.Steps, count(float64(r.Tokens)))
	}
	if r.Step > 0 {
		fmt.Fprintf(w, "loss\t%.4f (smoothed %.4f)\n", r.Loss, r.LossEMA)
	}
	if r.Valid != nil {
		fmt.Fprintf(w, "held-out loss\t%.4f\n", *r.Valid)
	}
	epoch := ""
	if r.Epoch != nil {
		epoch = fmt.Sprintf(", %.2f epochs", *r.Epoch)
	}
	if !imported {
		fmt.Fprintf(w, "data\t%s (set %.12s%s)\n", sourceNames(r.Data), r.DataSet, epoch)
	}
	if r.Began != nil {
		fmt.Fprintf(w, "began\t%s\n", r.Began.Format(time.DateTime+" MST"))
	}
	if r.Saved != nil {
		fmt.Fprintf(w, "saved\t%s\n", r.Saved.Format(time.DateTime+" MST"))
	}
	if r.Parent != nil {
		fmt.Fprintf(w, "parent\t%s (sha256 %.12s)\n", r.Parent.Path, r.Parent.SHA256)
	}
	for _, c := range r.Computed {
		fmt.Fprintf(w, "computed\tfrom step %d by %v\n", c.From, c)
	}
	if len(r.Warnings) == 0 {
		fmt.Fprintf(w, "warnings\tnone\n")
		return
	}
	var list []string
	for name, n := range r.Warnings {
		list = append(list, fmt.Sprintf("%s at %d steps", name, n))
	}
	slices.Sort(list)
	fmt.Fprintf(w, "warnings\t%s; the last at step %d\n", strings.Join(list, ", "), r.WarnedLast)
}

// sourceNames lists sources for people.
func sourceNames(list []recipe.Source) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
