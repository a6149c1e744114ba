package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// rowsKernel is a kernel of kernels/matmul_rows.cu: the columns and rows of c that a block makes.
type rowsKernel struct {
	kernel     kernel
	cols, rows int
}

func rowsOf(name string, cols, rows int) rowsKernel {
	return rowsKernel{earlyOf("matmul_rows", name), cols, rows}
}

// The kernels for up to 8 rows (firstRows), up to 16, and for more, by the columns of a block: 16 to 64.
var (
	rowsShort  = rowsOf("matmul_rows8_short", 16, 8)
	rowsLong   = rowsOf("matmul_rows8_long", 16, 8)
	rowsHalf   = rowsOf("matmul_rows8_half", 8, 8)
	rowsAny    = rowsOf("matmul_rows8_any", 16, 8)
	rowsSecond = rowsOf("matmul_rows16", 16, 16)
	rowsStaged = [2][]rowsKernel{stagedOf(32), stagedOf(64)}
)

func stagedOf(rows int) (all []rowsKernel) {
	for r := 1; r <= 4; r++ {
		all = append(all, rowsOf(fmt.Sprintf("matmul_rows%d_%d", rows, r), 16*r, rows))
	}
	return all
}

// Numbers of kernels/matmul_rows.cu: warps of a block, the k of a piece; and its flags beside matmulFloat and matmulAccumulate.
const (
	rowsWarps, rowsPiece = 8, 64
	rowsVecX, rowsEarly  = 4, 8
)

// streams says whether a product is one of few rows with weights that can be read 16 bytes at a time. Of the rows it looks at their number
// alone, so that a row takes the same way alone and in company.
func streams(m, k int, w tensor.Tensor, op device.MatMul) bool {
	return m <= fewRows && !op.TransA && op.TransB && k > 0 && k%8 == 0 && vec(w)
}

// stream multiplies few rows.
func (d *Device) stream(c, x, w tensor.Tensor, k int, op device.MatMul) {
	d.streamBy(d.pickRows(c.Rows, c.Cols, k), c, x, w, k, op)
}

// streamBy does so with one kernel. Weights that may still be written wait for their turn.
func (d *Device) streamBy(s rowsKernel, c, x, w tensor.Tensor, k int, op device.MatMul) {
	flags := flag(c.Type == tensor.F32)*matmulFloat | flag(op.Accumulate)*matmulAccumulate | flag(vec(x))*rowsVecX |
		flag(d.fresh.settled(w, 0, 0))*rowsEarly
	d.launch(s.kernel, dim2(ceil(c.Cols, s.cols), ceil(c.Rows, s.rows)), dim1(32*rowsWarps), s.shared(k),
		ptr(x), i32(x.Ld), ptr(w), i32(w.Ld), ptr(c), i32(c.Ld), i32(c.Rows), i32(c.Cols), i32(k), flags)
	d.fresh.wrote(c)
}

// pickRows takes the smallest blocks that hold all rows. x is read again by each block, so that many rows want many columns: as few as
// keep all blocks on the GPU at once, or the most. An element's sum is the same in all of them.
func (d *Device) pickRows(m, n, k int) rowsKernel {
	switch {
	case m <= rowsLong.rows:
		return d.firstRows(n, k)
	case m <= rowsSecond.rows:
		return rowsSecond
	}
	kernels := rowsStaged[flag(m > 32 && rowsStaged[1][0].shared(k) <= d.info.Shared)]
	best := kernels[0]
	for _, s := range kernels[1:] {
		if ceil(n, best.cols)*ceil(m, best.rows) <= d.info.SMs || s.shared(k) > d.info.Shared {
			break
		}
		best = s
	}
	return best
}

// firstRows is the kernel for up to 8 rows that has a block's weights under way all at once, if there is one: in registers up to k = 1024, in
// shared memory beyond. Registers for more spill where two kernels are to share an SM: at k = 1536 a whole step took 1320 µs with them and 900 with
// shared memory (H200, plain, 830m). Where blocks of 16 columns would leave SMs idle, there are twice as many of 8.
func (d *Device) firstRows(n, k int) rowsKernel {
	switch {
	case ceil(n, rowsLong.cols) < d.info.SMs && rowsHalf.shared(k) <= d.info.Shared:
		return rowsHalf
	case k <= 2*rowsPiece*rowsWarps:
		return rowsShort
	case rowsLong.shared(k) <= d.info.Shared:
		return rowsLong
	}
	return rowsAny
}

// shared is the room of the warps' sums, at least 16 columns, padded by 4; for long k also of the weights, rows padded by 32; and for many rows
// at least that of the warps' rings of three half pieces.
func (s rowsKernel) shared(k int) int {
	sums := rowsWarps * s.rows * (max(s.cols, 16) + 4) * 4
	switch {
	case s == rowsLong || s == rowsHalf:
		return sums + s.cols*(ceil(k, rowsPiece)*rowsPiece+32)*2
	case s.rows > rowsSecond.rows:
		return max(sums, rowsWarps*3*(s.cols+s.rows)*rowsPiece)
	}
	return sums
}
