package lab

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// fullMaps reads every row of every map by itself, on any device.
type fullMaps struct {
	rows map[string][][]float64 // by layer, head and map
	lam  map[string][]float64
}

func key(parts ...any) string { b, _ := json.Marshal(parts); return string(b) }

// Attention implements layer.Probe.
func (p *fullMaps) Attention(v layer.View) {
	r := v.RowReader(v.Shape.T)
	defer r.Free()
	for h := range v.Shape.Heads {
		for t := range v.Shape.T {
			for m := range v.Maps {
				p.add(r.Map(h, m, 0, t, false), t, v.Layer, h, []string{A1, A2}[m])
			}
			p.add(r.Scores(h, 0, t), t, v.Layer, h, Diff)
			p.lam[key(v.Layer, h)] = append(p.lam[key(v.Layer, h)], r.Lambda(t, h))
		}
	}
}

// Hidden implements layer.Probe.
func (p *fullMaps) Hidden(int, tensor.Tensor) {}

func (p *fullMaps) add(row []float64, t int, k ...any) {
	p.rows[key(k...)] = append(p.rows[key(k...)], slices.Clone(row[:t+1]))
}

func logSoftmax(row []float32) []float64 {
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x))
	}
	out := make([]float64, len(row))
	for i, x := range row {
		out[i] = float64(x) - math.Log(sum)
	}
	return out
}

func checkHead(t *testing.T, arch string, h Head, p *fullMaps) {
	t.Helper()
	for name, got := range h.Maps {
		want := p.rows[key(h.Layer, h.Head, name)]
		if name == A1 && len(want) == 0 {
			want = p.rows[key(h.Layer, h.Head, Diff)]
		}
		if flat := slices.Concat(want...); !close32(got, flat) || len(flat) != 33*34/2 {
			t.Errorf("%s: layer %d head %d map %s differs", arch, h.Layer, h.Head, name)
		}
		for _, r := range h.Rows {
			if !close32(r.Maps[name], want[r.Token]) {
				t.Errorf("%s: layer %d head %d map %s: row %d differs", arch, h.Layer, h.Head, name, r.Token)
			}
		}
	}
	lam := p.lam[key(h.Layer, h.Head)]
	if h.Lambdas == nil {
		h.Lambdas = slices.Repeat(Floats{float32(h.Lambda)}, len(lam))
	}
	mean := 0.0
	for _, x := range lam {
		mean += x / float64(len(lam))
	}
	if !close32(h.Lambdas, lam) || !(math.Abs(h.Lambda-mean) <= 1e-5) {
		t.Errorf("%s: layer %d head %d: λ %v %v, want %v", arch, h.Layer, h.Head, h.Lambda, h.Lambdas, lam)
	}
}

func close32(got Floats, want []float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-want[i]) <= 1e-5) {
			return false
		}
	}
	return true
}

// handMap is map k of a head of the first layer, its lower triangle row by row.
func handMap(m *model.Model, ids []int32, head, k int) (out []float64) {
	c := m.Config
	arch, _ := layer.LookupArch(c.Arch)
	group := head / (c.Heads / c.KVHeads)
	l := layer.AttnConfig{Arch: arch, Heads: c.Heads, Groups: c.KVHeads}
	qAt, kAt := l.QueryHead(head, k)*c.HeadDim,
		arch.QueryHeads(c.Heads, c.KVHeads)*c.HeadDim+(group*arch.Keys+min(k, arch.Keys-1))*c.HeadDim
	project := firstProjection(m, ids)
	for i := range ids {
		q, row, sum := project(i, qAt), make([]float64, i+1), 0.0
		for j := range row {
			for d, v := range project(j, kAt) {
				row[j] += q[d] * v / math.Sqrt(float64(c.HeadDim))
			}
			row[j] = math.Exp(row[j])
			sum += row[j]
		}
		for _, v := range row {
			out = append(out, v/sum)
		}
	}
	return out
}

// firstProjection computes rows at…at+D of the first layer's projection of token t, rotated to its position.
func firstProjection(m *model.Model, ids []int32) func(t, at int) []float64 {
	c := m.Config
	table := weightsOf(m, "embed.weight")
	gain, qkv := weightsOf(m, "0.norm1.weight"), weightsOf(m, "0.attn.qkv.weight")
	return func(t, at int) []float64 {
		x, ss := table[int(ids[t])*c.Dim:][:c.Dim], 0.0
		for _, v := range x {
			ss += float64(v) * float64(v)
		}
		y := make([]float64, c.HeadDim)
		for j := range y {
			for i, v := range x {
				normed := float64(v) / math.Sqrt(ss/float64(c.Dim)+c.NormEps) * float64(gain[i])
				y[j] += normed * float64(qkv[(at+j)*c.Dim+i])
			}
		}
		for j := range c.HeadDim / 2 {
			sin, cos := math.Sincos(float64(t) * math.Pow(c.RopeTheta, -2*float64(j)/float64(c.HeadDim)))
			a, b := &y[j], &y[j+c.HeadDim/2]
			if c.RopeInterleaved {
				a, b = &y[2*j], &y[2*j+1]
			}
			*a, *b = *a*cos-*b*sin, *a*sin+*b*cos
		}
		return y
	}
}

// weightsOf are the values of the first parameter whose name ends in suffix.
func weightsOf(m *model.Model, suffix string) []float32 {
	for _, p := range m.Params.List {
		if strings.HasSuffix(p.Name, suffix) {
			x := make([]float32, p.Rows*p.Cols)
			device.ReadFloats(m.Device(), x, p.W)
			return x
		}
	}
	panic("no parameter " + suffix)
}
