package eval

import (
	"slices"
	"testing"
)

// By hand: accuracies 0.2 ± 0.03 and 0.6 ± 0.04 average to 0.4 ± 0.025. A normalised accuracy counts as one; a task
// that accompanies the group does not count, and a stand-in is not averaged with real sets.
func TestGroupMeans(t *testing.T) {
	result := func(task, metric string, v, e float64) Result {
		return Result{Question: task, Task: task, Kind: task, Group: "g",
			Metrics: []Metric{{Name: metric, Mean: Mean{v, e, 10}, Better: Higher}}}
	}
	beside, stand := result("beside", "acc", 1, 0), result("standin_z", "acc", 1, 0)
	beside.Beside, stand.Kind = true, "z"
	none := result("none", "acc", 0, 0)
	none.Metrics = nil
	ev := &Evaluation{Models: []Judged{{Model: Model{Name: "a"},
		Results: []Result{result("x", "acc", 0.2, 0.03), result("y", "acc_norm", 0.6, 0.04), beside, stand, none}}}}
	side := ev.Sides()[0]
	got := ev.GroupMeans(&side)
	if len(got) != 1 || len(got[0].Tasks) != 2 || !near(got[0].Metric.Value, 0.4, 1e-12) ||
		!near(got[0].Metric.StdErr, 0.025, 1e-12) {
		t.Errorf("%+v", got)
	}
	// Tasks with different headlines have no common mean.
	ev.Models[0].Results[1].Metrics[0].Name = "f1"
	if got := ev.GroupMeans(&side); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Models of one name: what only some of them have distinguishes those; what nothing distinguishes are columns of their
// own still, and a group is not joined by a model of its name.
func TestModelsOfOneName(t *testing.T) {
	of := func(precision, device, hash string) Judged {
		return Judged{Model: Model{Name: "a", Group: "g", Precision: precision, Device: device, Hash: hash}}
	}
	e := &Evaluation{Models: []Judged{of("", "cpu", "012"), of("int8", "", "012"), of("", "cpu", "123456789"),
		of("", "", "")}}
	e.distinguish()
	for i, want := range []string{" cpu 012", " int8", " cpu 12345678", ""} {
		if m := &e.Models[i]; m.Name != "a"+want || m.Group != "g"+want {
			t.Errorf("%d: %q of %q, want %q", i, m.Name, m.Group, want)
		}
	}
	e = &Evaluation{}
	for _, m := range []Model{{Name: "x", Group: "a"}, {Name: "a"}, {Name: "a"}, {Name: "y", Group: "a"}} {
		e.Models = append(e.Models, Judged{Model: m})
	}
	var sizes []int
	for _, s := range e.Sides() {
		sizes = append(sizes, len(s.Models))
	}
	if !slices.Equal(sizes, []int{2, 1, 1}) {
		t.Errorf("columns of %v models", sizes)
	}
}
