package layer

import "antiphase/tensor"

// Norm adds a branch to the residual stream and normalises the sum: s = x + delta, y = s/rms(s)·w.
type Norm struct {
	W   *Param // [1,C]
	Eps float64

	s, rstd tensor.Tensor // kept for Backward
}

// NewNorm declares a norm of width dim with gain 1.
func NewNorm(ps *ParamSet, name string, dim int, eps float64) *Norm {
	return &Norm{W: ps.Add(Param{Name: name + ".weight", Kind: Gain, Rows: 1, Cols: dim, Const: 1}), Eps: eps}
}

// Forward pushes s and y. Without a delta (the first norm) s is x itself.
func (l *Norm) Forward(p *Pass, x, delta tensor.Tensor) (s, y tensor.Tensor) {
	s = x
	if delta.Ok() {
		s = p.Act(x.Rows, x.Cols)
	}
	return s, l.Into(p, s, x, delta)
}

// Into is Forward with s in the caller's memory; without a delta s must be x.
func (l *Norm) Into(p *Pass, s, x, delta tensor.Tensor) (y tensor.Tensor) {
	var sum tensor.Tensor
	if delta.Ok() {
		sum = s
	}
	y = p.Act(x.Rows, x.Cols)
	l.s, l.rstd = s, p.stat(1, x.Rows)
	p.Dev.RMSNorm(y, l.rstd, sum, x, delta, l.W.W, l.Eps)
	return y
}

// Stream is s of the last Forward.
func (l *Norm) Stream() tensor.Tensor { return l.s }

// Again recomputes y of the last Forward from s.
func (l *Norm) Again(p *Pass) (y tensor.Tensor) { return l.Into(p, l.s, l.s, tensor.Tensor{}) }

// Backward adds the norm's gradient to ds, which already holds the gradient that bypasses the norm along the residual
// stream. ds is then the gradient of both x and delta.
func (l *Norm) Backward(p *Pass, ds, dy tensor.Tensor) {
	p.Dev.RMSNormBackward(ds, l.W.G, dy, l.s, l.W.W, l.rstd)
}
