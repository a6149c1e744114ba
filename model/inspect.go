package model

import (
	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Inspect runs a batch forward under a probe. Nothing is kept for a backward pass: a layer's memory is released before
// the next layer allocates, so memory for a long sequence depends on the widest half of a block, not on depth.
func (m *Model) Inspect(b *Batch, probe layer.Probe) error {
	m.pass.Probe = probe
	defer func() { m.pass.Probe = nil }()
	if err := m.put(b, false); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	m.walk(p, in.ids)
	return nil
}

// afterBlocks is a probe that calls a function after every block.
type afterBlocks func()

func (afterBlocks) Attention(layer.View) {}

func (f afterBlocks) Hidden(int, tensor.Tensor) { f() }

// Hidden runs a batch forward and reads the last norm's output, [N,C], to the host. rest is called after every block.
func (m *Model) Hidden(b *Batch, rest func(), dst []float32) error {
	m.pass.Probe = afterBlocks(rest)
	defer func() { m.pass.Probe = nil }()
	if err := m.put(b, false); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	_, h := m.norm.Forward(p, m.walk(p, in.ids), tensor.Tensor{})
	device.ReadFloats(m.dev, dst, h)
	return nil
}

// walk is forward with the residual stream x [N,C] in one buffer. Adding a branch to it rounds as the norm would, so
// the numbers equal those of forward.
func (n *network) walk(p *layer.Pass, ids tensor.Tensor) tensor.Tensor {
	x := n.embed.Forward(p, ids)
	for l, b := range n.blocks {
		mark := p.Arena.Mark()
		_, h := b.Norm1.Forward(p, x, tensor.Tensor{})
		p.Dev.Add(x, b.Attn.Forward(p, h, nil))
		p.Arena.Release(mark)
		_, h = b.Norm2.Forward(p, x, tensor.Tensor{})
		p.Dev.Add(x, b.MLP.Forward(p, h))
		p.Arena.Release(mark)
		if p.Probe != nil {
			p.Probe.Hidden(l, x)
		}
	}
	return x
}
