package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/metrics"
)

// record makes the rows of one run from what its folder holds.
type record struct {
	of      origin
	run     *Run
	dir     string
	spec    *Spec
	devices int // runs are trained on as many at once
	warn    func(string)
}

func (l *lab) record(r *Run) *record {
	tuned, _ := l.spec.tuned() // checked by Check
	return &record{run: r, dir: l.dir(r), spec: l.spec, devices: len(l.Devices),
		warn: func(s string) { l.Say("%s: warning: %s", r.Name(), s) },
		of: origin{Experiment: l.spec.Name, Run: r.Name(), Size: r.Size, Arch: r.Arch, LR: r.LR,
			Seed: r.Seed, Tuned: tuned, Parameters: r.parameters(), Steps: r.Recipe.Train.Steps,
			Tokens: r.tokens(), Data: l.hash, Settings: r.settings(l.spec),
			Precision: l.Precision, Machine: l.Machine, Commit: l.Commit, Command: l.Command}}
}

// row begins a row.
func (r *record) row(measure string) Row { return Row{Measure: measure, origin: r.of} }

// training are the rows of training itself: curves and the final held-out loss. For a failed run they end there.
func (r *record) training(note string) ([]Row, error) {
	path := filepath.Join(r.dir, metrics.FileName)
	steps, err := metrics.Read(path, r.warn)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	steps = once(steps)
	n, want := len(steps), r.run.Recipe.Train.Steps
	if note == "" && (n == 0 || steps[n-1].Step != want) { // lost, and not a loss that is not finite
		return nil, &data.CorruptError{File: path,
			Fault: fmt.Sprintf("has no row of step %d, the last; delete the run's folder to repeat the run", want)}
	}
	if note == "" && n < want {
		r.warn(fmt.Sprintf("%s has rows of %d of %d steps; curves and means are without the others", path, n, want))
	}
	out := r.curves(steps)
	if note == "" && !eval.Finite(steps[n-1].Valid) {
		note = "the held-out loss at the end is not finite"
	}
	if note != "" {
		x := r.row(Failed)
		x.Note, x.Value = note, float64(len(steps))
		return append(out, x), nil
	}
	last := r.row(heldOut)
	last.Label, last.Better, last.Value = "held-out loss at the end of training, "+
		"nats/token", eval.Lower, steps[len(steps)-1].Valid
	speed := r.row(trainSpeed)
	speed.Label, speed.Better, speed.Timing, speed.Value = "training speed, tokens/s", eval.Higher, true, speedOf(steps)
	if n := r.devices; n > 1 {
		speed.Measure, speed.Label = sharedSpeed, fmt.Sprintf("training speed with %d runs on the device, tokens/s", n)
	}
	spikes := r.row("train.spikes")
	spikes.Label, spikes.Better = "steps with a spike of loss or gradient norm", eval.Lower
	for _, s := range steps {
		if s.Warn&(metrics.GradientSpike|metrics.LossSpike) != 0 {
			spikes.Value++
		}
	}
	late := r.row("train.grad_norm_late")
	late.Label, late.Better = "gradient norm, mean over the last quarter of training", eval.Lower
	quarter := steps[slices.IndexFunc(steps, func(s metrics.Row) bool { return s.Step > want*3/4 }):]
	for _, s := range quarter {
		late.Value += s.GradNorm / float64(len(quarter))
	}
	late.Value = short(late.Value)
	probes, err := r.probes()
	return slices.Concat(out, []Row{last, speed, spikes, late}, probes), err
}

// once are the rows with one for each step, the last.
func once(rows []metrics.Row) (out []metrics.Row) {
	for _, r := range rows {
		if n := len(out); n > 0 && out[n-1].Step == r.Step {
			out = out[:n-1]
		}
		out = append(out, r)
	}
	return out
}

// Training speed: alone on the device, which can be compared, or with others, which depends on their load.
const (
	trainSpeed  = "train.tokens_per_second"
	sharedSpeed = "train.tokens_per_second_shared"
)

// speedOf is the median of the steps.
func speedOf(steps []metrics.Row) float64 {
	var list []float64
	for _, s := range steps {
		list = append(list, s.TokS)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// curves are the quantities of every step, by training tokens.
func (r *record) curves(steps []metrics.Row) []Row {
	var out []Row
	for _, c := range []struct {
		name, label string
		value       func(s *metrics.Row) float64
	}{
		{"train_loss", "training loss, nats/token", func(s *metrics.Row) float64 { return s.Loss }},
		{"valid_loss", "held-out loss, nats/token", func(s *metrics.Row) float64 { return s.Valid }},
		{"grad_norm", "gradient norm", func(s *metrics.Row) float64 { return s.GradNorm }},
		{"lambda", "λ, mean over layers", func(s *metrics.Row) float64 { return mean(s.Lambda) }},
		{"lambda_min", "λ, smallest", func(s *metrics.Row) float64 { return s.LambdaMin }},
		{"lambda_max", "λ, largest", func(s *metrics.Row) float64 { return s.LambdaMax }},
	} {
		var points [][2]float64
		for i := range steps {
			if v := c.value(&steps[i]); eval.Finite(v) {
				points = append(points, [2]float64{float64(steps[i].Tokens), v})
			}
		}
		if len(points) == 0 {
			continue
		}
		x := r.row("curve." + c.name)
		x.Label, x.Curve = c.label, thin(points)
		x.Value = x.Curve[len(x.Curve)-1][1]
		out = append(out, x)
	}
	return out
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list)) // NaN if empty
}

// thin averages adjacent points until at most CurvePoints are left; the last point is kept.
func thin(points [][2]float64) [][2]float64 {
	out := points
	if n := CurvePoints - 1; len(points) > CurvePoints {
		out = make([][2]float64, n, n+1)
		body := points[:len(points)-1]
		for i := range out {
			part := body[i*len(body)/n : (i+1)*len(body)/n]
			for _, p := range part {
				out[i][0] += p[0] / float64(len(part))
				out[i][1] += p[1] / float64(len(part))
			}
		}
		out = append(out, points[len(points)-1])
	}
	for i := range out {
		out[i] = [2]float64{math.Round(out[i][0]), short(out[i][1])}
	}
	return out
}

// short keeps six digits: rows are committed, and no figure needs more.
func short(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64) // it was just formatted
	return y
}

// probes are the headline measures of the probes by training tokens.
func (r *record) probes() ([]Row, error) {
	if len(r.spec.Probes) == 0 {
		return nil, nil
	}
	store, err := eval.ReadStores(filepath.Join(r.dir, "probe"))
	if err != nil {
		return nil, err
	}
	t := r.run.Recipe.Train
	perStep := float64(t.Batch * t.SeqLen)
	type key struct{ name, question string } // a task may be asked in two ways
	at := map[key]*Row{}
	var order []key
	cells := store.Cells()
	slices.SortStableFunc(cells, func(a, b *eval.Cell) int {
		return strings.Compare(a.Head.Model.Name, b.Head.Model.Name)
	})
	for _, c := range cells {
		step, err := strconv.Atoi(strings.TrimPrefix(c.Head.Model.Name, "step-"))
		if err != nil || step > t.Steps {
			continue
		}
		info := r.task(c.Result)
		for i := range c.Result.Metrics {
			m := &c.Result.Metrics[i]
			k := key{"probe." + measureName(c.Result, m.Name), info.Question}
			if at[k] == nil {
				x := r.row(k.name)
				x.Label, x.Better, x.Floors, x.Task, x.N = m.Label, m.Better, m.Floors, info, m.N
				at[k] = &x
				order = append(order, k)
			}
			at[k].Curve = append(at[k].Curve, [2]float64{float64(step) * perStep, short(m.Value)})
		}
	}
	var out []Row
	for _, k := range order {
		x := at[k]
		x.Curve = thin(x.Curve)
		x.Value = x.Curve[len(x.Curve)-1][1]
		out = append(out, *x)
	}
	return out, nil
}

// measureName distinguishes measures of one task with different settings.
func measureName(r *eval.Result, metric string) string {
	return labelled(r.Kind+"."+metric, text(r.Config["needles"]), text(r.Config["queries"]))
}

func text(v any) string {
	switch v := v.(type) {
	case int:
		return strconv.Itoa(v)
	case float64: // as JSON reads it
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// task describes the question. Its identity excludes the location of the text: experiments on the same text can be
// paired.
func (r *record) task(res *eval.Result) *TaskInfo {
	config := maps.Clone(res.Config)
	for key, v := range config {
		if s, ok := v.(string); ok && strings.HasPrefix(s, "set:") {
			config[key] = "held out"
		}
	}
	// It was stored as JSON.
	id, _ := json.Marshal([]any{res.Kind, res.Version, res.Context, res.N, config, r.spec.EvalSeed})
	sum := sha256.Sum256(id)
	return &TaskInfo{Name: res.Task, Kind: res.Kind, Question: hex.EncodeToString(sum[:8]), Place: res.Place,
		Version: res.Version, Context: res.Context, Seed: r.spec.EvalSeed, Config: config}
}

// answers are the measures of one task; the first has the data of the task's figures, if it is small.
func (r *record) answers(res *eval.Result) []Row {
	const small = 24 << 10 // bytes: where tiny's heads look
	var out []Row
	for i := range res.Metrics {
		m := &res.Metrics[i]
		x := r.row(measureName(res, m.Name))
		x.Label, x.Better, x.Floors, x.Task = m.Label, m.Better, m.Floors, r.task(res)
		x.Metric, x.Value, x.StdErr, x.N = m.Name, m.Value, m.StdErr, m.N
		x.items(res, m.Name)
		if i == 0 && len(res.Detail) <= small {
			x.Detail = res.Detail
		}
		out = append(out, x)
	}
	return out
}

// items stores the samples' values of a measure; a sample without one gets weight 0.
func (r *Row) items(res *eval.Result, name string) {
	var values, weights []float64
	var clusters []string
	weighted, clustered, some := false, false, false
	for i := range res.Answers {
		a := &res.Answers[i]
		v, ok := a.Values[name]
		w := 0.0
		if ok {
			w, some = a.Weight(name), true
		}
		values, weights, clusters = append(values, short(v)), append(weights, w), append(clusters, a.Cluster)
		weighted, clustered = weighted || w != 1, clustered || a.Cluster != ""
	}
	if !some {
		return
	}
	r.Items = values
	if weighted {
		r.Weights = weights
	}
	if clustered {
		r.Clusters = clusters
	}
}
