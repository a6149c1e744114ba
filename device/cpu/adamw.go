package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type adamwTask struct {
	simd.AdamW
	w, p, m, v, g []float32 // p is the master copy or w itself, nil if it is in halves
	h, low        []uint16  // w in bfloat16, and p's lower halves if h is the upper ones
	round         bool
	d             *machine
}

// AdamW updates parameters in place.
func (d *elementwise) AdamW(a *device.AdamW) {
	a.Check(d.Types())
	d.touch(a.W, a.Master, a.M, a.V)
	sq := float64(f32(a.GradSq)[0])
	if math.IsNaN(sq) || math.IsInf(sq, 0) {
		return
	}
	t := &d.adamw
	w := matOf(a.W)
	*t = adamwTask{AdamW: factors(a, sq), w: w.x, p: w.x, m: f32(a.M), v: f32(a.V), g: f32(a.G), h: w.h,
		round: a.RoundBF16, d: d.machine}
	switch {
	case a.Split():
		t.low = tensor.Host[uint16](a.Master)
	case a.Master.Ok():
		t.p = f32(a.Master)
	}
	d.reserve(pieceLen)
	d.run((len(t.g)+chunk-1)/chunk, t)
}

// factors folds the step's constants, in float64, into the kernel's.
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

func (t *adamwTask) tile(i, worker int) {
	buf := t.d.buf(worker, pieceLen)
	for c0 := i * chunk; c0 < min((i+1)*chunk, len(t.g)); c0 += pieceLen { // p stays in L1 between update and rounding
		c1 := min(c0+pieceLen, len(t.g))
		if t.low != nil && simd.VectorsBF16() {
			simd.AdamWSplitStep(t.h[c0:c1], t.low[c0:c1], t.m[c0:c1], t.v[c0:c1], t.g[c0:c1], &t.AdamW)
			continue
		}
		p := t.load(c0, c1, buf)
		simd.AdamWStep(p, t.m[c0:c1], t.v[c0:c1], t.g[c0:c1], &t.AdamW)
		t.store(c0, c1, p)
	}
}

// load returns parameters [c0,c1) in float32: in place, or in buf.
func (t *adamwTask) load(c0, c1 int, buf []float32) []float32 {
	switch {
	case t.p != nil:
		return t.p[c0:c1]
	case t.low != nil:
		simd.JoinBF16(buf[:c1-c0], t.h[c0:c1], t.low[c0:c1])
	default:
		simd.WidenBF16(buf[:c1-c0], t.h[c0:c1])
	}
	return buf[:c1-c0]
}

// store sets the weights [c0,c1) to p.
func (t *adamwTask) store(c0, c1 int, p []float32) {
	switch {
	case t.low != nil:
		simd.SplitBF16(t.h[c0:c1], t.low[c0:c1], p)
	case t.h != nil:
		simd.NarrowBF16(t.h[c0:c1], p)
	case t.round:
		simd.RoundBF16(t.w[c0:c1], p)
	case &t.w[c0] != &p[0]:
		copy(t.w[c0:c1], p)
	}
}
