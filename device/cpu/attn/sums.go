package attn

import (
	"math"

	"antiphase/internal/simd"
)

// sums is the state of an online softmax, one vector for each row and map.
type sums struct {
	acc      []float32 // Σ exp(logit − top)·v, rows ld apart
	ld       int
	top, sum []float32 // largest logit so far, Σ exp(logit − top)
}

// cutSums takes the state of n vectors from buf, with rows of acc in whole panels.
func (o *op) cutSums(buf *[]float32, n int) sums {
	ld := o.whole(o.DV)
	return sums{acc: simd.Cut(buf, n*ld), ld: ld, top: simd.Cut(buf, n), sum: simd.Cut(buf, n)}
}

// reset begins a softmax. acc is overwritten by the first tile.
func (s *sums) reset() {
	clear(s.sum)
	for i := range s.top {
		s.top[i] = float32(math.Inf(-1))
	}
}

// join adds the sums of later keys to x: those with the smaller top are rescaled to the larger. factors has room for
// two per vector.
func (o *op) join(x, later *sums, factors []float32, on *worker) {
	n := len(x.top)
	fx, fl := factors[:n], factors[n:2*n]
	for v := range fx {
		fx[v] = -max(later.top[v]-x.top[v], x.top[v]-later.top[v])
	}
	simd.ExpSum(fx, fx, o.unit(), 0)
	for v, f := range fx {
		if fl[v] = f; later.top[v] > x.top[v] {
			fl[v] = 1
			x.top[v], x.sum[v] = later.top[v], float32(x.sum[v]*f)+later.sum[v]
			continue
		}
		fx[v] = 1
		x.sum[v] += float32(f * later.sum[v])
	}
	on.tile.JoinRows(x.acc, x.ld, later.acc, later.ld, n, o.DV, fx, fl)
}

// finish writes rows n … n+count−1 of head h: raw = A1·V − λ·A2·V, the head norm, and what backward will need. Map m's
// sums are m·step vectors further; all are overwritten.
func (o *op) finish(n, h, count, step int, s sums, on *worker) {
	c := h * o.DV
	for m := range o.maps {
		lse := s.top[m*step:][:count]
		simd.LogSums(lse, s.sum[m*step:])
		for r := 0; r < count && o.LSE.ok(); r++ {
			o.LSE.X[(n+r)*o.LSE.Ld+h*o.maps+m] = lse[r]
		}
	}
	if o.maps == 1 && !o.norm.On {
		on.tile.ScaleRows(o.Out.From(n, c), s.acc, s.ld, count, o.DV, s.sum, o.Out.far())
		return
	}
	if o.maps == 1 {
		on.tile.ScaleRows(simd.View{X: s.acc, Ld: s.ld}, s.acc, s.ld, count, o.DV, s.sum, false)
		o.normalize(n, h, count, &s, on)
		on.tile.ScaleRows(o.Out.From(n, c), s.acc, s.ld, count, o.DV, ones[:], o.Out.far())
		return
	}
	for r := range count { // raw = A1·V − λ·A2·V
		s.top[r] = -o.lambda(n+r, h) * s.sum[step+r]
	}
	if o.norm.On {
		o.mixNorm(n, h, count, step, &s, on)
		return
	}
	second := s.acc[step*s.ld:]
	on.tile.JoinRows(s.acc, s.ld, second, s.ld, count, o.DV, s.sum, s.top)
	if o.Out2.ok() {
		on.tile.ScaleRows(o.Out2.From(n, c), second, s.ld, count, o.DV, s.sum[step:], o.Out2.far())
	}
	on.tile.ScaleRows(o.Out.From(n, c), s.acc, s.ld, count, o.DV, ones[:], o.Out.far())
}

// mixNorm does the rest of finish for two maps and a head norm; s.top has the factors of the second map in raw.
func (o *op) mixNorm(n, h, count, step int, s *sums, on *worker) {
	c, x := h*o.DV, &on.mix
	*x = simd.MixNorm{Rows: count, Cols: o.DV, Acc: [2][]float32{s.acc, s.acc[step*s.ld:]}, Ld: s.ld,
		F: [2][]float32{s.sum, s.top}, Back: s.sum[step:], Out: o.Out.From(n, c), Weight: o.weight,
		Eps: float32(o.norm.Eps), Scale: float32(o.norm.Scale), Far: o.Out.far()}
	if o.Raw.ok() {
		x.Raw = o.Raw.From(n, c)
	}
	if o.Out2.ok() {
		x.Out2 = o.Out2.From(n, c)
	}
	x.Rstd, x.LdRstd = o.rstd(n, h, s)
	on.tile.MixNorm(x)
}

// rstd is where rstd of row n and head h goes, and the distance to the next row's: if it is not wanted, over sums that
// are used no more.
func (o *op) rstd(n, h int, s *sums) ([]float32, int) {
	if o.Rstd.ok() {
		return o.Rstd.From(n, h).X, o.Rstd.Ld
	}
	return s.sum, 1
}

// normalize stores raw and applies the head norm to it, in place.
func (o *op) normalize(n, h, count int, s *sums, on *worker) {
	if o.Raw.ok() {
		on.tile.ScaleRows(o.Raw.From(n, h*o.DV), s.acc, s.ld, count, o.DV, ones[:], o.Raw.far())
	}
	rstd, step := o.rstd(n, h, s)
	on.tile.NormRows(s.acc, s.ld, count, o.DV, o.weight, rstd, step, float32(o.norm.Eps), float32(o.norm.Scale))
}
