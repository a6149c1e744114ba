package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Loss is the output projection with its cross-entropy: y = x·Wᵀ, loss_n = logsumexp(y_n) − y_n[target_n].
// W [V,C] is the embedding table itself when tied.
type Loss struct {
	W   *Param
	arg device.Classifier
}

// Forward writes the loss of each row, 0 where the target is −1.
func (l *Loss) Forward(p *Pass, loss, x, targets tensor.Tensor) {
	l.arg = device.Classifier{X: x, W: l.W.W, Targets: targets, Loss: loss}
	p.Dev.Classify(&l.arg)
}

// Backward computes the losses and, from the same logits, dx and W's gradient for scale·Σ loss.
func (l *Loss) Backward(p *Pass, dx, loss, x, targets tensor.Tensor, scale float64) {
	l.arg = device.Classifier{X: x, W: l.W.W, Targets: targets, Loss: loss, DX: dx, DW: l.W.G, Scale: scale}
	p.Dev.Classify(&l.arg)
}

// Logits computes y for the rows of x, without a loss.
func (l *Loss) Logits(p *Pass, y, x tensor.Tensor) {
	p.Dev.MatMul(y, x, l.W.W, device.MatMul{TransB: true})
}
