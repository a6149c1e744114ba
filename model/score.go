package model

import "antiphase/device"

// Score runs a batch forward and keeps the losses for Losses.
func (m *Model) Score(b *Batch) error {
	if err := m.put(b, true); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	m.loss.Forward(p, in.losses, m.forward(p, in.ids, nil), in.targets)
	return nil
}

// Losses reads the loss of every row of the last batch; 0 where the target was −1.
func (m *Model) Losses(dst []float32) { device.ReadFloats(m.dev, dst, m.losses) }

// Logits runs a batch forward and reads the logits of all rows, [N,V], to the host.
func (m *Model) Logits(b *Batch, dst []float32) error {
	if err := m.put(b, false); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	device.ReadFloats(m.dev, dst, m.logits(p, m.forward(p, in.ids, nil)))
	return nil
}
