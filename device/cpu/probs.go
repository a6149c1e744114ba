package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// probsTask is AttentionProbs in progress; a tile is one row.
type probsTask struct {
	device.Probs
	out, q, k mat
	d         *machine
}

// AttentionProbs materialises rows of one softmax map.
func (d *attention) AttentionProbs(out, q, k tensor.Tensor, p device.Probs) {
	device.CheckAttentionProbs(out, q, k, p, d.Types())
	d.touch(out)
	d.probs = probsTask{p, matOf(out), matOf(q), matOf(k), d.machine}
	d.reserve(2 * p.D)
	d.run(out.Rows, &d.probs)
}

func (t *probsTask) tile(r, worker int) {
	out, n := t.out.row(r), t.Row+r+1
	buf := t.d.buf(worker, 2*t.D)
	q := t.q.read(t.Seq*t.T+t.Row+r, t.QHead*t.D, (t.QHead+1)*t.D, buf[:t.D])
	for s := range n {
		out[s] = simd.Dot(q, t.k.read(t.Seq*t.T+s, t.KHead*t.D, (t.KHead+1)*t.D, buf[t.D:]))
	}
	clear(out[n:])
	simd.Scale(out[:n], float32(t.Scale))
	if t.Logits {
		return
	}
	sum := simd.ExpSum(out[:n], out[:n], 1, simd.Max(out[:n]))
	simd.Scale(out[:n], 1/sum)
}
