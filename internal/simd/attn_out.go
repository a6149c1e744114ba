package simd

import (
	"fmt"
	"unsafe"
)

// outArgs are the arguments of scaleRows and turnRows: rows of 16·vectors elements, or 16 rows of them, ldDst and ldSrc bytes apart.
type outArgs struct {
	dst, src, scale *float32
	ldDst, ldSrc    int
	rows, vectors   int
}

// kernelFor is the one of near and far that may write to x, rows ld elements apart: around the caches go whole lines only.
func kernelFor(kernels [2]func(*outArgs), x *float32, ld int, far bool) func(*outArgs) {
	if far && uintptr(unsafe.Pointer(x))%64 == 0 && ld%16 == 0 {
		return kernels[1]
	}
	return kernels[0]
}

// ScaleRows: dst[r·ldDst+c] = scale[r]·src[r·ldSrc+c] for c < cols. far says that dst is part of a matrix that is larger than the caches.
func (t *AttnTile) ScaleRows(dst []float32, ldDst int, src []float32, ldSrc, rows, cols int, scale []float32, far bool) {
	if rows == 0 || cols == 0 {
		return
	}
	if len(dst) < (rows-1)*ldDst+cols || len(src) < (rows-1)*ldSrc+cols || len(scale) < rows {
		panic(fmt.Sprintf("simd: scale %d×%d of %d (ld %d) into %d (ld %d) elements", rows, cols, len(src), ldSrc, len(dst), ldDst))
	}
	if kernel := kernelFor(cur.scaleRows, &dst[0], ldDst, far); kernel != nil && cols%16 == 0 {
		t.out = outArgs{&dst[0], &src[0], &scale[0], 4 * ldDst, 4 * ldSrc, rows, cols / 16}
		kernel(&t.out)
		return
	}
	for r := range rows {
		x := dst[r*ldDst:][:cols]
		copy(x, src[r*ldSrc:])
		cur.scale(x, scale[r])
	}
}

// TurnRows: dst[r·ldDst+c] = scale[0]·src[c·ldSrc+r] for r < rows, c < cols. src is lost. far is as in ScaleRows.
func (t *AttnTile) TurnRows(dst []float32, ldDst int, src []float32, ldSrc, rows, cols int, scale []float32, far bool) {
	if rows == 0 || cols == 0 {
		return
	}
	if len(dst) < (rows-1)*ldDst+cols || len(src) < (cols-1)*ldSrc+rows || len(scale) == 0 {
		panic(fmt.Sprintf("simd: turn %d×%d of %d (ld %d) into %d (ld %d) elements", rows, cols, len(src), ldSrc, len(dst), ldDst))
	}
	if kernel := kernelFor(cur.turnRows, &dst[0], ldDst, far); kernel != nil && cols%16 == 0 && rows%16 == 0 {
		t.out = outArgs{&dst[0], &src[0], &scale[0], 4 * ldDst, 4 * ldSrc, rows / 16, cols / 16}
		kernel(&t.out)
		return
	}
	for c := range cols {
		cur.scale(src[c*ldSrc:][:rows], scale[0])
	}
	transpose(dst, ldDst, src, ldSrc, cols, rows)
}
