package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// LambdaForm is how DIFF V2 computes λ of a token and head.
type LambdaForm string

// LambdaSigmoid is V2's own; the others are its ablations.
const (
	LambdaSigmoid LambdaForm = ""       // λ = σ(x·W_λᵀ)
	LambdaLinear  LambdaForm = "linear" // λ = x·W_λᵀ, unbounded
	LambdaNone    LambdaForm = "none"   // λ = 1, without parameters
)

// tokenLambda computes λ of every row and head from the layer's input.
type tokenLambda struct {
	form  LambdaForm
	heads int
	proj  *Linear       // W_λ [H,C]; nil without parameters
	sum   tensor.Tensor // [1,H]: Σ over rows of λ, for metrics; absent without parameters
	one   tensor.Tensor // [1,1]: λ without parameters
	dlam  tensor.Tensor // gradient of x·W_λᵀ
	split *Split
	own   tensor.Tensor // sum over this rank's heads, if ranks split them
}

func newTokenLambda(ps *ParamSet, c *AttnConfig) tokenLambda {
	l := tokenLambda{form: c.LambdaForm, heads: c.Heads, split: c.split}
	if l.form != LambdaNone {
		all := c.Heads * c.split.Parts()
		l.proj = NewLinear(ps, "lambda", c.Dim, all, 1, false)
		l.proj.W.Kind = LambdaMatrix
		if c.split != nil {
			l.proj.keepRows(c.split.run(0, all))
		}
	}
	return l
}

// forward returns λ, Stat [N,H], or [1,1] if all entries are equal.
func (l *tokenLambda) forward(p *Pass, x tensor.Tensor) tensor.Tensor {
	if l.form == LambdaNone {
		if !l.one.Ok() {
			l.one = device.Empty(p.Dev, p.Dev.Types().Stat, 1, 1)
			device.WriteFloats(p.Dev, l.one, []float64{1})
		}
		return l.one
	}
	lam := p.stat(x.Rows, l.heads)
	l.proj.Into(p, lam, x)
	if l.form == LambdaSigmoid {
		p.Dev.Sigmoid(lam, lam)
	}
	return lam
}

// count stores the sum of λ over the rows.
func (l *tokenLambda) count(p *Pass, lam tensor.Tensor) {
	if l.form == LambdaNone {
		return
	}
	if !l.sum.Ok() {
		l.sum = device.Empty(p.Dev, p.Dev.Types().Stat, 1, l.heads*l.split.Parts())
		l.own = l.sum
		if l.split != nil {
			l.own = device.Empty(p.Dev, p.Dev.Types().Stat, 1, l.heads)
		}
	}
	m := p.Arena.Mark()
	act := p.Act(lam.Rows, l.heads)
	p.Dev.Copy(act, lam)
	p.Dev.Zero(l.own)
	p.Dev.BiasBackward(l.own, act)
	p.Arena.Release(m)
	if l.split != nil {
		l.split.gather(l.sum, l.own)
	}
}

// backward turns dλ [N,H] into the gradient of the projection's output, in place.
func (l *tokenLambda) backward(p *Pass, dlam, lam tensor.Tensor) {
	if l.form == LambdaSigmoid {
		p.Dev.SigmoidBackward(dlam, dlam, lam)
	}
	l.dlam = dlam
}

// tail propagates that gradient through W_λ to the layer's input.
func (l *tokenLambda) tail(p *Pass, dx, x tensor.Tensor) {
	if l.form == LambdaNone {
		return
	}
	dlam := p.padded(x.Rows, l.heads)
	p.Dev.Copy(dlam, l.dlam)
	l.proj.Backward(p, dx, dlam, x, true)
}

func (l *tokenLambda) free(d device.Device) {
	for _, t := range []tensor.Tensor{l.sum, l.one} {
		if t.Ok() {
			d.Free(t.Buf)
		}
	}
	if l.split != nil && l.own.Ok() {
		d.Free(l.own.Buf)
	}
}
