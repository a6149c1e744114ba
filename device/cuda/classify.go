package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

var (
	classifyRows  = kernelOf("classify", "classify")
	classifyPart  = kernelOf("classify", "classify_part")
	classifyParts = kernelOf("classify", "classify_parts")
	classifyRing  = hopperOf("classify_ring", "classify_ring", define("SLOTS", ringSlots), define("SHARED", ringShared))
)

// Geometry of kernels/classify_ring.cu: consumer threads, slots of 16 KB, and the shared memory: slots, two barriers
// each, and two rooms of two floats for each consumer warp.
const (
	ringConsumers, ringSlots, ringChunk = 512, 14, 16 << 10
	ringShared                          = ringSlots*(ringChunk+16) + 2*2*4*ringConsumers/32
)

// ringLeast is the number of classes from which it is used: shorter rows are still in the L2 when they are read again.
const ringLeast = 16384

// maxLogits bounds the logits held at a time, in bytes: fp32 from the product, so that the loss is not rounded to bf16,
// and then their gradient in the same memory. 512 MiB is 4096 rows of 32 k classes: enough for the products to run at
// full speed and for DW to be read and written few times.
const maxLogits = 512 << 20

// Classify: y = X·Wᵀ, Loss = logsumexp(y) − y[target], dy = Scale·(softmax(y) − onehot), DX = dy·W, DW += dyᵀ·X.
func (d *products) Classify(c *device.Classifier) {
	c.Check(d.types)
	n, classes := c.X.Rows, c.W.Rows
	if n == 0 || classes == 0 {
		return
	}
	ld := ceil(classes, 8) * 8
	rows := min(n, max(1, d.maxLogits/(4*ld)))
	if rows < n {
		rows = max(128, rows/128*128) // whole tiles
	}
	rows = min(rows, n)
	d.chunk.Addr = d.logits.need(d.drv, rows*ld*4)
	d.chunk.Size = rows * ld * 4
	for at := 0; at < n; at += rows {
		d.classify(c, at, min(at+rows, n), ld)
	}
}

// classify processes rows [from, to).
func (d *products) classify(c *device.Classifier, from, to, ld int) {
	rows, classes := to-from, c.W.Rows
	x := c.X.RowRange(from, to)
	y := tensor.Tensor{Buf: &d.chunk, Type: tensor.F32, Rows: rows, Cols: classes, Ld: ld}
	grid, block := dim1(rows), dim1(rowThreads(ceil(classes, 2))) // two pieces per thread
	loss, targets := ptr(c.Loss.Columns(from, to)), ptr(c.Targets.Columns(from, to))
	if !c.Parts.Ok() || c.DX.Ok() {
		d.multiply(y, x, c.W, device.MatMul{TransB: true})
	}
	switch {
	case c.Part.Ok():
		d.launch(classifyPart, grid, block, 0, ptr(c.Part.Columns(from, to)), i32(c.Part.Ld), ptr(y), i32(ld), targets,
			i32(classes), d.faultPtr())
	case c.Parts.Ok():
		d.launch(classifyParts, grid, block, 0, loss, ptr(c.Parts.Columns(from, to)), i32(c.Parts.Ld),
			i32(c.Parts.Rows/2), ptr(y), i32(ld), targets, i32(classes), f32(c.Scale), flag(c.DX.Ok()), d.faultPtr())
	case d.info.Major == 9 && classes >= d.ringLeast && c.DX.Ok() && 4*ld <= ringSlots*ringChunk:
		d.launch(classifyRing, dim1(min(rows, d.info.SMs)), dim1(ringConsumers+32), ringShared, loss, ptr(y), i32(ld),
			targets, i32(rows), i32(classes), f32(c.Scale), d.faultPtr())
	default:
		d.launch(classifyRows, grid, block, 0, loss, ptr(y), i32(ld), targets, i32(classes), f32(c.Scale),
			flag(c.DX.Ok()), d.faultPtr())
	}
	if !c.DX.Ok() {
		return
	}
	dy := tensor.Tensor{Buf: &d.chunk, Type: tensor.BF16, Rows: rows, Cols: classes, Ld: 2 * ld}
	d.multiply(c.DX.RowRange(from, to), dy, c.W, device.MatMul{})
	d.multiply(c.DW, dy, x, device.MatMul{TransA: true, Accumulate: true})
}
