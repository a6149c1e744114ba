package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

var (
	rmsnormForward      = earlyOf("rmsnorm", "rmsnorm")
	rmsnormForwardWide  = earlyOf("rmsnorm", "rmsnorm_wide")
	rmsnormBackward     = kernelOf("rmsnorm", "rmsnorm_backward")
	rmsnormBackwardWide = kernelOf("rmsnorm", "rmsnorm_backward_wide")
	rmsnormFinish       = kernelOf("rmsnorm", "rmsnorm_finish")
)

// rmsnormWarps are the kernels of kernels/rmsnorm_warps.cu, by pieces of 256 columns.
var rmsnormWarps = func() (all [7]struct{ forward, backward kernel }) {
	last := 0
	for _, n := range []int{1, 2, 3, 4, 6} {
		forward := kernelOf("rmsnorm_warps", "rmsnorm_warps", define("PIECES", n))
		backward := kernelOf("rmsnorm_warps", "rmsnorm_backward_warps", define("PIECES", n))
		for ; last < n; last++ {
			all[last+1].forward, all[last+1].backward = forward, backward
		}
	}
	return all
}()

// normWarps is the number of rows, one warp each, that a block of them has at a time.
const normWarps = 4

// byWarps reports whether those kernels take rows of x: many, short, whole pieces of 16 bytes.
func byWarps(x tensor.Tensor, others ...tensor.Tensor) bool {
	return x.Rows > fewRows && x.Cols%8 == 0 && x.Cols <= 6*256 && vec(x) && vec(others...)
}

// maxNormed is the widest row that a block holds in registers, four pieces of 8 per thread; with one piece it is a
// quarter.
const maxNormed = 4 * 8 * 1024

// RMSNorm: s = x + delta, y = s·rstd·w.
func (d *rowOps) RMSNorm(y, rstd, sum, x, delta, w tensor.Tensor, eps float64) {
	device.CheckRMSNorm(y, rstd, sum, x, delta, w, d.types)
	mustNarrow("RMSNorm", x)
	if x.Len() == 0 {
		return
	}
	n := normCall{y, rstd, sum, x, delta, w, eps}
	if !d.holdNorm(&n) {
		d.normalize(&n)
	}
}

// normCall is RMSNorm's arguments.
type normCall struct {
	y, rstd, sum, x, delta, w tensor.Tensor
	eps                       float64
}

// canWait reports whether a product may compute the norm itself: a few short rows aligned to 16 bytes, and nothing read
// where block 0 writes while others still read.
func (n *normCall) canWait() bool {
	return n.x.Rows <= maxHeld && n.x.Cols%8 == 0 && n.x.Cols <= maxShort && vec(n.y, n.sum, n.x, n.delta, n.w) &&
		apart([]tensor.Tensor{n.y, n.rstd, n.sum}, n.x, n.delta, n.w)
}

// normalize launches the norm as a separate kernel.
func (d *queue) normalize(n *normCall) {
	y, sum, x, delta, w := n.y, n.sum, n.x, n.delta, n.w
	if byWarps(x, y, sum, delta, w) {
		d.launch(rmsnormWarps[ceil(x.Cols, 256)].forward, dim1(min(ceil(x.Rows, normWarps), 16*d.info.SMs)),
			dim1(32*normWarps), 0, ptr(y), i32(y.Ld), ptr(n.rstd), ptr(sum), i32(sum.Ld), ptr(x), i32(x.Ld), ptr(delta),
			i32(delta.Ld), ptr(w), i32(x.Rows), i32(x.Cols), f32(n.eps))
		return
	}
	k := rmsnormForward
	if x.Cols > maxNormed/4 {
		k = rmsnormForwardWide
	}
	d.launch(k, dim1(x.Rows), dim1(rowThreads(x.Cols)), 0,
		ptr(y), i32(y.Ld), ptr(n.rstd), ptr(sum), i32(sum.Ld), ptr(x), i32(x.Ld), ptr(delta), i32(delta.Ld),
		ptr(w), i32(x.Cols), f32(n.eps), flag(vec(y, sum, x, delta, w)),
		flag(x.Rows <= fewRows && d.fresh.settled(w, kept{})))
	d.fresh.wrote(y, n.rstd, sum)
}

// RMSNormBackward: dx += rstd·(g − x̂·mean(g·x̂)), dw += Σ_n dy·x̂.
func (d *rowOps) RMSNormBackward(dx, dw, dy, x, w, rstd tensor.Tensor) {
	device.CheckRMSNormBackward(dx, dw, dy, x, w, rstd, d.types)
	mustNarrow("RMSNormBackward", x)
	if x.Len() == 0 {
		return
	}
	if byWarps(x, dx, dy, w) {
		parts := min(ceil(x.Rows, normWarps), 8*d.info.SMs)
		part := uint64(d.scratch(parts * x.Cols * 4))
		d.launch(rmsnormWarps[ceil(x.Cols, 256)].backward, dim1(parts), dim1(32*normWarps), 0, ptr(dx), i32(dx.Ld),
			part, ptr(dy), i32(dy.Ld), ptr(x), i32(x.Ld), ptr(w), ptr(rstd), i32(x.Rows), i32(x.Cols))
		d.launch(rmsnormFinish, dim1(ceil(x.Cols, 32)), dim1(1024), 0, ptr(dw), part, i32(parts), i32(x.Cols))
		return
	}
	per := max(1, ceil(x.Rows, 16*d.info.SMs)) // sixteen blocks per multiprocessor, each with its part of dw
	parts := ceil(x.Rows, per)
	part := uint64(d.scratch(parts * x.Cols * 4))
	k := rmsnormBackward
	if x.Cols > maxNormed/8 { // blocks of up to 512 threads have enough registers for a row
		k = rmsnormBackwardWide
	}
	d.launch(k, dim1(parts), dim1(rowThreads(x.Cols)), 0, ptr(dx), i32(dx.Ld), part, ptr(dy), i32(dy.Ld),
		ptr(x), i32(x.Ld), ptr(w), ptr(rstd), i32(x.Rows), i32(x.Cols), i32(per), flag(vec(dx, dy, x, w)))
	d.launch(rmsnormFinish, dim1(ceil(x.Cols, 32)), dim1(1024), 0, ptr(dw), part, i32(parts), i32(x.Cols))
}

func mustNarrow(op string, x tensor.Tensor) {
	if x.Cols > maxNormed {
		panic(fmt.Sprintf("cuda: %s of rows up to %d; got %v", op, maxNormed, x))
	}
}
