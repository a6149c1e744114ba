package cuda

import "fmt"

// rowsStaged are the kernels of kernels/matmul_staged.cu, for 17 rows and more: with 32 and 64 rows per block, by
// columns per block, 16 to 64.
var rowsStaged = [2][]rowsKernel{stagedOf(32), stagedOf(64)}

func stagedOf(rows int) (all []rowsKernel) {
	for r := 1; r <= 4; r++ {
		of := func(op string) kernel {
			return earlyOf("matmul_staged", fmt.Sprintf("matmul_%s%d_%d", op, rows, r))
		}
		all = append(all, rowsKernel{alone: pairOf{stored: of("rows")}, gated: pairOf{stored: of("gate")}, cols: 16 * r,
			rows: rows})
	}
	return all
}

// staged reports whether the kernel's warps have rings of half pieces: those for more than 16 rows.
func (s rowsKernel) staged() bool { return s.rows > rowsSecond.rows }

// rings are how many half pieces of weights and of x a warp of a staged kernel has in shared memory, if a block may
// have most bytes of it. Weights: as many as fit beside x, at least three and at most all. x: three, or four of 32
// rows, if there is room for as many of the weights beside them, else two.
func (s rowsKernel) rings(k, most int) (held, inputs int) {
	const least = 3
	all, room := 2*ceil(ceil(k, rowsPiece), rowsWarps), most/rowsWarps/rowsPiece
	inputs = 2
	for inputs < s.inFlight() && all > inputs && max(least, inputs+1)*s.cols+(inputs+1)*s.rows <= room {
		inputs++
	}
	return min(all, max(least, (room-inputs*s.rows)/s.cols)), inputs
}

// inFlight is the most half pieces of x that a warp requests at once.
func (s rowsKernel) inFlight() int {
	if s.rows == rowsStaged[0][0].rows {
		return 4
	}
	return 3
}
