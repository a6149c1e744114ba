package task

import (
	"context"
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/tensor"
)

// The RMS of the context vector c = Σ a_j·v_j, before any norm over heads, by layer and by number of attended
// positions. DIFF V2's page argues from it: with values of unit RMS softmax gives [1/√n, 1), so V1's norm over each
// head must amplify by up to √n, while V2 gives (0, √2) without a norm.
func init() {
	register(56, eval.Task{
		Name: "context_rms", Version: 1, Shots: -1, Inside: true,
		Doc: "RMS of attention outputs before the head norm, relative to the values', by layer and length",
		Measures: []eval.Measure{
			{Name: "rms", Label: "context RMS over value RMS"},
			{Name: "least", Label: "smallest context RMS over value RMS"},
			{Name: "largest", Label: "largest context RMS over value RMS"},
		},
		Settings: append(textSettings(0),
			eval.Setting{Key: "samples", Default: 8, Rule: eval.AtLeast(1), Doc: "sequences"}),
		Valid:   validLength,
		Prepare: prepareContext,
	})
}

// ContextDetail is the data of the figures of the task context_rms.
type ContextDetail struct {
	Ends   []int        `json:"ends"`   // ranges of positions end before these: 1, 2, 4, …
	Layers []ContextRMS `json:"layers"` // mean over heads and positions
	Grid   [][]float64  `json:"grid"`   // [layer][range]: mean RMS, relative to the values'
	Bound  []float64    `json:"bound"`  // [range]: 1/√n, the value for uniform attention over uncorrelated values
	Norm   bool         `json:"norm"`   // a norm over each head follows
}

// ContextRMS is one layer's.
type ContextRMS struct {
	Value   float64 `json:"value"`   // RMS of values
	Context float64 `json:"context"` // mean RMS of contexts
	Least   float64 `json:"least"`   // of any head and position, relative to Value
	Largest float64 `json:"largest"`
	Gain    float64 `json:"gain"` // largest factor by which a norm over heads magnifies; 0 without one
}

// contextProbe sums one sequence.
type contextProbe struct {
	dev    device.Device
	norm   bool
	eps    float64
	ends   []int
	layers []contextSums
}

// contextSums is one layer of one sequence.
type contextSums struct {
	Value   float64   `json:"value"`
	Sum     []float64 `json:"sum"` // of RMS, by range of positions
	N       []float64 `json:"n"`
	Least   float64   `json:"least"`
	Largest float64   `json:"largest"`
	Gain    float64   `json:"gain"`
}

// Attention implements layer.Probe.
func (p *contextProbe) Attention(v layer.View) {
	x := contextSums{Sum: make([]float64, len(p.ends)), N: make([]float64, len(p.ends)), Least: math.Inf(1)}
	s, n := v.Shape, 0.0
	for _, group := range v.ValueNorms(0) {
		for _, y := range group {
			x.Value += y * y
			n++
		}
	}
	x.Value = math.Sqrt(x.Value / (n * float64(s.DV)))
	row := make([]float64, v.Context.Cols)
	at := 0
	for t := range s.T {
		for t+1 >= p.ends[at] && at+1 < len(p.ends) {
			at++
		}
		device.ReadFloats(p.dev, row, v.Context.RowRange(t, t+1))
		for h := range s.Heads {
			sum := 0.0
			for _, y := range row[h*s.DV : (h+1)*s.DV] {
				sum += y * y
			}
			rms := math.Sqrt(sum / float64(s.DV))
			x.Sum[at] += rms
			x.N[at]++
			x.Least, x.Largest = min(x.Least, rms), max(x.Largest, rms)
			if p.norm {
				x.Gain = max(x.Gain, 1/math.Sqrt(rms*rms+p.eps))
			}
		}
	}
	p.layers = append(p.layers, x)
}

// Hidden implements layer.Probe.
func (p *contextProbe) Hidden(int, tensor.Tensor) {}

func prepareContext(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	texts, length, source, err := sequences(ctx, p, p.Limited(p.Int("samples")))
	if err != nil {
		return nil, err
	}
	var ends []int
	for n := 2; n < length; n *= 2 {
		ends = append(ends, n)
	}
	ends = append(ends, length+1)
	j := eval.NewJob(texts, 4)
	j.Config["source"] = source
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		var out []eval.Answer
		for _, w := range which {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c := s.Model.Config
			probe := &contextProbe{dev: s.Model.Device(), norm: c.HeadNorm != layer.HeadNormOff,
				eps: c.HeadNormEps, ends: ends}
			if err := s.Model.Inspect(read(s, texts[w], length), probe); err != nil {
				return nil, err
			}
			a := eval.Answer{Values: probe.values(), Doc: map[string]any{"text": texts[w]}}
			if err := a.SetDetail(probe.layers); err != nil {
				return nil, err
			}
			out = append(out, a)
		}
		return out, nil
	}
	j.Finish = func(r *eval.Result) error { return finishContext(r, ends) }
	return j, nil
}

// values are the sequence's means over layers.
func (p *contextProbe) values() map[string]float64 {
	out := map[string]float64{"rms": 0, "least": math.Inf(1), "largest": 0}
	for _, x := range p.layers {
		sum, n := 0.0, 0.0
		for i := range x.Sum {
			sum, n = sum+x.Sum[i], n+x.N[i]
		}
		out["rms"] += sum / n / x.Value / float64(len(p.layers))
		out["least"], out["largest"] = min(out["least"], x.Least/x.Value), max(out["largest"], x.Largest/x.Value)
	}
	return out
}

func finishContext(r *eval.Result, ends []int) error {
	list, err := eval.Details[[]contextSums](r.Answers)
	if err != nil {
		return err
	}
	d := ContextDetail{Ends: ends}
	for i, end := range ends {
		from := 1
		if i > 0 {
			from = ends[i-1]
		}
		d.Bound = append(d.Bound, 1/math.Sqrt(float64(from+end-1)/2))
	}
	for l := range list[0] {
		x, sums, counts := ContextRMS{Least: math.Inf(1)}, make([]float64, len(ends)), make([]float64, len(ends))
		total, n := 0.0, 0.0
		for _, s := range list {
			if len(s) != len(list[0]) {
				return fmt.Errorf("a sequence has %d layers, another %d", len(s), len(list[0]))
			}
			y := s[l]
			x.Value += y.Value / float64(len(list))
			for i := range y.Sum {
				sums[i], counts[i] = sums[i]+y.Sum[i]/y.Value, counts[i]+y.N[i]
				total, n = total+y.Sum[i], n+y.N[i]
			}
			x.Least, x.Largest, x.Gain = min(x.Least, y.Least/y.Value), max(x.Largest, y.Largest/y.Value),
				max(x.Gain, y.Gain)
		}
		x.Context = total / n
		row := make([]float64, len(ends))
		for i := range row {
			if counts[i] > 0 {
				row[i] = sums[i] / counts[i]
			}
		}
		d.Norm = d.Norm || x.Gain > 0
		d.Layers, d.Grid = append(d.Layers, x), append(d.Grid, row)
		r.Add(fmt.Sprintf("rms_layer_%d", l+1), fmt.Sprintf("context RMS over value RMS, layer %d", l+1), eval.Neither,
			eval.Mean{Value: x.Context / x.Value, N: len(list)})
	}
	if d.Norm {
		gain := 0.0
		for _, x := range d.Layers {
			gain = max(gain, x.Gain)
		}
		r.Add("head_norm_gain", "largest magnification by the norm over a head", eval.Lower,
			eval.Mean{Value: gain, N: len(list)})
	}
	return r.SetDetail(d)
}
