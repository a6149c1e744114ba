package cuda

import "antiphase/internal/cu"

// each is the geometry of an elementwise kernel (FOR_EACH_8 of prelude.cuh): 8 adjacent columns per thread along x,
// rows along y.
func each(rows, cols int) (grid, block cu.Dim) {
	threads := min(256, ceil(ceil(cols, 8), 32)*32)
	return dim2(min(max(1, ceil(cols, 8*threads)), 1<<20), min(max(1, rows), 65535)), dim1(threads)
}

// rowThreads is the size of a block that owns a row: 8 adjacent columns per thread, whole warps, up to 1024.
func rowThreads(cols int) int { return min(1024, ceil(ceil(max(1, cols), 8), 32)*32) }
