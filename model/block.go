package model

import (
	"strconv"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Block is one layer of the network: y = x + attn(norm(x)), x' = y + mlp(norm(y)).
//
// The adds are fused into the norms: a block takes the residual stream x and the branch delta that is not yet added to
// it, and returns the same pair.
type Block struct {
	Norm1 *layer.Norm
	Attn  *layer.Attention
	Norm2 *layer.Norm
	MLP   *layer.MLP
}

func newBlock(ps *layer.ParamSet, c Config, l int, rope *layer.Rope) *Block {
	b := &Block{}
	a, _ := c.attn(l) // the configuration was checked
	a.Rope = rope
	ps.Under("layers."+strconv.Itoa(l), func() {
		b.Norm1 = layer.NewNorm(ps, "norm1", c.Dim, c.NormEps)
		ps.Under("attn", func() { b.Attn = layer.NewAttention(ps, a) })
		b.Norm2 = layer.NewNorm(ps, "norm2", c.Dim, c.NormEps)
		ps.Under("mlp", func() { b.MLP = layer.NewMLP(ps, c.Dim, c.FFN, c.residualGain()) })
	})
	return b
}

// Forward returns the residual stream before the last add, and the branch to add.
func (b *Block) Forward(p *layer.Pass, x, delta tensor.Tensor, c *device.Cache) (tensor.Tensor, tensor.Tensor) {
	if p.Recompute == layer.RecomputeBlocks {
		return b.forwardDropped(p, x, delta, c)
	}
	x, h := b.Norm1.Forward(p, x, delta)
	m := p.Arena.Mark()
	branch := b.Attn.Forward(p, h, c)
	if p.Recompute == layer.RecomputeAttention {
		p.Arena.Release(m)
	}
	x, h = b.Norm2.Forward(p, x, branch)
	return x, b.MLP.Forward(p, h)
}

// forwardDropped is Forward that leaves only the residual stream before the block on the stack. The stream after its
// first half is in p.Stream until the next norm has read it.
func (b *Block) forwardDropped(p *layer.Pass, x, delta tensor.Tensor, c *device.Cache) (tensor.Tensor, tensor.Tensor) {
	s := x
	if delta.Ok() {
		s = p.Act(x.Rows, x.Cols)
	}
	m := p.Arena.Mark()
	x, delta = b.passing(p, s, x, delta, c)
	p.Arena.Release(m)
	return x, delta
}

// passing is Forward with the residual stream in the caller's memory: before the block in s, which without a delta is
// x, and after its first half in p.Stream, which may be x.
func (b *Block) passing(p *layer.Pass, s, x, delta tensor.Tensor, c *device.Cache) (tensor.Tensor, tensor.Tensor) {
	h := b.Norm1.Into(p, s, x, delta)
	h = b.Norm2.Into(p, p.Stream, s, b.Attn.Forward(p, h, c))
	return p.Stream, b.MLP.Forward(p, h)
}

// again recomputes what forwardDropped dropped and Backward needs.
func (b *Block) again(p *layer.Pass) {
	s := b.Norm1.Stream()
	branch := b.Attn.Forward(p, b.Norm1.Again(p), nil)
	b.MLP.Again(p, b.Norm2.Into(p, p.Stream, s, branch))
}

// Backward turns dx, the gradient of the residual stream after the block, into the gradient before it, in place. Each
// branch reads dx before its norm adds to it; the residual path leaves dx unchanged. half is called once the gradients
// of the MLP and its norm are complete.
func (b *Block) Backward(p *layer.Pass, dx tensor.Tensor, half func()) {
	m := p.Arena.Mark()
	if p.Recompute == layer.RecomputeBlocks {
		b.again(p)
	}
	dh := p.Act(dx.Rows, dx.Cols)
	b.MLP.Backward(p, dh, dx)
	b.Norm2.Backward(p, dx, dh)
	half()
	if p.Recompute == layer.RecomputeAttention {
		b.Attn.Again(p)
	}
	b.Attn.Backward(p, dh, dx)
	b.Norm1.Backward(p, dx, dh)
	p.Arena.Release(m)
}
