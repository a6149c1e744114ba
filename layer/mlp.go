package layer

import "antiphase/tensor"

// MLP is SwiGLU: y = (silu(x·W_Gᵀ) ∘ x·W_Uᵀ)·W_Dᵀ, with W_G and W_U stacked in one product [2F,C].
type MLP struct {
	GateUp, Down *Linear
	split        *Split

	x, gu tensor.Tensor // kept for Backward
}

// NewMLP declares the two products; gain scales the initial weights of the one that writes to the residual stream.
func NewMLP(ps *ParamSet, dim, inner int, gain float64) *MLP {
	l := &MLP{
		GateUp: NewLinear(ps, "gate_up", dim, 2*inner, 1, false),
		Down:   NewLinear(ps, "down", inner, dim, gain, false),
		split:  ps.Split,
	}
	if s := ps.Split; s != nil {
		l.GateUp.keepRows(s.run(0, inner), s.run(inner, inner))
		l.Down.W.keep(true, s.run(0, inner))
	}
	return l
}

// Forward pushes gu [N,2F] and returns y [N,C], a branch. The hidden h [N,F] between them is recomputed in Backward.
func (l *MLP) Forward(p *Pass, x tensor.Tensor) tensor.Tensor {
	y := p.branch(x.Rows, l.Down.W.Rows)
	l.Again(p, x)
	m, inner := p.Arena.Mark(), l.gu.Cols/2
	h := p.wide(x.Rows, inner)
	p.Dev.SwiGLU(h.Columns(0, inner), l.gu)
	l.Down.Sum(p, l.split, y, h)
	p.Arena.Release(m)
	return y
}

// Again recomputes gu, which Backward needs, from the x of the last Forward, without y.
func (l *MLP) Again(p *Pass, x tensor.Tensor) {
	l.x = x
	l.gu = l.GateUp.Forward(p, x)
}

// Backward sets dx from dy.
func (l *MLP) Backward(p *Pass, dx, dy tensor.Tensor) {
	h := p.Act(dy.Rows, l.Down.W.stride())
	l.Down.Input(p, h, dy, false) // dh, with zeros after its columns as in W
	inside := h.Columns(0, l.gu.Cols/2)
	p.Dev.SwiGLUBackward(l.gu, inside, inside, l.gu)
	l.Down.Weights(p, dy, h)
	share := l.split.begin(p, dx)
	l.GateUp.Backward(p, share, l.gu, l.x, false)
	l.split.end(p, dx, share)
}
