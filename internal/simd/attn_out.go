package simd

import (
	"fmt"
	"unsafe"
)

// outKernels write results, near and far. They may be absent.
type outKernels struct {
	scaleRows, scaleHalves [2]func(*outArgs)
	turnRows, turnToHalves [2]func(*outArgs)
}

// run passes x to the one of near and far that may write to its dst: non-temporal stores need whole lines. It reports
// whether there is one.
func (t *AttnTile) run(kernels [2]func(*outArgs), far bool) bool {
	kernel := kernels[0]
	if far && uintptr(t.out.dst)%64 == 0 && t.out.ldDst%64 == 0 {
		kernel = kernels[1]
	}
	if kernel == nil {
		return false
	}
	kernel(&t.out)
	return true
}

// outTo fills in the arguments, with rows as counted there, and reports whether they are whole vectors or lines.
func (t *AttnTile) outTo(dst View, src []float32, ldSrc, rows, cols int, scale []float32) bool {
	if dst.H != nil {
		t.out = outArgs{unsafe.Pointer(&dst.H[0]), &src[0], &scale[0], 2 * dst.Ld, 4 * ldSrc, rows, cols / PanelBF16}
		return cols%PanelBF16 == 0
	}
	t.out = outArgs{unsafe.Pointer(&dst.X[0]), &src[0], &scale[0], 4 * dst.Ld, 4 * ldSrc, rows, cols / tileBF16}
	return cols%tileBF16 == 0
}

// ScaleRows: dst(r, c) = scale[r]·src[r·ldSrc+c] for c < cols. src is overwritten. far means that dst is part of a
// matrix larger than the caches.
func (t *AttnTile) ScaleRows(dst View, src []float32, ldSrc, rows, cols int, scale []float32, far bool) {
	if rows == 0 || cols == 0 {
		return
	}
	if dst.size() < (rows-1)*dst.Ld+cols || len(src) < (rows-1)*ldSrc+cols || len(scale) < rows {
		panic(fmt.Sprintf("simd: scale %d×%d of %d (ld %d) into %d (ld %d) elements", rows, cols, len(src), ldSrc,
			dst.size(), dst.Ld))
	}
	kernels := cur.scaleRows
	if dst.H != nil {
		kernels = cur.scaleHalves
	}
	if t.outTo(dst, src, ldSrc, rows, cols, scale) && t.run(kernels, far) {
		return
	}
	for r := range rows {
		x := src[r*ldSrc:][:cols]
		if scale[r] != 1 {
			cur.scale(x, scale[r])
		}
		if dst.H != nil {
			NarrowBF16(dst.H[r*dst.Ld:], x)
		} else {
			copy(dst.X[r*dst.Ld:], x)
		}
	}
}

// TurnRows: dst(r, c) = scale[0]·src[c·ldSrc+r] for r < rows, c < cols. src is overwritten. far is as in ScaleRows.
func (t *AttnTile) TurnRows(dst View, src []float32, ldSrc, rows, cols int, scale []float32, far bool) {
	if rows == 0 || cols == 0 {
		return
	}
	if dst.size() < (rows-1)*dst.Ld+cols || len(src) < (cols-1)*ldSrc+rows || len(scale) == 0 {
		panic(fmt.Sprintf("simd: turn %d×%d of %d (ld %d) into %d (ld %d) elements", rows, cols, len(src), ldSrc,
			dst.size(), dst.Ld))
	}
	kernels := cur.turnRows
	if dst.H != nil {
		kernels = cur.turnToHalves
	}
	if t.outTo(dst, src, ldSrc, rows/tileBF16, cols, scale) && rows%tileBF16 == 0 && t.run(kernels, far) {
		return
	}
	for c := 0; c < cols && scale[0] != 1; c++ {
		cur.scale(src[c*ldSrc:][:rows], scale[0])
	}
	if dst.H == nil {
		transpose(dst.X, dst.Ld, src, ldSrc, cols, rows)
		return
	}
	for r := range rows {
		for c := range cols {
			dst.H[r*dst.Ld+c] = bf16Of(src[c*ldSrc+r])
		}
	}
}
