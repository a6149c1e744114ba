package experiment

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/metrics"
)

// A probe that is asked in two ways has two curves, each with a point for every time it was asked.
func TestTwoProbesOfATask(t *testing.T) {
	s := nanoSpec(12)
	s.Archs, s.LRs, s.Seeds, s.TuneSeeds = s.Archs[:1], nil, s.Seeds[:1], 0
	s.Probes, s.Every = []Ask{"outliers tokens=64", "outliers tokens=128"}, 3
	rows, err := Work(context.Background(), s, options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	curves := 0
	for _, r := range rows {
		if !strings.HasPrefix(r.Measure, "probe.outliers.logits_max") {
			continue
		}
		if curves++; len(r.Curve) != 4 || r.Value != r.Curve[3][1] || r.Better != eval.Lower ||
			r.Label == "" || r.N == 0 {
			t.Fatalf("%s with %v: %+v", r.Measure, r.Task.Config["tokens"], r)
		}
		for i, p := range r.Curve { // by training tokens: every third step of four rows of 32
			if p[0] != float64(3*(i+1)*4*32) || p[1] <= 0 {
				t.Errorf("%s: point %d is %v", r.Measure, i, p)
			}
		}
	}
	if curves != 2 {
		t.Errorf("%d curves, want 2", curves)
	}
	checkSettings(t, rows, s)
}

// checkSettings holds the settings of tasks to the rule: text from the held-out part in pieces of a row, of which a
// task about outliers reads eight, unless the ask names its own; every row has what its run was.
func checkSettings(t *testing.T, rows []Row, s *Spec) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range rows {
		if r.Steps != s.Steps || r.Tokens != int64(s.Steps*4*32) || r.Parameters == 0 || r.Data == "" ||
			r.Experiment != s.Name {
			t.Fatalf("%s: %+v", r.Measure, r.origin)
		}
		if r.Task == nil {
			continue
		}
		want := map[string]string{"lm.loss": "text=held out length=32 pieces=8",
			"outliers.logits_max": "text=held out length=32 tokens=256"}[r.Measure]
		if want == "" {
			continue
		}
		seen[r.Measure] = true
		for _, pair := range strings.Split(strings.Replace(want, "held out", "held_out", 1), " ") {
			key, value, _ := strings.Cut(pair, "=")
			if got := strings.ReplaceAll(fmt.Sprint(r.Task.Config[key]), " ", "_"); got != value {
				t.Errorf("%s: %s is %s, want %s", r.Measure, key, got, value)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("rows of tasks: %v", seen)
	}
}

// A step that was written more than once counts once, as it was written last.
func TestOnce(t *testing.T) {
	var rows []metrics.Row
	for i, step := range []int{1, 2, 2, 3, 3, 3} {
		rows = append(rows, metrics.Row{Step: step, Loss: float64(i)})
	}
	got := once(rows)
	if len(got) != 3 {
		t.Fatalf("%d rows, want 3", len(got))
	}
	for i, loss := range []float64{0, 2, 5} {
		if got[i].Step != i+1 || got[i].Loss != loss {
			t.Errorf("row %d: step %d, loss %g, want step %d and loss %g", i, got[i].Step, got[i].Loss, i+1, loss)
		}
	}
}
