package optim

import (
	"math"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// The schedules at their corners: warm-up from lr/warmup to lr, then down to final_lr·lr at the last step.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		schedule    string
		step, total int
		want        float64
	}{
		{"linear", 0, 101, 0.1}, {"linear", 9, 101, 1}, {"linear", 10, 101, 1}, {"linear", 55, 101, 0.6},
		{"linear", 100, 101, 0.2},
		{"cosine", 10, 101, 1}, {"cosine", 55, 101, 0.6}, {"cosine", 100, 101, 0.2}, {"cosine", 500, 101, 0.2},
		{"constant", 4, 101, 0.5}, {"constant", 100, 101, 1},
	} {
		cfg := Config{LR: 1, Warmup: 10, FinalLR: 0.2, Schedule: c.schedule}
		if got := cfg.Rate(c.step, c.total); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("%s, step %d of %d: %g, want %g", c.schedule, c.step, c.total, got, c.want)
		}
	}
}

// Whatever the lengths of run and warm-up: the warm-up rises in equal steps to the peak, nothing is above it, and the
// last step after the warm-up has the final rate.
func TestRateEnds(t *testing.T) {
	for schedule := range schedules {
		for warmup := range 6 {
			for total := 1; total < 9; total++ {
				c := Config{LR: 2, Warmup: warmup, FinalLR: 0.25, Schedule: schedule}
				for step := range total {
					got, last := c.Rate(step, total), 0.25*2
					if schedule == "constant" {
						last = 2
					}
					switch {
					case step < warmup:
						if want := 2 * float64(step+1) / float64(warmup); !(math.Abs(got-want) <= 1e-12) {
							t.Errorf("%s, warm-up %d, step %d of %d: %g, want %g", schedule, warmup, step,
								total, got, want)
						}
					case step == total-1:
						if !(math.Abs(got-last) <= 1e-12) {
							t.Errorf("%s, warm-up %d, last step of %d: %g, want %g", schedule, warmup, total, got, last)
						}
					case !(got <= 2 && got >= last-1e-12 && got <= c.Rate(max(step-1, warmup), total)+1e-12):
						t.Errorf("%s, warm-up %d, step %d of %d: %g", schedule, warmup, step, total, got)
					}
				}
			}
		}
	}
}

// Two steps against the formula worked by hand: clipping by the norm over all groups, bias correction, and decay of the
// matrix alone.
func TestStep(t *testing.T) {
	d := ref.New()
	ps := layer.NewParamSet()
	kinds := map[*layer.Param]bool{ // → decays
		ps.Add(layer.Param{Name: "matrix", Kind: layer.Matrix, Rows: 1, Cols: 1}):           true,
		ps.Add(layer.Param{Name: "embedding", Kind: layer.Embedding, Rows: 1, Cols: 1}):     false,
		ps.Add(layer.Param{Name: "gain", Kind: layer.Gain, Rows: 1, Cols: 1}):               false,
		ps.Add(layer.Param{Name: "lambda", Kind: layer.LambdaKind, Rows: 1, Cols: 1}):       false,
		ps.Add(layer.Param{Name: "projection", Kind: layer.LambdaMatrix, Rows: 1, Cols: 1}): false,
	}
	ps.Alloc(d, layer.Memory{Train: true})
	c := Config{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.1, Clip: 1}
	o := New(d, ps, c)
	want := map[*layer.Param][3]float64{} // w, m, v
	for p := range kinds {
		tensor.Host[float64](p.W)[0] = 2
		want[p] = [3]float64{2}
	}
	for step := 1; step <= 2; step++ {
		g := float64(step)
		for p := range kinds {
			tensor.Host[float64](p.G)[0] = g
		}
		norm := g * math.Sqrt(5)
		o.SetRate(step, 0.01)
		o.Step()
		if got := o.Norm(); !(math.Abs(got-norm) <= 1e-6) {
			t.Errorf("norm %g, want %g", got, norm)
		}
		for p, decays := range kinds {
			s, clipped := want[p], g/norm
			s[1], s[2] = 0.9*s[1]+0.1*clipped, 0.99*s[2]+0.01*clipped*clipped
			update := s[1] / (1 - math.Pow(0.9, g)) / (math.Sqrt(s[2]/(1-math.Pow(0.99, g))) + 1e-8)
			if decays {
				update += 0.1 * s[0]
			}
			s[0] -= 0.01 * update
			want[p] = s
			if got := tensor.Host[float64](p.W)[0]; !(math.Abs(got-s[0]) <= 1e-7) {
				t.Errorf("step %d, %s: %.9g, want %.9g", step, p.Name, got, s[0])
			}
		}
	}
}

// A norm that is not finite leaves weights and moments alone.
func TestStepRefusesNaN(t *testing.T) {
	d := ref.New()
	ps := layer.NewParamSet()
	p := ps.Add(layer.Param{Name: "w", Kind: layer.Matrix, Rows: 1, Cols: 2})
	ps.Alloc(d, layer.Memory{Train: true})
	o := New(d, ps, Config{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.1, Clip: 1})
	tensor.Host[float64](p.W)[0] = 3
	tensor.Host[float64](p.G)[0], tensor.Host[float64](p.G)[1] = 1, math.NaN()
	o.SetRate(1, 0.1)
	o.Step()
	if n := o.Norm(); !math.IsNaN(n) {
		t.Errorf("norm %g", n)
	}
	m, v := moment(t, o, p, First), moment(t, o, p, Second)
	if tensor.Host[float64](p.W)[0] != 3 || m[0] != 0 || v[0] != 0 {
		t.Error("the update was made")
	}
}

// Rows of an odd number of columns lie apart in flat memory; what is between them stays zero, and moments lie as
// weights do.
func TestStepOverPaddedRows(t *testing.T) {
	d := ref.New()
	ps := layer.NewParamSet()
	p := ps.Add(layer.Param{Name: "w", Kind: layer.Matrix, Rows: 3, Cols: 5, Std: 1})
	ps.Alloc(d, layer.Memory{Train: true})
	ps.Init(d, 1)
	o := New(d, ps, Config{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, Decay: 0.1, Clip: 1})
	for r := range p.Rows {
		for c := range p.Cols {
			tensor.Host[float64](p.G.RowRange(r, r+1))[c] = float64(1 + r*p.Cols + c)
		}
	}
	o.SetRate(1, 0.1)
	o.Step()
	m := moment(t, o, p, First)
	if p.W.Ld%8 != 0 {
		t.Fatalf("rows of weights are %d apart", p.W.Ld)
	}
	for i, x := range m[2*p.Cols:] {
		if want := m[0] * float32(1+2*p.Cols+i); !(math.Abs(float64(x/want-1)) <= 1e-6) {
			t.Errorf("moment %d of the last row is %g, want %g", i, x, want)
		}
	}
	for i, x := range tensor.Host[float64](ps.Groups[0].W) {
		if inside := i/p.W.Ld < p.Rows && i%p.W.Ld < p.Cols; !inside && x != 0 {
			t.Errorf("element %d between the rows is %g", i, x)
		}
	}
}

func moment(t *testing.T, o *AdamW, p *layer.Param, which int) []float32 {
	t.Helper()
	x := make([]float32, p.Rows*p.Cols)
	n, r := 0, o.NewReader()
	for _, s := range o.Slices() {
		if s.Param == p {
			r.Read(&s, which, x[s.From:s.To])
			n += s.To - s.From
		}
	}
	if n != len(x) {
		t.Fatalf("%d of %d elements of %s are kept", n, len(x), p.Name)
	}
	return x
}

// A slice of several chunks comes whole, without the padding between its rows, which chunks do not respect.
func TestReadChunks(t *testing.T) {
	d := ref.New()
	ps := layer.NewParamSet()
	p := ps.Add(layer.Param{Name: "w", Kind: layer.Matrix, Rows: 3*readChunk/1000 + 7, Cols: 997})
	ps.Alloc(d, layer.Memory{Train: true})
	if p.W.Ld == p.Cols || p.Rows*p.W.Ld < 3*readChunk {
		t.Fatalf("rows of %d, %d apart: %d elements", p.Cols, p.W.Ld, p.Rows*p.W.Ld)
	}
	for r := range p.Rows {
		for c, row := 0, tensor.Host[float64](p.W.RowRange(r, r+1)); c < p.Cols; c++ {
			row[c] = float64(r*p.Cols + c)
		}
	}
	for i, x := range moment(t, New(d, ps, Config{}), p, Value) {
		if x != float32(i) {
			t.Fatalf("element %d is %g", i, x)
		}
	}
}
