package layer

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Linear is y = x·Wᵀ (+ b): x [N,in], W [out,in], y [N,out]. x and dx may have extra columns, see Pass.wide; W has
// zeros there.
type Linear struct {
	W, B *Param // B is nil without a bias
}

// NewLinear declares a linear layer whose weights are initialised with the deviation of a uniform fan-in init,
// 1/√(3·in), times gain.
func NewLinear(ps *ParamSet, name string, in, out int, gain float64, bias bool) *Linear {
	l := &Linear{W: ps.Add(Param{Name: name + ".weight", Kind: Matrix, Rows: out, Cols: in,
		Std: gain / math.Sqrt(3*float64(in)), product: true})}
	if bias {
		l.B = ps.Add(Param{Name: name + ".bias", Kind: Bias, Rows: 1, Cols: out})
	}
	return l
}

// keepRows reduces the layer to these rows of its weight and bias.
func (l *Linear) keepRows(runs ...Run) {
	l.W.keep(false, runs...)
	if l.B != nil {
		l.B.keep(true, runs...)
	}
}

// Forward pushes y in the activations' dtype.
func (l *Linear) Forward(p *Pass, x tensor.Tensor) tensor.Tensor {
	y := p.Act(x.Rows, l.W.Rows)
	l.Into(p, y, x)
	return y
}

// Into computes y = x·Wᵀ (+ b) into a given tensor of any float dtype.
func (l *Linear) Into(p *Pass, y, x tensor.Tensor) {
	p.Dev.MatMul(y, x, l.W.shown(l.W.W, x.Cols), device.MatMul{TransB: true})
	if l.B != nil {
		p.Dev.AddBias(y, l.B.W)
	}
}

// Sum is Into for a layer whose columns are split over ranks: products are summed before rounding, and the bias is
// added once.
func (l *Linear) Sum(p *Pass, s *Split, y, x tensor.Tensor) {
	if s == nil {
		l.Into(p, y, x)
		return
	}
	m := p.Arena.Mark()
	share := s.begin(p, y)
	p.Dev.MatMul(share, x, l.W.shown(l.W.W, x.Cols), device.MatMul{TransB: true})
	s.end(p, y, share)
	p.Arena.Release(m)
	if l.B != nil {
		p.Dev.AddBias(y, l.B.W)
	}
}

// Backward is Weights and Input.
func (l *Linear) Backward(p *Pass, dx, dy, x tensor.Tensor, add bool) {
	l.Weights(p, dy, x)
	l.Input(p, dx, dy, add)
}

// Weights adds dyᵀ·x to W's gradient; in a fresh pass it overwrites it.
func (l *Linear) Weights(p *Pass, dy, x tensor.Tensor) {
	p.Dev.MatMul(l.W.shown(l.W.G, x.Cols), dy, x, device.MatMul{TransA: true, Accumulate: !p.Fresh})
	if l.B != nil {
		p.Dev.BiasBackward(l.B.G, dy)
	}
}

// Input sets dx = dy·W, or adds to dx if add is set.
func (l *Linear) Input(p *Pass, dx, dy tensor.Tensor, add bool) {
	p.Dev.MatMul(dx, dy, l.W.shown(l.W.W, dx.Cols), device.MatMul{Accumulate: add})
}
