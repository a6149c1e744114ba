package ref

import (
	"math"

	"antiphase/device"
	"antiphase/internal/half"
)

// AdamW is one step: ĝ = g·clip, m and v are running means of ĝ and ĝ², p −= lr·(m̂/(√v̂+Eps) + Decay·p).
func (d *Device) AdamW(a *device.AdamW) {
	a.Check(d.types)
	sq := load(a.GradSq).v[0]
	if math.IsNaN(sq) || math.IsInf(sq, 0) {
		return
	}
	clip := 1.0
	if a.MaxNorm > 0 {
		clip = min(1, a.MaxNorm/math.Sqrt(sq))
	}
	param := a.W
	if a.Master.Ok() {
		param = a.Master
	}
	rate, p, m, v, g := load(a.Rate).v, load(param), load(a.M), load(a.V), load(a.G)
	lr, c1, c2 := rate[0], rate[1], rate[2]
	for i := range p.v {
		e := g.v[i] * clip
		m.v[i] = a.Beta1*m.v[i] + (1-a.Beta1)*e
		v.v[i] = a.Beta2*v.v[i] + (1-a.Beta2)*e*e
		p.v[i] -= lr * (m.v[i]/c1/(math.Sqrt(v.v[i]/c2)+a.Eps) + a.Decay*p.v[i])
	}
	store(a.M, m)
	store(a.V, v)
	store(param, p)
	if !a.Master.Ok() {
		return
	}
	w := matrix{a.W.Rows, a.W.Cols, p.v}
	if a.RoundBF16 {
		for i, e := range w.v {
			w.v[i] = float64(half.BF16ToF32(half.F32ToBF16(float32(e))))
		}
	}
	store(a.W, w)
}
