package layer

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Loss is the output projection with its cross-entropy: y = x·Wᵀ, loss_n = logsumexp(y_n) − y_n[target_n]. W [V,C] is
// the embedding table itself if tied. If ranks split the vocabulary, each has some of the classes.
type Loss struct {
	W     *Param
	split *Split
	arg   device.Classifier
}

// NewLoss projects with w, or declares its own matrix if w is nil.
func NewLoss(ps *ParamSet, w *Param, vocab, dim int) *Loss {
	if w == nil {
		w = ps.Add(Param{Name: "head.weight", Kind: Matrix, Rows: vocab, Cols: dim, Std: 1 / math.Sqrt(float64(dim))})
		if s := ps.Split; s != nil {
			w.keep(false, s.run(0, vocab))
		}
	}
	return &Loss{W: w, split: ps.Split}
}

// Forward writes the loss of each row, 0 where the target is −1.
func (l *Loss) Forward(p *Pass, loss, x, targets tensor.Tensor) {
	l.arg = device.Classifier{X: x, W: l.W.W, Targets: targets, Loss: loss}
	l.classify(p)
}

// Backward computes the losses and, from the same logits, dx and W's gradient for scale·Σ loss.
func (l *Loss) Backward(p *Pass, dx, loss, x, targets tensor.Tensor, scale float64) {
	l.arg = device.Classifier{X: x, W: l.W.W, Targets: targets, Loss: loss, DX: dx, DW: l.W.G, Scale: scale}
	l.classify(p)
	l.split.add(p, dx)
}

// classify first gathers each rank's log-sum-exp if ranks split the vocabulary.
func (l *Loss) classify(p *Pass) {
	m := p.Arena.Mark()
	if s := l.split; s != nil {
		n := l.arg.X.Rows
		first := device.Classifier{X: l.arg.X, W: l.arg.W, Targets: l.arg.Targets, Loss: l.arg.Loss, Part: p.stat(2, n)}
		p.Dev.Classify(&first)
		l.arg.Parts = p.stat(2*s.Parts(), n)
		s.gather(l.arg.Parts, first.Part)
	}
	p.Dev.Classify(&l.arg)
	p.Arena.Release(m)
}

// Logits computes y for the rows of x, without a loss.
func (l *Loss) Logits(p *Pass, y, x tensor.Tensor) {
	if l.split == nil {
		p.Dev.MatMul(y, x, l.W.W, device.MatMul{TransB: true})
		return
	}
	m := p.Arena.Mark()
	n, parts, width := x.Rows, l.split.Parts(), l.W.Rows
	mine, all := p.stat(n, width), p.stat(parts*n, width)
	p.Dev.MatMul(mine, x, l.W.W, device.MatMul{TransB: true})
	l.split.gather(all, mine)
	for r := range parts {
		p.Dev.Copy(y.Columns(r*width, (r+1)*width), all.RowRange(r*n, (r+1)*n))
	}
	p.Arena.Release(m)
}
