package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// rowsKernel is a kernel of kernels/matmul_rows.cu or matmul_staged.cu: the columns and rows of c per block, and its
// variants.
type rowsKernel struct {
	alone      pairOf
	cols, rows int

	joins  bool   // it can also do the next op (kernels/turn.cuh), staged ones only SwiGLU:
	turned pairOf // Rope and CacheWrite
	gated  pairOf // SwiGLU
	norms  bool   // and, for all of them, the preceding norm (kernels/left.cuh)
}

// pairOf is a kernel for rows in memory and, if the product can compute the norm, one for rows that it computes.
type pairOf struct{ stored, normed kernel }

func rowsOf(name string, cols, rows int) rowsKernel {
	return rowsKernel{alone: pairOf{stored: earlyOf("matmul_rows", name)}, cols: cols, rows: rows}
}

// joiningOf is a kernel of 16 columns, whole pairs in either layout, for up to 8 rows, that can also do the next op:
// once per element when it is stored, which costs nothing.
func joiningOf(name string) rowsKernel {
	r := rowsOf("matmul_rows8_"+name, 16, 8)
	r.joins = true
	r.turned.stored, r.gated.stored = earlyOf("matmul_rows", "matmul_turn8_"+name),
		earlyOf("matmul_rows", "matmul_gate8_"+name)
	return r
}

// shortOf is the only kernel whose blocks can also repeat the preceding norm: it has its weights in registers. With
// weights in shared memory, four blocks share an SM and the work after the wait of each adds up: two norms and a SwiGLU
// of a layer in the blocks of their products cost 830m 2.3 µs more per layer than separate kernels (H200), and a norm
// alone saved nothing.
func shortOf() rowsKernel {
	r := joiningOf("short")
	r.norms, r.alone.normed = true, earlyOf("matmul_rows", "matmul_norm8_short")
	r.turned.normed, r.gated.normed = earlyOf("matmul_rows", "matmul_normturn8_short"),
		earlyOf("matmul_rows", "matmul_normgate8_short")
	return r
}

// The kernels for up to 8 rows (firstRows), and for up to 16.
var (
	rowsShort  = shortOf()
	rowsLong   = joiningOf("long")
	rowsHalf   = rowsOf("matmul_rows8_half", 8, 8)
	rowsAny    = rowsOf("matmul_rows8_any", 16, 8)
	rowsSecond = rowsOf("matmul_rows16", 16, 16)
)

// Constants of kernels/matmul_rows.cu: warps per block, k per piece; and its flags besides matmulFloat and
// matmulAccumulate.
const (
	rowsWarps, rowsPiece = 8, 64
	rowsVecX, rowsEarly  = 4, 8
	rowsGain             = 16
	rowsSigmoid          = 32
)

// maxShort is the longest k of rowsShort: two pieces per warp. rowsSums is the size in bytes of the warps' sums of 8
// rows, columns padded by 4. The normalised rows, padded by 32, and their 8 sums of squares must fit in it, or the
// constant below does not compile.
const (
	maxShort = 2 * rowsPiece * rowsWarps
	rowsSums = rowsWarps * 8 * (16 + 4) * 4

	_ = uint(rowsSums - maxHeld*(2*(maxShort+32)+4*rowsWarps))
)

// streams reports whether a product has few rows and weights that can be read 16 bytes at a time. It considers only the
// number of rows, so that a row uses the same kernel alone and in a batch.
func streams(m, k int, w tensor.Tensor, op device.MatMul) bool {
	return m <= fewRows && !op.TransA && op.TransB && k > 0 && k%8 == 0 && vec(w)
}

// productCall is a product of few rows and its kernel.
type productCall struct {
	s       rowsKernel
	c, x, w tensor.Tensor
	k       int
	op      device.MatMul
	norm    bool // x is the output of the held norm
}

// stream multiplies few rows, or holds the product for the next op.
func (d *products) stream(c, x, w tensor.Tensor, k int, op device.MatMul) {
	p := productCall{s: d.pickRows(c.Rows, c.Cols, k), c: c, x: x, w: w, k: k, op: op}
	d.joinNorm(&p)
	if !d.holdProduct(&p) {
		d.multiplyRows(&p)
	}
}

// makes reports whether p may compute its rows with n: they are n's output, and p writes nothing that other blocks
// still read. Each block computes all of them, so with more blocks than fit on the GPU at once this would cost more
// than a kernel's latency: the logits' product has thousands.
func (n *normCall) makes(p *productCall) bool {
	return p.s.norms && p.c.Rows <= maxHeld && same(p.x, n.y) && ceil(p.c.Cols, p.s.cols) <= 1024 &&
		apart([]tensor.Tensor{p.c, n.y, n.rstd, n.sum}, n.x, n.delta, n.w, p.w)
}

// multiplyRows launches a product alone, with the norm before it.
func (d *queue) multiplyRows(p *productCall) { d.launchRows(p, p.s.alone, 0) }

// launchRows launches a product with one of its kernels, whose own arguments are more, and everything that is held.
// Weights that may still be written are waited for.
func (d *queue) launchRows(p *productCall, k pairOf, flags uint64, more ...uint64) {
	n := d.held.taken()
	var room [maxArgs]uint64
	args, run := append(room[:0], ptr(p.x), i32(p.x.Ld)), k.stored
	flags |= flag(p.c.Type == tensor.F32)*matmulFloat | flag(p.op.Accumulate)*matmulAccumulate |
		flag(vec(p.x))*rowsVecX | flag(d.fresh.settled(p.w, kept{}))*rowsEarly
	if p.norm {
		args, run = append(room[:0], ptr(n.y), i32(n.y.Ld), ptr(n.rstd), ptr(n.sum), i32(n.sum.Ld), ptr(n.x),
			i32(n.x.Ld), ptr(n.delta), i32(n.delta.Ld), ptr(n.w), f32(n.eps)), k.normed
		flags |= flag(d.fresh.settled(n.w, kept{})) * rowsGain
	}
	args = append(args, ptr(p.w), i32(p.w.Ld), ptr(p.c), i32(p.c.Ld), i32(p.c.Rows), i32(p.c.Cols), i32(p.k), flags)
	if p.s.staged() {
		held, inputs := p.s.rings(p.k, d.info.Shared)
		args = append(args, i32(held), i32(inputs))
	}
	d.launch(run, dim2(ceil(p.c.Cols, p.s.cols), ceil(p.c.Rows, p.s.rows)), dim1(32*rowsWarps),
		p.s.shared(p.k, d.info.Shared), append(args, more...)...)
	d.fresh.wrote(p.c)
	if p.norm {
		d.fresh.wrote(n.y, n.rstd, n.sum)
	}
}

// multiplyGated launches a product and y, its SwiGLU.
func (d *queue) multiplyGated(p *productCall, y tensor.Tensor) {
	d.launchRows(p, p.s.gated, 0, ptr(y), i32(y.Ld))
	d.fresh.wrote(y)
}

// multiplyTurned launches a product, the Rope t of its first columns and the CacheWrite of those after the queries.
func (d *queue) multiplyTurned(p *productCall, t *turnCall, c *device.Cache, slot, pos tensor.Tensor) {
	d.launchRows(p, p.s.turned, 0,
		ptr(t.table), i32(t.table.Ld), ptr(t.pos), i32(t.table.Rows), f32(t.sign()), i32(t.Dim), flag(t.Interleaved),
		i32(t.x.Cols-c.K.Cols), i32(t.x.Cols), ptr(c.K), i32(c.K.Ld), ptr(c.V), i32(c.V.Ld), ptr(slot), ptr(pos),
		ptr(c.Table), i32(c.Table.Ld), i32(c.Table.Rows), i32(c.Table.Cols), i32(c.PageSize),
		i32(c.K.Rows), d.faultPtr())
}

// pickRows selects the smallest blocks that hold all rows. Each block reads x again, so many rows need many columns per
// block: as few as keep all blocks on the GPU at once, or the most. More than 32 rows are divided over blocks of 32
// where all of these fit on the GPU at once and each reads less. An element's sum is the same in all of them.
func (d *products) pickRows(m, n, k int) rowsKernel {
	switch {
	case m <= rowsLong.rows:
		return d.firstRows(n, k)
	case m <= rowsSecond.rows:
		return rowsSecond
	}
	best := d.pickStaged(rowsStaged[flag(m > 32 && rowsStaged[1][0].fits(k, d.info.Shared))], m, n, k)
	if half := d.pickStaged(rowsStaged[0], m, n, k); half.cols+half.rows < best.cols+best.rows &&
		half.blocks(m, n) <= d.info.SMs {
		return half
	}
	return best
}

// pickStaged is the first of these kernels whose blocks all fit on the GPU at once, or the last that fits in shared
// memory.
func (d *products) pickStaged(kernels []rowsKernel, m, n, k int) rowsKernel {
	best := kernels[0]
	for _, s := range kernels[1:] {
		if best.blocks(m, n) <= d.info.SMs || !s.fits(k, d.info.Shared) {
			break
		}
		best = s
	}
	return best
}

// blocks is the number of blocks of a product.
func (s rowsKernel) blocks(m, n int) int { return ceil(n, s.cols) * ceil(m, s.rows) }

// firstRows is the kernel for up to 8 rows that has all of a block's weights in flight at once, if there is one: in
// registers up to k = 1024, in shared memory beyond. Registers for more would spill when two kernels share an SM: at k
// = 1536 a whole step took 1320 µs with registers and 900 with shared memory (H200, plain, 830m). If blocks of 16
// columns would leave SMs idle, there are twice as many of 8.
func (d *products) firstRows(n, k int) rowsKernel {
	switch {
	case ceil(n, rowsLong.cols) < d.info.SMs && rowsHalf.fits(k, d.info.Shared):
		return rowsHalf
	case k <= maxShort:
		return rowsShort
	case rowsLong.fits(k, d.info.Shared):
		return rowsLong
	}
	return rowsAny
}

// shared is the shared memory of the warps' sums, at least 16 columns, padded by 4; for long k also of the weights,
// rows padded by 32; and for many rows at least that of the warps' rings. A half piece of a row has as many bytes as a
// piece has elements.
func (s rowsKernel) shared(k, most int) int {
	sums := rowsWarps * s.rows * (max(s.cols, 16) + 4) * 4
	switch {
	case s == rowsLong || s == rowsHalf:
		return sums + s.cols*(ceil(k, rowsPiece)*rowsPiece+32)*2
	case s.staged():
		held, inputs := s.rings(k, most)
		return max(sums, rowsWarps*(held*s.cols+inputs*s.rows)*rowsPiece)
	}
	return sums
}

// fits reports whether a block may have the shared memory that the kernel needs.
func (s rowsKernel) fits(k, most int) bool { return s.shared(k, most) <= most }
