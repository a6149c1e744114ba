package experiment

import (
	"context"
	"strings"
	"testing"

	"antiphase/eval"
)

// at is a row of one run of tiny.
func at(arch string, lr float64, seed uint64, measure string, value float64) Row {
	return Row{origin: origin{Size: "tiny", Arch: arch, LR: lr, Seed: seed}, Measure: measure, Value: value}
}

// The learning rate with the lowest mean held-out loss over the seeds that all rates have is chosen; one that
// diverged in any of them is not, and where all did the lowest stands for the architecture.
func TestChoose(t *testing.T) {
	best := Choose([]Row{at("diff", 1, 1, heldOut, 3), at("diff", 2, 1, heldOut, 2.9), at("diff", 4, 1, Failed, 10),
		at("diff", 1, 2, heldOut, 3), at("diff", 2, 2, heldOut, 2.9), at("diff", 4, 2, heldOut, 1),
		at("diff", 2, 3, heldOut, 9),
		at("transformer", 1, 1, heldOut, 2), at("transformer", 2, 1, heldOut, 2),
		at("diff2", 3, 1, Failed, 7), at("diff2", 2, 1, Failed, 8)})
	for arch, want := range map[string]float64{"diff": 2, "transformer": 1, "diff2": 2} {
		if got := best[[2]string{"tiny", arch}]; got != want {
			t.Errorf("%s: chose %g, want %g", arch, got, want)
		}
	}
}

// Rows that name a measure choose by it, whichever way is better, and by held-out loss where it ties.
func TestChooseByMeasure(t *testing.T) {
	const bound = "needle.bound N=4 R=2"
	var rows []Row
	for _, c := range []struct{ lr, loss, bound float64 }{{1, 0.8, 0.3}, {2, 0.9, 0.7}, {4, 0.95, 0.7}} {
		score := at("diff", c.lr, 1, bound, c.bound)
		score.Better = eval.Higher
		rows = append(rows, at("diff", c.lr, 1, heldOut, c.loss), score)
	}
	key := [2]string{"tiny", "diff"}
	if got := Choose(rows)[key]; got != 1 {
		t.Errorf("by loss: %g", got)
	}
	for i := range rows {
		rows[i].Tuned = bound
	}
	if got := Choose(rows)[key]; got != 2 {
		t.Errorf("by %s: %g", bound, got)
	}
	for i := range rows { // on the floor the differences are chance
		rows[i].StdErr, rows[i].Floors = 0.1, map[string]float64{"copy": 0.6, "chance": 0.1}
	}
	if got := Choose(rows)[key]; got != 2 {
		t.Errorf("rows that do not say so: chose %g on the floor", got)
	}
	for i := range rows {
		rows[i].Tuned = bound + orLoss
	}
	if got := Choose(rows)[key]; got != 1 {
		t.Errorf("on the floor: %g, not by held-out loss", got)
	}
	rows[5].Value = 0.9
	if got := Choose(rows)[key]; got != 4 {
		t.Errorf("one rate is above the floor: %g", got)
	}
}

// --tune-by names a task, in full or by a first word that is unique, or the first probe; what has no better is refused.
func TestTuneMeasure(t *testing.T) {
	s := nanoSpec(20)
	s.Probes = append(s.Probes, "lm")
	for by, want := range map[Ask]string{"": "", "outliers": "outliers.logits_max or loss",
		"lm pieces=8": "lm.loss or loss", "lm": "lm.loss or loss", "probe": "probe.outliers.logits_max or loss"} {
		s.TuneBy = by
		if got, err := s.tuned(); err != nil || got != want {
			t.Errorf("%q: %q (%v), want %q", by, got, err, want)
		}
	}
	needles := &Spec{Tasks: []Ask{"needle needles=1 queries=1", "needle samples=3"}}
	for by, want := range map[Ask]string{"needle samples=3": "needle.bound N=4 R=2 or loss", "needle": "any of"} {
		needles.TuneBy = by
		if got, err := needles.tuned(); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q (%v), want %q", by, got, err, want)
		}
	}
	s.Tasks = append(s.Tasks, "samples")
	for by, want := range map[Ask]string{"samples": "has no better and worse",
		"lm pieces=9": "is none of the tasks asked here", "needle": "is none of the tasks asked here"} {
		s.TuneBy = by
		if _, err := s.tuned(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", by, err, want)
		}
	}
}

// The rows of an experiment carry the measure that chose, the page says so and the grid shows both.
func TestTuneBy(t *testing.T) {
	s := nanoSpec(20)
	s.TuneBy = "outliers"
	rows, err := Work(context.Background(), s, options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	p := Summarize(rows)
	if !strings.Contains(p.Experiment.Rule, "the best “largest attention logit of a sequence") ||
		!strings.Contains(p.Experiment.Rule, "not the one with the lowest held-out loss") {
		t.Errorf("the page says %q", p.Experiment.Rule)
	}
	if grid := p.Experiment.Tables[0].Rows; len(grid) != 5 || len(grid[0]) != 7 {
		t.Errorf("the grid is %q", grid)
	}
}
