package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// A learning rate at which the model diverges is a result: the other runs continue, the rate is not chosen, and page
// and rows have it, whether training, a probe, a task or the last held-out loss comes upon it first.
func TestDiverges(t *testing.T) {
	for what, change := range map[string]func(*Spec){
		"training": func(s *Spec) { s.Probes, s.Every = nil, 0 },
		"a probe":  func(s *Spec) { s.Every = 1 },
		"at the end": func(s *Spec) {
			s.Probes, s.Every, s.Steps = nil, 0, 1
		},
	} {
		s := nanoSpec(30)
		s.LRs = []float64{1e-3, 900}
		change(s)
		opt, out := options(t.TempDir(), oneThread(t)), said{}
		opt.Say = out.say
		rows, err := Work(context.Background(), s, opt)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		failed := 0
		for _, r := range rows {
			if r.Measure == Failed {
				if failed++; r.LR != 900 || r.Note == "" || out.with(r.Run+" diverged: "+r.Note) != 1 {
					t.Errorf("%s: %s failed: %q; said: %q", what, r.Run, r.Note, out.lines)
				}
			}
		}
		f := newFinal(rows)
		if failed != 2 || f.best[[2]string{"nano", "diff"}] != 1e-3 || len(f.seeds("nano", "diff")) != 2 {
			t.Errorf("%s: %d runs failed, best %v", what, failed, f.best)
		}
		grid := Summarize(rows).Experiment.Tables[0].Rows
		if !slices.ContainsFunc(grid, func(r []string) bool {
			return strings.Join(r,
				" ") == "nano diff 900 1 diverged "
		}) {
			t.Errorf("%s: the grid is %q", what, grid)
		}
	}
}
