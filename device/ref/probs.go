package ref

import (
	"antiphase/device"
	"antiphase/tensor"
)

// AttentionProbs: out[r,s] = softmax_s(Scale·q·k_s), or the scaled logits, for s ≤ Row+r; 0 beyond.
func (d *attention) AttentionProbs(out, q, k tensor.Tensor, p device.Probs) {
	device.CheckAttentionProbs(out, q, k, p, d.types)
	qs, ks, m := load(q), load(k), newMatrix(out.Rows, out.Cols)
	first := p.Seq * p.T
	for r := range m.rows {
		n := first + p.Row + r
		y := logits(qs.head(n, p.QHead, p.D), ks, p.KHead, first, n, p.Scale)
		if !p.Logits {
			y, _ = softmax(y)
		}
		copy(m.row(r), y)
	}
	store(out, m)
}
