package eval

import (
	"math"
	"strings"
	"testing"
)

// By hand: accuracies 0.2 ± 0.03 and 0.6 ± 0.04 average to 0.4 ± 0.025; differences +0.1 ± 0.06 and +0.3 ± 0.08 to +0.2 ± 0.05.
func TestGroupMeans(t *testing.T) {
	result := func(task string, v, e float64) Result {
		return Result{Task: task, Group: "g", Metrics: []Metric{{Name: "acc", Mean: Mean{v, e, 10}, Better: higher}}}
	}
	ev := &Evaluation{
		Models: []Judged{
			{Name: "a", Results: []Result{result("x", 0.2, 0.03), result("y", 0.6, 0.04), result("beside", 1, 0)}},
			{Name: "b", Results: []Result{result("x", 0.3, 0.03), result("y", 0.9, 0.04), result("beside", 1, 0)}},
		},
		Paired: []Paired{{Task: "x", Metric: "acc", B: "b", Diff: 0.1, StdErr: 0.06, N: 10}, {Task: "y", Metric: "acc", B: "b", Diff: 0.3, StdErr: 0.08, N: 10}},
	}
	ev.average([]Task{{Name: "x"}, {Name: "y"}, {Name: "beside", Beside: true}})
	a, b := ev.Models[0].Groups[0], ev.Models[1].Groups[0]
	if len(a.Tasks) != 2 || !near(a.Metric.Value, 0.4, 1e-12) || !near(a.Metric.StdErr, 0.025, 1e-12) || a.Diff.N != 0 {
		t.Errorf("%+v", a)
	}
	if !near(b.Diff.Value, 0.2, 1e-12) || !near(b.Diff.StdErr, math.Hypot(0.06, 0.08)/2, 1e-12) || b.Diff.N != 20 {
		t.Errorf("%+v", b)
	}
	if table := ev.Table(false); !strings.Contains(table, "g, mean of 2         acc     0.400 ± 0.025  0.600 ± 0.025  +0.200 ± 0.050") {
		t.Errorf("table:\n%s", table)
	}
	if h := ev.Harness(&ev.Models[0]); !near(h.Means["g"]["acc,none"].(float64), 0.4, 1e-12) {
		t.Errorf("%v", h.Means)
	}
	// Tasks with different headlines have no common mean.
	ev.Models = ev.Models[:1]
	ev.Models[0].Groups = nil
	ev.Models[0].Results[1].Metrics[0].Name = "f1"
	if ev.average(nil); len(ev.Models[0].Groups) != 0 {
		t.Errorf("%+v", ev.Models[0].Groups)
	}
}

// A log that something else has written to is not thrown away in silence.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	head := logHead{"t", "k", 2}
	l, _, _, err := openLog(dir+"/log", head, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.write([]Answer{{ID: "1", Values: map[string]float64{"x": 1}}}, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := l.file.WriteString("not json\n"); err != nil {
		t.Fatal(err)
	}
	l.close()
	if _, _, _, err := openLog(dir+"/log", head, false); err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "delete the file to begin anew") {
		t.Errorf("%v", err)
	}
	if err := l.write([]Answer{{ID: "2", Values: map[string]float64{"x": math.NaN()}}}, 0); err == nil || !strings.Contains(err.Error(), "sample 2") {
		t.Errorf("a value that is no number: %v", err)
	}
}
