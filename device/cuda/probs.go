package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var attnProbs = kernelOf("probs", "attention_probs")

// AttentionProbs materialises rows of one map.
func (d *attention) AttentionProbs(out, q, k tensor.Tensor, p device.Probs) {
	device.CheckAttentionProbs(out, q, k, p, d.types)
	if out.Rows == 0 {
		return
	}
	from, to := p.Seq*p.T, (p.Seq+1)*p.T
	q = q.RowRange(from, to).Columns(p.QHead*p.D, (p.QHead+1)*p.D)
	k = k.RowRange(from, to).Columns(p.KHead*p.D, (p.KHead+1)*p.D)
	d.launch(attnProbs, dim1(out.Rows), dim1(256), 0, ptr(out), ptr(q), ptr(k), i32(out.Ld), i32(q.Ld), i32(k.Ld),
		i32(p.Row), i32(p.T), i32(p.D), f32(p.Scale), flag(p.Logits))
}
