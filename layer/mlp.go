package layer

import "antiphase/tensor"

// MLP is SwiGLU: y = (silu(x·W_Gᵀ) ∘ x·W_Uᵀ)·W_Dᵀ, with W_G and W_U stacked in one product [2F,C].
type MLP struct {
	GateUp, Down *Linear

	x, gu, h tensor.Tensor // kept for Backward; h is wide
}

// NewMLP declares the two products; gain scales the initial weights of the one that writes to the residual stream.
func NewMLP(ps *ParamSet, dim, inner int, gain float64) *MLP {
	return &MLP{
		GateUp: NewLinear(ps, "gate_up", dim, 2*inner, 1, false),
		Down:   NewLinear(ps, "down", inner, dim, gain, false),
	}
}

// Forward pushes gu [N,2F], h [N,F] and y [N,C].
func (l *MLP) Forward(p *Pass, x tensor.Tensor) tensor.Tensor {
	l.x = x
	l.gu = l.GateUp.Forward(p, x)
	inner := l.gu.Cols / 2
	l.h = p.wide(x.Rows, inner)
	p.Dev.SwiGLU(l.h.Columns(0, inner), l.gu)
	return l.Down.Forward(p, l.h)
}

// Backward sets dx from dy.
func (l *MLP) Backward(p *Pass, dx, dy tensor.Tensor) {
	dh := p.act(l.h.Rows, l.h.Cols)
	l.Down.Backward(p, dh, dy, l.h, false)
	p.Dev.SwiGLUBackward(l.gu, dh.Columns(0, l.gu.Cols/2), l.gu)
	l.GateUp.Backward(p, dx, l.gu, l.x, false)
}
