package model

import (
	"errors"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// forward runs the network to the last norm's output h [N,C]. Prompt chunks may be long and have no backward pass, so
// only the stream and the branch of each block are kept.
func (m *Model) forward(p *layer.Pass, ids tensor.Tensor, c *Cache) tensor.Tensor {
	x := m.embed.Forward(p, ids)
	p.Branch = p.Act(x.Rows, x.Cols)
	if p.Recompute == layer.RecomputeBlocks {
		p.Stream = p.Act(x.Rows, x.Cols)
	}
	var delta, kept tensor.Tensor
	if len(p.Chunks) > 0 {
		kept = p.Act(x.Rows, x.Cols)
	}
	mark := m.arena.Mark()
	for l, b := range m.blocks {
		x, delta = b.Forward(p, x, delta, c.layer(l))
		if len(p.Chunks) > 0 {
			m.dev.Copy(kept, x)
			x = kept
			m.arena.Release(mark)
		}
	}
	_, h := m.norm.Forward(p, x, delta)
	return h
}

// Backprop runs a batch forward and backward: it adds the gradient of scale·Σ loss to the parameters' gradients and keeps the
// losses for Losses.
func (m *Model) Backprop(b *Batch, scale float64) error {
	if err := m.put(b, true); err != nil {
		return err
	}
	m.backprop(&m.feed, 0, scale, false, nil)
	return nil
}

// Gradient sets the parameters' gradients to that of scale·Σ loss over the batch in f (see Put), which must have
// targets. All work is on the device, so it can be recorded. ready, unless nil, is called during the last micro-batch's
// backward pass as soon as the gradients of a part of the model are complete: part Parts()-1 first, part 0 last.
func (m *Model) Gradient(f *Feed, scale float64, ready func(part int)) {
	m.Params.ZeroSums(m.dev)
	last := f.b/f.micro - 1
	for i := range last {
		m.backprop(f, i, scale, i == 0, nil)
	}
	if m.Split() != nil {
		next := ready
		ready = func(part int) {
			m.finish(part)
			if next != nil {
				next(part)
			}
		}
	}
	m.backprop(f, last, scale, last == 0, ready)
}

// Parts is the number of parts that a backward pass completes in turn: the embedding, attention and MLP of each block
// with their norms, and everything after the blocks.
func (m *Model) Parts() int { return 2*len(m.blocks) + 2 }

// Part returns the parameters of one part; all parts in order make up Params.List.
func (m *Model) Part(i int) []*layer.Param { return m.Params.List[m.parts[i]:m.parts[i+1]] }

// block returns the parameters of a block: two parts.
func (m *Model) block(l int) []*layer.Param { return m.Params.List[m.parts[2*l+1]:m.parts[2*l+3]] }

// backprop runs micro-batch i of f forward and backward.
func (m *Model) backprop(f *Feed, i int, scale float64, fresh bool, ready func(part int)) {
	p, in := m.begin(f, i)
	p.Fresh = fresh
	dx := p.Act(p.N(), m.Config.Dim)
	m.dev.Zero(dx)
	h := m.forward(p, in.ids, nil)
	dh := p.Act(p.N(), m.Config.Dim)
	m.loss.Backward(p, dh, in.losses, h, in.targets, scale)
	m.norm.Backward(p, dx, dh)
	if ready == nil {
		ready = func(int) {}
	}
	ready(m.Parts() - 1)
	for l := len(m.blocks) - 1; l >= 0; l-- {
		m.blocks[l].Backward(p, dx, func() { ready(2*l + 2) })
		ready(2*l + 1)
	}
	m.embed.Backward(p, dx)
	ready(0)
}

// put fills the model's own feed for a single pass.
func (m *Model) put(b *Batch, scored bool) error {
	if m.lead != nil {
		return ErrParts
	}
	if scored && b.Targets == nil {
		return errors.New("model: the batch has no targets to score")
	}
	return m.Put(&m.feed, b, b.B)
}

// Losses reads the loss of every row of the last batch; 0 where the target was −1.
func (m *Model) Losses(dst []float32) { device.ReadFloats(m.dev, dst, m.losses) }

// Score runs a batch forward and keeps the losses for Losses.
func (m *Model) Score(b *Batch) error {
	if err := m.put(b, true); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	m.loss.Forward(p, in.losses, m.forward(p, in.ids, nil), in.targets)
	return nil
}

// Logits runs a batch forward and reads the logits of all rows, [N,V], to the host.
func (m *Model) Logits(b *Batch, dst []float32) error {
	if err := m.put(b, false); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	device.ReadFloats(m.dev, dst, m.logits(m.forward(p, in.ids, nil)))
	return nil
}
