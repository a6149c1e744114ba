package model

// Backprop runs a batch forward and backward: it adds the gradient of scale·Σ loss to the parameters' gradients and
// keeps the losses for Losses.
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

// backprop runs micro-batch i of f forward and backward.
func (m *Model) backprop(f *Feed, i int, scale float64, fresh bool, ready func(part int)) {
	p, in := m.begin(f, i)
	p.Fresh = fresh
	dx := p.Act(p.N(), m.Config.Dim)
	m.dev.Zero(dx)
	h := m.forward(p, in.ids, nil)
	dh := p.Act(p.N(), m.Config.Dim)
	m.loss.Backward(p, dh, in.losses, h, in.targets, scale)
	if ready == nil {
		ready = func(int) {}
	}
	m.backward(p, dx, dh, ready)
}
