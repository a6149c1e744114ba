package eval

import "testing"

// By hand: accuracies 0.2 ± 0.03 and 0.6 ± 0.04 average to 0.4 ± 0.025. A normalised accuracy counts as one; a task that accompanies
// the group does not count, and a stand-in is not averaged with real sets.
func TestGroupMeans(t *testing.T) {
	result := func(task, metric string, v, e float64) Result {
		return Result{Question: task, Task: task, Kind: task, Group: "g", Metrics: []Metric{{Name: metric, Mean: Mean{v, e, 10}, Better: Higher}}}
	}
	beside, stand := result("beside", "acc", 1, 0), result("standin_z", "acc", 1, 0)
	beside.Beside, stand.Kind = true, "z"
	ev := &Evaluation{Models: []Judged{{Model: Model{Name: "a"}, Results: []Result{result("x", "acc", 0.2, 0.03), result("y", "acc_norm", 0.6, 0.04), beside, stand}}}}
	side := ev.Sides()[0]
	got := ev.GroupMeans(&side)
	if len(got) != 1 || len(got[0].Tasks) != 2 || !near(got[0].Metric.Value, 0.4, 1e-12) || !near(got[0].Metric.StdErr, 0.025, 1e-12) {
		t.Errorf("%+v", got)
	}
	// Tasks with different headlines have no common mean.
	ev.Models[0].Results[1].Metrics[0].Name = "f1"
	if got := ev.GroupMeans(&side); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
