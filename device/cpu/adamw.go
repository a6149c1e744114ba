package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type adamwTask struct {
	simd.AdamW
	w, p, m, v, g []float32 // p is the master copy, or w itself
	round         bool
}

// AdamW updates parameters in place.
func (d *Device) AdamW(a *device.AdamW) {
	a.Check(d.Types())
	d.touch(a.W, a.Master, a.M, a.V)
	sq := float64(f32(a.GradSq)[0])
	if math.IsNaN(sq) || math.IsInf(sq, 0) {
		return
	}
	t := &d.adamw
	*t = adamwTask{factors(a, sq), f32(a.W), f32(a.W), f32(a.M), f32(a.V), f32(a.G), a.RoundBF16}
	if a.Master.Ok() {
		t.p = f32(a.Master)
	}
	d.run((len(t.p)+chunk-1)/chunk, t)
}

// factors folds the step's constants, in float64, into those of the kernel.
func factors(a *device.AdamW, gradSq float64) simd.AdamW {
	rate := tensor.Host[float32](a.Rate)
	lr, c1, c2 := float64(rate[0]), float64(rate[1]), float64(rate[2])
	clip := 1.0
	if a.MaxNorm > 0 {
		clip = min(1, a.MaxNorm/math.Sqrt(gradSq))
	}
	return simd.AdamW{
		Clip:  float32(clip),
		Beta1: float32(a.Beta1), Beta1c: float32(1 - a.Beta1),
		Beta2: float32(a.Beta2), Beta2c: float32(1 - a.Beta2),
		Keep: float32(1 - lr*a.Decay), Step: float32(lr / c1),
		C2: float32(1 / c2), Eps: float32(a.Eps),
	}
}

func (t *adamwTask) tile(i, _ int) {
	const part = 1024 // p stays in the first cache between the update and the rounding
	for c0 := i * chunk; c0 < min((i+1)*chunk, len(t.p)); c0 += part {
		c1 := min(c0+part, len(t.p))
		p, w := t.p[c0:c1], t.w[c0:c1]
		simd.AdamWStep(p, t.m[c0:c1], t.v[c0:c1], t.g[c0:c1], &t.AdamW)
		switch {
		case t.round:
			simd.RoundBF16(w, p)
		case &w[0] != &p[0]:
			copy(w, p)
		}
	}
}
