package model

import (
	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// forward runs the network to the last norm's output h [N,C].
func (m *Model) forward(p *layer.Pass, ids tensor.Tensor, c *Cache) tensor.Tensor {
	x := m.embed.Forward(p, ids)
	var delta tensor.Tensor
	for l, b := range m.blocks {
		x, delta = b.Forward(p, x, delta, c.layer(l))
		if p.Probe != nil {
			m.probeHidden(p, l, x, delta)
		}
	}
	_, h := m.norm.Forward(p, x, delta)
	return h
}

// probeHidden shows the stream behind block l, with the add done that the next norm would do.
func (m *Model) probeHidden(p *layer.Pass, l int, x, delta tensor.Tensor) {
	mark := p.Arena.Mark()
	s := p.Arena.New(x.Type, x.Rows, x.Cols)
	p.Dev.Copy(s, x)
	p.Dev.Add(s, delta)
	p.Probe.Hidden(l, s)
	p.Arena.Release(mark)
}

// Backprop runs a micro-batch forward and backward: it adds the gradient of scale·Σ loss to the parameters'
// gradients and keeps the losses for Losses.
func (m *Model) Backprop(b *Batch, scale float64) error {
	if err := b.checkScored(&m.Config); err != nil {
		return err
	}
	p, ids, targets := m.begin(b)
	m.losses = m.arena.New(m.dev.Types().Stat, 1, p.N())
	dx := m.arena.New(m.dev.Types().Act, p.N(), m.Config.Dim)
	m.dev.Zero(dx)
	h := m.forward(p, ids, nil)
	dh := m.arena.New(m.dev.Types().Act, p.N(), m.Config.Dim)
	m.loss.Backward(p, dh, m.losses, h, targets, scale)
	m.norm.Backward(p, dx, dh)
	for l := len(m.blocks) - 1; l >= 0; l-- {
		m.blocks[l].Backward(p, dx)
	}
	m.embed.Backward(p, dx)
	return nil
}

// Losses reads the loss of every row of the last Backprop or Score; 0 where the target was −1.
func (m *Model) Losses(dst []float32) { device.ReadFloats(m.dev, dst, m.losses) }

// Score runs a batch forward and keeps the losses for Losses.
func (m *Model) Score(b *Batch) error {
	if err := b.checkScored(&m.Config); err != nil {
		return err
	}
	p, ids, targets := m.begin(b)
	m.losses = m.arena.New(m.dev.Types().Stat, 1, p.N())
	m.loss.Forward(p, m.losses, m.forward(p, ids, nil), targets)
	return nil
}

// Logits runs a batch forward and reads the logits of all rows, [N,V], to the host.
func (m *Model) Logits(b *Batch, dst []float32) error {
	if err := b.check(&m.Config); err != nil {
		return err
	}
	p, ids, _ := m.begin(b)
	y := m.arena.New(m.dev.Types().Stat, p.N(), m.Config.Vocab)
	m.loss.Logits(p, y, m.forward(p, ids, nil))
	device.ReadFloats(m.dev, dst, y)
	return nil
}

// Inspect runs a batch forward under a probe.
func (m *Model) Inspect(b *Batch, probe layer.Probe) error {
	m.pass.Probe = probe
	defer func() { m.pass.Probe = nil }()
	if err := b.check(&m.Config); err != nil {
		return err
	}
	p, ids, _ := m.begin(b)
	m.forward(p, ids, nil)
	return nil
}
