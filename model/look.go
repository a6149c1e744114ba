package model

import (
	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// lookRows is the number of rows of logits Look holds at a time.
const lookRows = 16

// Look runs a batch forward under a probe, which may be nil, through to its outputs: the loss of every row if the batch
// has targets (see Losses), and the logits of the rows in want, for each of which row is called in turn. A row is valid
// during the call. Memory does not grow with the number of wanted rows.
func (m *Model) Look(b *Batch, probe layer.Probe, want []int, row func(i int, logits []float32)) error {
	m.pass.Probe = probe
	defer func() { m.pass.Probe = nil }()
	if err := m.put(b, false); err != nil {
		return err
	}
	p, in := m.begin(&m.feed, 0)
	_, h := m.norm.Forward(p, m.walk(p, in.ids), tensor.Tensor{})
	if b.Targets != nil {
		m.loss.Forward(p, in.losses, h, in.targets)
	}
	V := m.Config.Vocab
	host := make([]float32, min(lookRows, len(want))*V)
	for len(want) > 0 {
		n := min(lookRows, len(want))
		mark := p.Arena.Mark()
		rows := p.Act(n, h.Cols)
		for i, w := range want[:n] {
			m.dev.Copy(rows.RowRange(i, i+1), h.RowRange(w, w+1))
		}
		device.ReadFloats(m.dev, host[:n*V], m.logits(p, rows))
		p.Arena.Release(mark)
		for i, w := range want[:n] {
			row(w, host[i*V:(i+1)*V])
		}
		want = want[n:]
	}
	return nil
}
