package cpu

import (
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

type classifyTask struct {
	y       mat // logits of the current rows, then their gradient
	targets []int32
	loss    []float32
	scale   float64
	grad    bool
	split   split
}

// maxLogits bounds the logits held at once, in bytes.
const maxLogits = 128 << 20

// Classify is the output projection with cross-entropy, in chunks of rows: logits, then loss and dlogits in place, then
// DX = dlogits·W and DW += dlogitsᵀ·X. DW's sum runs over the rows in order, chunk after chunk. See classifyBF16 for
// bfloat16 products.
func (d *products) Classify(c *device.Classifier) {
	c.Check(d.Types())
	d.touch(c.Loss, c.DX, c.DW)
	x, w, dx, dw := matOf(c.X), matOf(c.W), matOf(c.DX), matOf(c.DW)
	vocab := w.rows
	d.checkTargets(i32(c.Targets), vocab, c.Split())
	split := splitOf(c)
	if c.Parts.Ok() && !c.DX.Ok() {
		split.losses(f32(c.Loss), i32(c.Targets))
		return
	}
	if d.precision == BF16 {
		d.classifyBF16(x, w, dx, dw, i32(c.Targets), f32(c.Loss), c.Scale, split)
		return
	}
	ld := device.Types{Act: tensor.F32, OddRows: true}.Stride(vocab)
	step := min(x.rows, max(16, d.maxLogits/(4*ld)))
	logits := d.logits.floats(&d.memory, step*ld)
	for n := 0; n < x.rows; n += step {
		rows := min(step, x.rows-n)
		y := mat{x: logits[:rows*ld], rows: rows, cols: vocab, ld: ld}
		d.gemm(y, x.rowsFrom(n, rows), w, x.cols, device.MatMul{TransB: true})
		d.classify = classifyTask{y, i32(c.Targets)[n : n+rows], f32(c.Loss)[n : n+rows], c.Scale, c.DX.Ok(),
			split.from(n)}
		d.run(rows, &d.classify)
		if c.DX.Ok() {
			d.gemm(dx.rowsFrom(n, rows), y, w, vocab, device.MatMul{})
			d.gemm(dw, y, x.rowsFrom(n, rows), rows, device.MatMul{TransA: true, Accumulate: true})
		}
	}
}

// checkTargets records a fault for a target that is neither a class nor −1; its row counts as −1.
func (d *products) checkTargets(targets []int32, vocab int, split bool) {
	for n, y := range targets {
		if (y < -1 || int(y) >= vocab) && !(split && y == device.Elsewhere) {
			d.fail(fmt.Errorf("cpu: classify: target %d of row %d is none of %d classes", y, n, vocab))
			return
		}
	}
}

// tile: loss = logsumexp(y) − y[target]; dy = Scale·(softmax(y) − onehot).
func (t *classifyTask) tile(n, _ int) {
	y, target := t.y.row(n), int(t.targets[n])
	if t.split.on {
		t.splitTile(n, y, target)
		return
	}
	if target < 0 || target >= len(y) {
		t.loss[n] = 0
		clear(y)
		return
	}
	top, hit := simd.Max(y), y[target]
	sum := simd.ExpSum(y, y, 1, top)
	t.loss[n] = float32(math.Log(float64(sum)) + float64(top) - float64(hit))
	if t.grad {
		simd.Scale(y, float32(t.scale/float64(sum)))
		y[target] -= float32(t.scale)
	}
}
