package task

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// Gradients of every architecture by the names that its maps give, of the model's own weights.
func TestGradientsTask(t *testing.T) {
	for arch, r := range inside(t, "gradients", 48,
		map[string]string{"gradients.samples": "2", "gradients.length": "24"}) {
		d := detail[GradientsDetail](t, r)
		a, _ := layer.LookupArch(arch)
		want := map[[2]int]string{{1, 1}: "q k v o norm mlp", {2, 2}: "q1 q2 k1 k2 v lambda norm o mlp",
			{2, 1}: "q1 q2 k v lambda o norm mlp"}[[2]int{a.Maps, a.Keys}]
		names := map[string]bool{}
		for _, g := range d.Layers[1] {
			names[g.Name] = true
			if !(g.Norm > 0 && g.RMS > 0 && g.RMS < g.Norm+1e-12) {
				t.Errorf("%s: %+v", arch, g)
			}
		}
		n := 1
		for _, c := range want {
			if c == ' ' {
				n++
			}
		}
		if len(names) != n || len(d.Layers) != 2 {
			t.Errorf("%s: %v, want %s", arch, names, want)
		}
		if m, ok := r.Metric("norm_embed"); !ok || m.N != 2 || m.Value <= 0 {
			t.Errorf("%s: %+v", arch, m)
		}
	}
}

// uniform checks the context of a model whose queries are zero against the mean of the values seen, times 1 − λ where
// there are two maps.
type uniform struct {
	t    *testing.T
	s    *eval.Subject
	rms  [][]float64 // [head][position] of the first layer
	mean float64     // RMS of its values
}

func (u *uniform) Attention(v layer.View) {
	if v.Layer > 0 {
		return
	}
	s := v.Shape
	values, lam := make([]float64, v.V.Len()), make([]float64, v.Lam.Len())
	device.ReadFloats(u.s.Model.Device(), values, v.V)
	if len(lam) > 0 {
		device.ReadFloats(u.s.Model.Device(), lam, v.Lam)
	}
	for _, x := range values {
		u.mean += x * x
	}
	u.mean = math.Sqrt(u.mean / float64(len(values)))
	for h := range s.Heads {
		var row []float64
		for t := range s.T {
			sum := 0.0
			for c := range s.DV {
				x := 0.0
				for k := range t + 1 {
					x += values[k*v.V.Cols+h/(s.Heads/s.Groups)*s.DV+c] / float64(t+1)
				}
				switch len(lam) {
				case 0:
				case 1:
					x *= 1 - lam[0]
				default:
					x *= 1 - lam[t*s.Heads+h]
				}
				sum += x * x
			}
			row = append(row, math.Sqrt(sum/float64(s.DV)))
		}
		u.rms = append(u.rms, row)
	}
}

func (u *uniform) Hidden(int, tensor.Tensor) {}

func TestContextOfUniformModel(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 64)
		p := s.Model.Params.Lookup("layers.0.attn.qkv.weight")
		x := make([]float32, p.Rows*p.Cols)
		p.Read(s.Model.Device(), x)
		clear(x[:a.QueryHeads(4, s.Model.Config.KVHeads)*4*16]) // queries
		s.Model.Params.Set(s.Model.Device(), p, x)
		ids := s.Encode("uniform attention")
		b := &model.Batch{B: 1, T: len(ids), IDs: ids}
		u, probe := &uniform{t: t, s: s}, &contextProbe{dev: s.Model.Device(), ends: []int{2, 4, 8, 100}}
		for _, f := range []layer.Probe{u, probe} {
			if err := s.Model.Inspect(b, f); err != nil {
				t.Fatal(err)
			}
		}
		got := probe.layers[0]
		for i, span := range [][2]int{{0, 1}, {1, 3}, {3, 7}, {7, len(ids)}} {
			want := 0.0
			for _, row := range u.rms {
				for _, y := range row[span[0]:span[1]] {
					want += y
				}
			}
			if !near(got.Sum[i], want, 1e-9) || got.N[i] != float64(4*(span[1]-span[0])) {
				t.Errorf("%s: range %d has %g of %g, want %g", a.Name, i, got.Sum[i], got.N[i], want)
			}
		}
		if !near(got.Value, u.mean, 1e-9) {
			t.Errorf("%s: values of RMS %g, want %g", a.Name, got.Value, u.mean)
		}
	}
}

func TestContextTask(t *testing.T) {
	for arch, r := range inside(t, "context_rms", 64, map[string]string{"context_rms.samples": "2"}) {
		d := detail[ContextDetail](t, r)
		a, _ := layer.LookupArch(arch)
		if len(d.Layers) != 2 || len(d.Ends) != 6 || d.Norm != (a.HeadNorm != layer.HeadNormOff) ||
			(d.Layers[0].Gain > 0) != d.Norm {
			t.Fatalf("%s: %+v", arch, d)
		}
		if d.Bound[0] != 1 || d.Bound[5] >= d.Bound[4] || d.Grid[0][0] <= 0 {
			t.Errorf("%s: %+v", arch, d)
		}
	}
}
