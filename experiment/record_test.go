package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/internal/vfs"
	"antiphase/metrics"
)

// recorded are the rows of a run with these metrics.
func recorded(t *testing.T, devices int, note string, steps ...metrics.Row) ([]Row, *record) {
	t.Helper()
	r := logged(t, devices, steps...)
	r.run.Recipe.Train.Steps = len(steps)
	rows, err := r.training(note)
	if err != nil {
		t.Fatal(err)
	}
	return rows, r
}

// logged is the record of a run with these metrics.
func logged(t *testing.T, devices int, steps ...metrics.Row) *record {
	t.Helper()
	r := &record{dir: t.TempDir(), spec: &Spec{}, run: &Run{}, devices: devices, of: origin{Run: "a", Steps: 8},
		warn: func(s string) { t.Error(s) }}
	w, err := metrics.Open(vfs.OS{}, filepath.Join(r.dir, metrics.FileName), 0, nil, r.warn)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range steps {
		if err := w.Write(&steps[i]); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// A run whose metrics were lost has not diverged, and its last held-out loss is not that of an earlier step: without a
// row of the last step there are no rows. Rows lost before it are warned of.
func TestLostMetrics(t *testing.T) {
	for n := range 3 {
		r := logged(t, 1, []metrics.Row{step(1, 4, 4, 1, 1, 0), step(2, 3, 3, 1, 1, 0)}[:n]...)
		r.run.Recipe.Train.Steps = 3
		for _, gone := range []bool{false, true} {
			path := filepath.Join(r.dir, metrics.FileName)
			if gone {
				_ = os.Remove(path)
			}
			rows, err := r.training("")
			if c, ok := errors.AsType[*data.CorruptError](err); !ok || c.File != path {
				t.Errorf("%d rows of 3, no file %v: %v, %v", n, gone, rows, err)
			}
			if rows, err := r.training("loss is NaN"); err != nil || rows[len(rows)-1].Measure != Failed {
				t.Errorf("a run that diverged: %v, %v", rows, err)
			}
		}
	}
	r, warned := logged(t, 1, step(1, 4, 4, 1, 1, 0), step(3, 2, 2, 1, 1, 0)), ""
	r.run.Recipe.Train.Steps, r.warn = 3, func(s string) { warned += s }
	if rows, err := r.training(""); err != nil || !strings.Contains(warned, "rows of 2 of 3 steps") {
		t.Errorf("without the second step: %v, %v, %q", rows, err, warned)
	}
}

// step is one of a training run; what is not measured is NaN.
func step(n int, loss, valid, norm, speed float64, warn metrics.Warning, lambda ...float64) metrics.Row {
	nan := math.NaN()
	r := metrics.Row{Step: n, Loss: loss, Valid: valid, GradNorm: norm, TokS: speed, Warn: warn, Tokens: int64(100 * n),
		Lambda: lambda, LambdaMin: nan, LambdaMax: nan, EvalS: nan, SaveS: nan, MFU: nan, Epoch: nan, ETA: nan}
	if len(lambda) > 0 {
		r.LambdaMin, r.LambdaMax = 0.25, 0.75
	}
	return r
}

// nineSteps are those of a run with spikes at three and a held-out loss at two.
func nineSteps() []metrics.Row {
	nan := math.NaN()
	return []metrics.Row{
		step(1, 4, nan, 9, 10, 0, 0.2, 0.4), step(2, 3.5, nan, 9, 90, metrics.LossSpike, 0.2, 0.4),
		step(3, 3, nan, 9, 20, metrics.GradientSpike, 0.2, 0.4),
		step(4, 2.5, 2.75, 9, 80, metrics.LossSpike|metrics.GradientSpike, 0.2, 0.4),
		step(5, 2, nan, 9, 30, 0, 0.2, 0.4), step(6, 1.75, nan, 9, 70, 0, 0.2, 0.4),
		step(7, 1.5, nan, 9, 40, 0, 0.2, 0.4),
		step(8, 1.25, nan, 2, 60, 0, 0.2, 0.4), step(9, 1.125, 1.5, 4, 50, 0, 0.3, 0.9),
	}
}

// What a run's metrics say, by hand: the last held-out loss, the median speed, the steps with a spike, the mean
// gradient norm of the last quarter, and every curve by tokens.
func TestTrainingRows(t *testing.T) {
	rows, _ := recorded(t, 1, "", nineSteps()...)
	by := map[string]*Row{}
	for i := range rows {
		by[rows[i].Measure] = &rows[i]
	}
	for measure, want := range map[string]float64{heldOut: 1.5, trainSpeed: 50, "train.spikes": 3,
		"train.grad_norm_late": (9 + 2 + 4) / 3.0,
		"curve.train_loss":     1.125, "curve.valid_loss": 1.5, "curve.grad_norm": 4, "curve.lambda": 0.6,
		"curve.lambda_min": 0.25, "curve.lambda_max": 0.75} {
		if r := by[measure]; r == nil || !(math.Abs(r.Value-want) <= 1e-6) || r.Run != "a" {
			t.Errorf("%s: %+v, want %g", measure, r, want)
		}
	}
	for measure, label := range map[string]string{heldOut: "held-out loss at the end of training, nats/token",
		trainSpeed: "training speed, tokens/s", "train.spikes": "steps with a spike of loss or gradient norm",
		"train.grad_norm_late": "gradient norm, mean over the last quarter of training",
		"curve.lambda":         "λ, mean over layers",
		"curve.lambda_min":     "λ, smallest", "curve.lambda_max": "λ, largest"} {
		if r := by[measure]; r.Label != label || measure != trainSpeed && !strings.HasPrefix(measure, "curve.") &&
			r.Better != eval.Lower {
			t.Errorf("%s: %q, better %v", measure, r.Label, r.Better)
		}
	}
	if len(rows) != 10 || !by[trainSpeed].Timing || by[trainSpeed].Better != eval.Higher || by[heldOut].Timing ||
		by[heldOut].Better != eval.Lower {
		t.Errorf("%d rows: %+v", len(rows), rows)
	}
	if got := by["curve.valid_loss"].Curve; !reflect.DeepEqual(got, [][2]float64{{400, 2.75}, {900, 1.5}}) {
		t.Errorf("held-out losses: %v", got)
	}
	if got := by["curve.train_loss"].Curve; len(got) != 9 || got[2] != [2]float64{300, 3} {
		t.Errorf("losses: %v", got)
	}
}

// A speed says how many runs were on the device.
func TestSpeedOfSharedDevice(t *testing.T) {
	for _, n := range []int{2, 3} {
		if rows, _ := recorded(t, n, "", nineSteps()...); rows[7].Measure != sharedSpeed ||
			rows[7].Label != fmt.Sprintf("training speed with %d runs on the device, tokens/s", n) {
			t.Errorf("with %d runs at once: %+v", n, rows[7])
		}
	}
}

// The last quarter of a run has at least one step; of two speeds in the middle the faster counts.
func TestLastQuarter(t *testing.T) {
	for n := 1; n <= 9; n++ {
		var steps []metrics.Row
		late := 0.0
		for i := range n {
			steps = append(steps, step(i+1, 1, 1, float64(i*i), float64(10*n-i), 0))
			if 4*(i+1) > 3*n {
				late += float64(i*i) / math.Ceil(float64(n)/4)
			}
		}
		rows, _ := recorded(t, 1, "", steps...)
		for _, r := range rows {
			want := map[string]float64{trainSpeed: float64(10*n - (n-1)/2),
				"train.grad_norm_late": short(late)}[r.Measure]
			if want != 0 && r.Value != want {
				t.Errorf("%d steps: %s is %g, want %g", n, r.Measure, r.Value, want)
			}
		}
	}
}

// A run with a note, or without a held-out loss at the end, failed: it has no such loss, and its last row says why.
func TestFailedRows(t *testing.T) {
	steps := nineSteps()
	for what, x := range map[string]struct {
		note  string
		steps []metrics.Row
		says  string
	}{
		"a note":             {"the loss is not finite", steps, "the loss is not finite"},
		"only a note":        {"step 9 was not finite", steps[:8], "step 9 was not finite"},
		"no loss at the end": {"", steps[:8], "held-out loss at the end is not finite"},
		"no step":            {"step 1 was not finite", nil, "step 1 was not finite"},
	} {
		rows, _ := recorded(t, 1, x.note, x.steps...)
		last := rows[len(rows)-1]
		if last.Measure != Failed || last.Value != float64(len(x.steps)) || !strings.Contains(last.Note, x.says) {
			t.Errorf("%s: %+v", what, last)
		}
		for _, r := range rows {
			if r.Measure == heldOut {
				t.Errorf("%s: there is a held-out loss", what)
			}
		}
	}
}

// A long curve becomes 199 means of neighbours and its last point; none is lost, so the mean stays.
func TestThin(t *testing.T) {
	for _, n := range []int{1, 2, 199, 200, 201, 398, 399, 1000} {
		var points [][2]float64
		for i := range n {
			points = append(points, [2]float64{float64(1000 * (i + 1)), float64(i)})
		}
		last := points[n-1]
		got := thin(points)
		if len(got) != min(n, CurvePoints) || got[len(got)-1] != last {
			t.Errorf("%d points: %d, the last %v", n, len(got), got[len(got)-1])
		}
		for i := 1; i < len(got); i++ {
			if got[i][0] <= got[i-1][0] || got[i][1] <= got[i-1][1] {
				t.Fatalf("%d points: not in order at %d", n, i)
			}
		}
	}
	var points [][2]float64
	for i := range 2*199 + 1 { // pairs and the last
		points = append(points, [2]float64{float64(10 * i), float64(i * i)})
	}
	if got := thin(points); got[0] != [2]float64{5, 0.5} || got[1] != [2]float64{25, 6.5} ||
		got[198] != [2]float64{3965, 157212} {
		t.Errorf("pairs: %v %v %v", got[0], got[1], got[198]) // (396² + 397²)/2 = 157212.5, of which six digits stay
	}
	if got := short(0.123456789); got != 0.123457 {
		t.Errorf("six digits: %g", got)
	}
}

// Answers become items in their order: one without the measure has weight 0, weights and clusters are there only where
// some are not the usual ones, and what was stored comes back.
func TestItems(t *testing.T) {
	answer := func(v map[string]float64, w map[string]float64, cluster string) eval.Answer {
		return eval.Answer{Values: v, Weights: w, Cluster: cluster}
	}
	for what, x := range map[string]struct {
		answers  []eval.Answer
		items    []float64
		weights  []float64
		clusters []string
	}{
		"plain": {[]eval.Answer{answer(map[string]float64{"m": 1}, nil, ""),
			answer(map[string]float64{"m": 2}, nil, "")}, []float64{1, 2}, nil, nil},
		"one absent": {[]eval.Answer{answer(map[string]float64{"n": 1}, nil, ""),
			answer(map[string]float64{"m": 2}, nil, "")}, []float64{0, 2}, []float64{0, 1}, nil},
		"weighted": {[]eval.Answer{answer(map[string]float64{"m": 1}, map[string]float64{"m": 3}, ""),
			answer(map[string]float64{"m": 2}, nil, "")}, []float64{1, 2}, []float64{3, 1}, nil},
		"clustered": {[]eval.Answer{answer(map[string]float64{"m": 1}, nil, "a"),
			answer(map[string]float64{"m": 2}, nil, "")}, []float64{1, 2}, nil, []string{"a", ""}},
		"none": {[]eval.Answer{answer(map[string]float64{"n": 1}, nil, "a")}, nil, nil, nil},
	} {
		var r Row
		r.items(&eval.Result{Answers: x.answers}, "m")
		if !reflect.DeepEqual(r.Items, x.items) || !reflect.DeepEqual(r.Weights, x.weights) ||
			!reflect.DeepEqual(r.Clusters, x.clusters) {
			t.Errorf("%s: %v, %v, %q", what, r.Items, r.Weights, r.Clusters)
		}
		var back eval.Result
		r.Metric = "m"
		r.into(&back)
		for i := range back.Answers {
			v, ok := x.answers[i].Values["m"]
			if got, has := back.Answers[i].Values["m"]; got != v || has != ok ||
				back.Answers[i].Cluster != x.answers[i].Cluster {
				t.Errorf("%s: answer %d comes back as %+v", what, i, back.Answers[i])
			}
			if ok && back.Answers[i].Weight("m") != x.answers[i].Weight("m") {
				t.Errorf("%s: answer %d comes back with weight %g", what, i, back.Answers[i].Weight("m"))
			}
		}
	}
}

// The rows of a task: its settings are part of the measure's name, the first has the figures' data if it is small, and
// the question's identity depends on everything but the folder of the text.
func TestAnswerRows(t *testing.T) {
	res := func() *eval.Result {
		r := &eval.Result{Task: "~needle", Kind: "needle", Version: 2, Context: 64, N: 5, Place: 3,
			Detail: json.RawMessage(`{"a":1}`),
			Config: map[string]any{"needles": 4.0, "queries": 2, "text": "set:/somewhere/data", "haystack": "a file"}}
		r.Add("bound", "label, %", eval.Higher, eval.Mean{Value: 0.5, StdErr: 0.1, N: 5})
		r.Add("free", "other", eval.Higher, eval.Mean{Value: 0.75, StdErr: 0.2, N: 5})
		return r
	}
	rec := &record{spec: &Spec{EvalSeed: 20}, of: origin{Run: "a"}}
	rows := rec.answers(res())
	if len(rows) != 2 || rows[0].Measure != "needle.bound N=4 R=2" || rows[1].Measure != "needle.free N=4 R=2" ||
		rows[0].Metric != "bound" || rows[0].Value != 0.5 || rows[0].StdErr != 0.1 || rows[0].N != 5 ||
		rows[0].Label != "label, %" || rows[0].Better != eval.Higher ||
		string(rows[0].Detail) != `{"a":1}` || rows[1].Detail != nil {
		t.Fatalf("%+v", rows)
	}
	task := rows[0].Task
	if len(task.Question) != 16 || task.Name != "~needle" || task.Kind != "needle" || task.Place != 3 ||
		task.Version != 2 || task.Context != 64 || task.Seed != 20 ||
		task.Config["text"] != "held out" || task.Config["haystack"] != "a file" {
		t.Errorf("%+v", task)
	}
	elsewhere := res()
	elsewhere.Config["text"] = "set:/other/data"
	if rec.task(elsewhere).Question != task.Question {
		t.Error("the same text in another folder is another question")
	}
	for what, change := range map[string]func(*eval.Result){
		"kind": func(r *eval.Result) { r.Kind = "x" }, "version": func(r *eval.Result) { r.Version++ },
		"context": func(r *eval.Result) { r.Context++ },
		"samples": func(r *eval.Result) { r.N++ }, "settings": func(r *eval.Result) { r.Config["needles"] = 8 },
	} {
		other := res()
		change(other)
		if rec.task(other).Question == task.Question {
			t.Errorf("with another %s it is the same question", what)
		}
	}
	if other := (&record{spec: &Spec{EvalSeed: 21}}).task(res()); other.Question == task.Question {
		t.Error("another seed draws the same questions")
	}
	for size, kept := range map[int]bool{24<<10 - 10: true, 24 << 10: true, 24<<10 + 1: false} {
		big := res()
		big.Detail = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
		if got := rec.answers(big)[0].Detail != nil; got != kept {
			t.Errorf("a detail of %d bytes is kept: %v", size, got)
		}
	}
}
