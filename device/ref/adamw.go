package ref

import (
	"math"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// AdamW is one step: ĝ = g·clip, m and v are running means of ĝ and ĝ², p −= lr·(m̂/(√v̂+Eps) + Decay·p).
func (d *elementwise) AdamW(a *device.AdamW) {
	a.Check(d.types)
	sq := load(a.GradSq).v[0]
	if math.IsNaN(sq) || math.IsInf(sq, 0) {
		return
	}
	clip := 1.0
	if a.MaxNorm > 0 {
		clip = min(1, a.MaxNorm/math.Sqrt(sq))
	}
	rate, p, m, v, g := load(a.Rate).v, loadParam(a), load(a.M), load(a.V), load(a.G)
	lr, c1, c2 := rate[0], rate[1], rate[2]
	for i := range p.v {
		e := g.v[i] * clip
		m.v[i] = a.Beta1*m.v[i] + (1-a.Beta1)*e
		v.v[i] = a.Beta2*v.v[i] + (1-a.Beta2)*e*e
		p.v[i] -= lr * (m.v[i]/c1/(math.Sqrt(v.v[i]/c2)+a.Eps) + a.Decay*p.v[i])
	}
	store(a.M, m)
	store(a.V, v)
	storeParam(a, p)
}

// loadParam is p: W, its master, or what both are the halves of.
func loadParam(a *device.AdamW) matrix {
	switch {
	case a.Split():
		p := newMatrix(a.W.Rows, a.W.Cols)
		w, lower := tensor.Host[uint16](a.W), tensor.Host[uint16](a.Master)
		for i := range p.v {
			p.v[i] = float64(half.Join(w[i], lower[i]))
		}
		return p
	case a.Master.Ok():
		return load(a.Master)
	}
	return load(a.W)
}

func storeParam(a *device.AdamW, p matrix) {
	switch {
	case a.Split():
		w, lower := tensor.Host[uint16](a.W), tensor.Host[uint16](a.Master)
		for i, x := range p.v {
			w[i], lower[i] = half.Split(float32(x))
		}
		return
	case !a.Master.Ok():
		store(a.W, p)
		return
	}
	store(a.Master, p)
	w := matrix{a.W.Rows, a.W.Cols, p.v}
	if a.RoundBF16 {
		for i, e := range w.v {
			w.v[i] = float64(half.BF16ToF32(half.F32ToBF16(float32(e))))
		}
	}
	store(a.W, w)
}
