package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Probe looks inside a pass. What it is handed is valid only during the call.
type Probe interface {
	// Attention is called by every attention layer after its queries and keys are known.
	Attention(v View)
	// Hidden is called with the residual stream behind every block, both adds done: x [N,C].
	Hidden(layer int, x tensor.Tensor)
}

// View is what an attention layer shows: enough to compute any row of its maps.
type View struct {
	Layer int
	Shape device.AttnShape
	Maps  int           // 1, or 2 for differential heads
	Keys  int           // key heads per group
	Q, K  tensor.Tensor // rotated
	Lam   tensor.Tensor // Stat [1,1] or [N,H]; absent without λ
	dev   device.Device
}

func (l *Attention) view(p *Pass, s device.AttnShape, q, k tensor.Tensor) View {
	lam, _ := l.mix.lambda()
	return View{Layer: l.cfg.Layer, Shape: s, Maps: l.cfg.Arch.Queries, Keys: l.cfg.Arch.Keys, Q: q, K: k, Lam: lam, dev: p.Dev}
}

// Rows materialises rows of map m (0 or 1) of a head into out, Stat [rows,T], starting at query row of
// sequence seq; with logits the scaled scores before the softmax.
func (v View) Rows(out tensor.Tensor, head, m, seq, row int, logits bool) {
	group := head / (v.Shape.Heads / v.Shape.Groups)
	v.dev.AttentionProbs(out, v.Q, v.K, device.Probs{
		T: v.Shape.T, D: v.Shape.D, Seq: seq, Row: row, Scale: v.Shape.Scale, Logits: logits,
		QHead: head*v.Maps + m, KHead: group*v.Keys + min(m, v.Keys-1),
	})
}

// Lambda is λ of a row and head; 0 without λ. buf holds Lam's values, as Lambdas reads them.
func (v View) Lambda(buf []float64, row, head int) float64 {
	switch v.Lam.Len() {
	case 0:
		return 0
	case 1:
		return buf[0]
	}
	return buf[row*v.Shape.Heads+head]
}

// Lambdas reads all of λ to the host.
func (v View) Lambdas() []float64 {
	buf := make([]float64, v.Lam.Len())
	if len(buf) > 0 {
		device.ReadFloats(v.dev, buf, v.Lam)
	}
	return buf
}
