package ref

import (
	"fmt"
	"math"

	"antiphase/device"
)

// Classify: y = X·Wᵀ, Loss = logsumexp(y) − y[target], dy = Scale·(softmax(y) − onehot), DX = dy·W, DW += dyᵀ·X.
func (d *products) Classify(c *device.Classifier) {
	c.Check(d.types)
	x, w, loss := load(c.X), load(c.W), newMatrix(1, c.X.Rows)
	part, parts := newMatrix(2, c.X.Rows), load(c.Parts)
	dx, dw := newMatrix(x.rows, x.cols), load(c.DW)
	for n, target := range integers(c.Targets) {
		if target == -1 {
			continue
		}
		if here := target >= 0 && int(target) < w.rows; !here && !(c.Split() && target == device.Elsewhere) {
			d.fail(fmt.Errorf("ref: Classify: target %d outside %d classes", target, w.rows))
			continue
		}
		y := make([]float64, w.rows)
		for v := range y {
			y[v] = dot(x.row(n), w.row(v))
		}
		p, lse := softmax(y)
		hit := 0.0
		if target >= 0 {
			hit = y[target]
		}
		part.v[n], part.v[x.rows+n] = lse, hit
		if c.Parts.Ok() {
			lse, hit = together(parts, n)
			for v := range p {
				p[v] = math.Exp(y[v] - lse)
			}
		}
		loss.v[n] = lse - hit
		if !c.DX.Ok() {
			continue
		}
		if target >= 0 {
			p[target]--
		}
		for v, dy := range p {
			axpy(dx.row(n), c.Scale*dy, w.row(v))
			axpy(dw.row(v), c.Scale*dy, x.row(n))
		}
	}
	if c.Part.Ok() {
		store(c.Part, part)
		return
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

// together combines column n of all ranks' parts: the logarithm of the sum over all classes, and the target's logit.
func together(parts matrix, n int) (lse, hit float64) {
	var all []float64
	for r := 0; r < parts.rows; r += 2 {
		all = append(all, parts.row(r)[n])
		hit += parts.row(r + 1)[n]
	}
	_, lse = softmax(all)
	return lse, hit
}
