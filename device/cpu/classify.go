package cpu

import (
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type classifyTask struct {
	y       mat  // logits of the rows at hand, then their gradient
	half    bool // which is rounded to bfloat16, as a factor of products would be: in the first half of each row
	targets []int32
	loss    []float32
	scale   float64
	grad    bool
}

// maxLogits bounds the logits held at once, in elements.
const maxLogits = 32 << 20

// Classify is the output projection with cross-entropy, in chunks of rows: logits, then loss and dlogits in place,
// then DX = dlogits·W and DW += dlogitsᵀ·X. DW's sum runs over the rows in order, chunk after chunk.
func (d *Device) Classify(c *device.Classifier) {
	c.Check(d.Types())
	d.touch(c.Loss, c.DX, c.DW)
	x, w, dx, dw := matOf(c.X), matOf(c.W), matOf(c.DX), matOf(c.DW)
	vocab := w.rows
	d.checkTargets(i32(c.Targets), vocab)
	step := min(x.rows, max(16, d.maxLogits/max(vocab, 1)))
	ld := device.Types{Act: tensor.F32, OddRows: true}.Stride(vocab)
	logits := d.logits.floats(d, step*ld)
	for n := 0; n < x.rows; n += step {
		rows := min(step, x.rows-n)
		y := mat{x: logits[:rows*ld], rows: rows, cols: vocab, ld: ld}
		d.gemm(y, x.rowsFrom(n, rows), w, x.cols, device.MatMul{TransB: true})
		t := &d.classify
		*t = classifyTask{y, d.precision != FP32, i32(c.Targets)[n : n+rows], f32(c.Loss)[n : n+rows], c.Scale, c.DX.Ok()}
		d.run(rows, t)
		if c.DX.Ok() {
			dy := t.gradient()
			d.gemm(dx.rowsFrom(n, rows), dy, w, vocab, device.MatMul{})
			d.gemm(dw, dy, x.rowsFrom(n, rows), rows, device.MatMul{TransA: true, Accumulate: true})
		}
	}
}

// checkTargets records a fault for a target that is neither a class nor −1; its row counts as −1.
func (d *Device) checkTargets(targets []int32, vocab int) {
	for n, y := range targets {
		if (y < -1 || int(y) >= vocab) && d.fault == nil {
			d.fault = fmt.Errorf("cpu: classify: target %d of row %d is none of %d classes", y, n, vocab)
		}
	}
}

// tile: loss = logsumexp(y) − y[target]; dy = Scale·(softmax(y) − onehot).
func (t *classifyTask) tile(n, _ int) {
	y, target := t.y.row(n), int(t.targets[n])
	if target < 0 || target >= len(y) {
		t.loss[n] = 0
		clear(y)
		return // zeros in either dtype
	}
	top, hit := simd.Max(y), y[target]
	sum := simd.ExpSum(y, y, 1, top)
	t.loss[n] = float32(math.Log(float64(sum)) + float64(top) - float64(hit))
	if t.grad {
		simd.Scale(y, float32(t.scale/float64(sum)))
		y[target] -= float32(t.scale)
	}
	if t.grad && t.half {
		simd.NarrowBF16(halves(y), y)
	}
}

// gradient is what tile left.
func (t *classifyTask) gradient() mat {
	if !t.half {
		return t.y
	}
	return mat{h: halves(t.y.x), rows: t.y.rows, cols: t.y.cols, ld: 2 * t.y.ld}
}
