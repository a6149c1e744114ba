package simd

import "unsafe"

// The generic tiles are small enough for 16 scalar registers.
const genericNR = 4

var genericGemm = gemmKernels{
	mr: 2, nr: genericNR,
	tiles:     []tile{{2, tile2Generic}, {1, tile1Generic}},
	transpose: transposeGeneric, lanes: 1, across: 1,
	copyPanel: copyPanelGeneric,
}

func transposeGeneric(dst *float32, stride int, src *float32, ld, rows, k int) {
	out, in := unsafe.Slice(dst, (k-1)*stride+rows), unsafe.Slice(src, (rows-1)*ld+k)
	for i := range rows {
		for p, x := range in[i*ld : i*ld+k] {
			out[p*stride+i] = x
		}
	}
}

func copyPanelGeneric(dst *float32, stride int, src *float32, ld, width, k int) {
	out, in := unsafe.Slice(dst, (k-1)*stride+width), unsafe.Slice(src, (k-1)*ld+width)
	for p := range k {
		copy(out[p*stride:p*stride+width], in[p*ld:])
	}
}

func tile2Generic(k int, a *float32, stride int, b, c *float32, ldc, cols int, load bool, _ *float32) {
	as := unsafe.Slice(a, (k-1)*stride+2)
	bs := unsafe.Slice(b, k*genericNR)
	c0, c1 := unsafe.Slice(c, cols), unsafe.Slice(c, ldc+cols)[ldc:]
	var s0, s1 [genericNR]float32
	if load {
		copy(s0[:], c0)
		copy(s1[:], c1)
	}
	x0, x1, x2, x3 := s0[0], s0[1], s0[2], s0[3]
	y0, y1, y2, y3 := s1[0], s1[1], s1[2], s1[3]
	for p := range k {
		b4 := bs[p*genericNR : p*genericNR+genericNR]
		a0, a1 := as[p*stride], as[p*stride+1]
		x0 += float32(a0 * b4[0])
		x1 += float32(a0 * b4[1])
		x2 += float32(a0 * b4[2])
		x3 += float32(a0 * b4[3])
		y0 += float32(a1 * b4[0])
		y1 += float32(a1 * b4[1])
		y2 += float32(a1 * b4[2])
		y3 += float32(a1 * b4[3])
	}
	s0 = [genericNR]float32{x0, x1, x2, x3}
	s1 = [genericNR]float32{y0, y1, y2, y3}
	copy(c0, s0[:])
	copy(c1, s1[:])
}

func tile1Generic(k int, a *float32, stride int, b, c *float32, _, cols int, load bool, _ *float32) {
	as := unsafe.Slice(a, (k-1)*stride+1)
	bs := unsafe.Slice(b, k*genericNR)
	c0 := unsafe.Slice(c, cols)
	var s0 [genericNR]float32
	if load {
		copy(s0[:], c0)
	}
	x0, x1, x2, x3 := s0[0], s0[1], s0[2], s0[3]
	for p := range k {
		b4 := bs[p*genericNR : p*genericNR+genericNR]
		a0 := as[p*stride]
		x0 += float32(a0 * b4[0])
		x1 += float32(a0 * b4[1])
		x2 += float32(a0 * b4[2])
		x3 += float32(a0 * b4[3])
	}
	s0 = [genericNR]float32{x0, x1, x2, x3}
	copy(c0, s0[:])
}
