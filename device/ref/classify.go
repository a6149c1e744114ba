package ref

import (
	"fmt"
	"math"

	"antiphase/device"
)

// Classify: y = X·Wᵀ, Loss = logsumexp(y) − y[target], dy = Scale·(softmax(y) − onehot), DX = dy·W, DW += dyᵀ·X.
func (d *Device) Classify(c *device.Classifier) {
	c.Check(d.types)
	x, w, loss := load(c.X), load(c.W), newMatrix(1, c.X.Rows)
	dx, dw := newMatrix(x.rows, x.cols), load(c.DW)
	for n, target := range integers(c.Targets) {
		if target == -1 {
			continue
		}
		if target < 0 || int(target) >= w.rows {
			d.fail(fmt.Errorf("ref: Classify: target %d outside %d classes", target, w.rows))
			continue
		}
		y := make([]float64, w.rows)
		for v := range y {
			y[v] = dot(x.row(n), w.row(v))
		}
		p, lse := softmax(y)
		loss.v[n] = lse - y[target]
		if !c.DX.Ok() {
			continue
		}
		p[target]--
		for v, dy := range p {
			axpy(dx.row(n), c.Scale*dy, w.row(v))
			axpy(dw.row(v), c.Scale*dy, x.row(n))
		}
	}
	store(c.Loss, loss)
	storeIf(c.DX, dx)
	storeIf(c.DW, dw)
}

// softmax gives exp(y)/Σexp(y) and log Σexp(y), with the maximum taken out first.
func softmax(y []float64) (p []float64, lse float64) {
	top, sum := math.Inf(-1), 0.0
	for _, e := range y {
		top = max(top, e)
	}
	p = make([]float64, len(y))
	for i, e := range y {
		p[i] = math.Exp(e - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p, top + math.Log(sum)
}
