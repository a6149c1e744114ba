package cuda

import (
	"fmt"
	"os"

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

// The kernels for up to 8 rows, by the k that a block has under way at once (firstRows), up to 16, and for more, by the columns of
// a block: 16 to 64.
var (
	rowsFirst  = rowsOf("matmul_rows8_4", 16, 8)
	rowsShort  = []rowsKernel{2: rowsOf("matmul_rows8_2", 16, 8), 3: rowsOf("matmul_rows8_3", 16, 8)} // by pieces of a warp
	rowsLong   = rowsOf("matmul_rows8_long", 16, 8)
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
	case m <= rowsFirst.rows:
		return d.firstRows(k)
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

// longFrom is the pieces of a warp above which weights go to shared memory. To be timed: 4, or 2.
var longFrom = func() int {
	if os.Getenv("ANTIPHASE_CUDA_LONG") == "2" {
		return 2
	}
	return 4
}()

// firstRows is the kernel for up to 8 rows that has a block's weights under way all at once, if there is one.
func (d *Device) firstRows(k int) rowsKernel {
	pieces := ceil(k, rowsPiece*rowsWarps)
	switch {
	case pieces > longFrom && rowsLong.shared(k) <= d.info.Shared:
		return rowsLong
	case pieces < len(rowsShort):
		return rowsShort[max(pieces, 2)]
	}
	return rowsFirst
}

// shared is the room of the warps' sums, columns padded by 4; for long k also of the weights, rows padded by 32; and for many rows at least that
// of the warps' rings of three half pieces.
func (s rowsKernel) shared(k int) int {
	sums := rowsWarps * s.rows * (s.cols + 4) * 4
	switch {
	case s == rowsLong:
		return sums + s.cols*(ceil(k, rowsPiece)*rowsPiece+32)*2
	case s.rows > rowsSecond.rows:
		return max(sums, rowsWarps*3*(s.cols+s.rows)*rowsPiece)
	}
	return sums
}
