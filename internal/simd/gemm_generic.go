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
		to, from := out[p*stride:][:width], in[p*ld:][:width]
		for i := range to { // a few elements: not worth the call of copy
			to[i] = from[i]
		}
	}
}

func tile2Generic(k int, a *float32, _ int, b *float32, panel int, c *float32, ldc, cols int, load bool) {
	for ; cols > genericNR; cols -= genericNR {
		tile2Panel(k, a, b, c, ldc, genericNR, load)
		b, c = after(b, panel), after(c, genericNR)
	}
	tile2Panel(k, a, b, c, ldc, cols, load)
}

// after is p plus n elements.
func after(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }

// tile2Panel keeps 8 sums, two elements of A and the current ones of B in registers, for two steps of k per iteration:
// arrays of known length need no bounds checks, and half the iterations leave the front end time for the arithmetic.
func tile2Panel(k int, a, b, c *float32, ldc, cols int, load bool) {
	as := unsafe.Slice((*[2 * 2]float32)(unsafe.Pointer(a)), k/2)
	bs := unsafe.Slice((*[2 * genericNR]float32)(unsafe.Pointer(b)), k/2)[:len(as)]
	c0, c1 := unsafe.Slice(c, cols), unsafe.Slice(c, ldc+cols)[ldc:]
	var s0, s1 [genericNR]float32
	if load {
		copy(s0[:], c0)
		copy(s1[:], c1)
	}
	x0, x1, x2, x3 := s0[0], s0[1], s0[2], s0[3]
	y0, y1, y2, y3 := s1[0], s1[1], s1[2], s1[3]
	for p := range as {
		q, r := &bs[p], &as[p]
		a0, a1 := r[0], r[1]
		x0, y0 = x0+float32(a0*q[0]), y0+float32(a1*q[0])
		x1, y1 = x1+float32(a0*q[1]), y1+float32(a1*q[1])
		x2, y2 = x2+float32(a0*q[2]), y2+float32(a1*q[2])
		x3, y3 = x3+float32(a0*q[3]), y3+float32(a1*q[3])
		a0, a1 = r[2], r[3]
		x0, y0 = x0+float32(a0*q[4]), y0+float32(a1*q[4])
		x1, y1 = x1+float32(a0*q[5]), y1+float32(a1*q[5])
		x2, y2 = x2+float32(a0*q[6]), y2+float32(a1*q[6])
		x3, y3 = x3+float32(a0*q[7]), y3+float32(a1*q[7])
	}
	if k%2 != 0 {
		q, r := lastStep[[genericNR]float32](b, k), lastStep[[2]float32](a, k)
		x0, y0 = x0+float32(r[0]*q[0]), y0+float32(r[1]*q[0])
		x1, y1 = x1+float32(r[0]*q[1]), y1+float32(r[1]*q[1])
		x2, y2 = x2+float32(r[0]*q[2]), y2+float32(r[1]*q[2])
		x3, y3 = x3+float32(r[0]*q[3]), y3+float32(r[1]*q[3])
	}
	s0 = [genericNR]float32{x0, x1, x2, x3}
	s1 = [genericNR]float32{y0, y1, y2, y3}
	copy(c0, s0[:])
	copy(c1, s1[:])
}

// lastStep is the last of k steps of a packed panel.
func lastStep[T any](panel *float32, k int) *T {
	return &unsafe.Slice((*T)(unsafe.Pointer(panel)), k)[k-1]
}

func tile1Generic(k int, a *float32, _ int, b *float32, panel int, c *float32, _, cols int, load bool) {
	for ; cols > genericNR; cols -= genericNR {
		tile1Panel(k, a, b, c, genericNR, load)
		b, c = after(b, panel), after(c, genericNR)
	}
	tile1Panel(k, a, b, c, cols, load)
}

func tile1Panel(k int, a, b, c *float32, cols int, load bool) {
	as := unsafe.Slice(a, k)
	bs := unsafe.Slice((*[genericNR]float32)(unsafe.Pointer(b)), k)[:len(as)]
	c0 := unsafe.Slice(c, cols)
	var s0 [genericNR]float32
	if load {
		copy(s0[:], c0)
	}
	x0, x1, x2, x3 := s0[0], s0[1], s0[2], s0[3]
	for p, a0 := range as {
		q := &bs[p]
		x0 += float32(a0 * q[0])
		x1 += float32(a0 * q[1])
		x2 += float32(a0 * q[2])
		x3 += float32(a0 * q[3])
	}
	s0 = [genericNR]float32{x0, x1, x2, x3}
	copy(c0, s0[:])
}
