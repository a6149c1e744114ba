package simd

import "unsafe"

// The generic tiles are small enough for 16 scalar registers.
const genericNR = 4

var genericGemm = gemmKernels{
	mr: 2, nr: genericNR,
	tiles:     []tile{{2, tile2Generic}, {1, tile1Generic}},
	transpose: transposeGeneric, lanes: genericNR, across: 1,
	copyPanel: copyPanelGeneric,
}

// transposeGeneric has loops of their own for the 2 and 4 rows of this file's panels, which write a step of k at a
// time.
func transposeGeneric(dst *float32, stride int, src *float32, ld, rows, k int) {
	out, in := unsafe.Slice(dst, (k-1)*stride+rows), unsafe.Slice(src, (rows-1)*ld+k)
	switch rows {
	case 2:
		x1 := in[ld:][:k]
		for p, x := range in[:k] {
			*(*[2]float32)(out[p*stride:]) = [2]float32{x, x1[p]}
		}
	case 4:
		x1, x2, x3 := in[ld:][:k], in[2*ld:][:k], in[3*ld:][:k]
		for p, x := range in[:k] {
			to := (*[4]float32)(out[p*stride:])
			to[0], to[1], to[2], to[3] = x, x1[p], x2[p], x3[p]
		}
	default:
		for i := range rows {
			for p, x := range in[i*ld : i*ld+k] {
				out[p*stride+i] = x
			}
		}
	}
}

func copyPanelGeneric(dst *float32, stride int, src *float32, ld, width, k int) {
	out, in := unsafe.Slice(dst, (k-1)*stride+width), unsafe.Slice(src, (k-1)*ld+width)
	for p := range k {
		to, from := out[p*stride:][:width], in[p*ld:][:width]
		if width == genericNR {
			*(*[genericNR]float32)(to) = [genericNR]float32(from)
			continue
		}
		for i := range to { // a few elements: not worth the call of copy
			to[i] = from[i]
		}
	}
}

// four is a row of a tile: of C, or of a step of B.
type four = [genericNR]float32

// fourAt is the row at p.
func fourAt(p *float32) *four { return (*four)(unsafe.Pointer(p)) }

// after is p plus n elements.
func after(p *float32, n int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n)) }

func tile2Generic(k int, a *float32, _ int, b *float32, panel int, c *float32, ldc, cols int, load bool) {
	for ; cols >= genericNR; cols -= genericNR {
		tile2Panel(k, a, b, fourAt(c), fourAt(after(c, ldc)), load)
		b, c = after(b, panel), after(c, genericNR)
	}
	if cols == 0 {
		return
	}
	var edge0, edge1 four
	c0, c1 := unsafe.Slice(c, cols), unsafe.Slice(after(c, ldc), cols)
	copy(edge0[:], c0)
	copy(edge1[:], c1)
	tile2Panel(k, a, b, &edge0, &edge1, load)
	copy(c0, edge0[:])
	copy(c1, edge1[:])
}

// tile2Panel keeps 8 sums, two elements of A and the current ones of B in registers, for two steps of k per iteration:
// arrays of known length need no bounds checks, and half the iterations leave the front end time for the arithmetic. On
// amd64 it runs at 1.45 multiply-adds per cycle, where three units for separate multiplications and additions allow
// 1.5.
func tile2Panel(k int, a, b *float32, c0, c1 *four, load bool) {
	as := unsafe.Slice((*[2 * 2]float32)(unsafe.Pointer(a)), k/2)
	bs := unsafe.Slice((*[2 * genericNR]float32)(unsafe.Pointer(b)), k/2)[:len(as)]
	var x0, x1, x2, x3, y0, y1, y2, y3 float32
	if load {
		x0, x1, x2, x3 = c0[0], c0[1], c0[2], c0[3]
		y0, y1, y2, y3 = c1[0], c1[1], c1[2], c1[3]
	}
	for p := range as {
		q, r := &bs[p], &as[p]
		x0, y0 = x0+float32(r[0]*q[0]), y0+float32(r[1]*q[0])
		x1, y1 = x1+float32(r[0]*q[1]), y1+float32(r[1]*q[1])
		x2, y2 = x2+float32(r[0]*q[2]), y2+float32(r[1]*q[2])
		x3, y3 = x3+float32(r[0]*q[3]), y3+float32(r[1]*q[3])
		x0, y0 = x0+float32(r[2]*q[4]), y0+float32(r[3]*q[4])
		x1, y1 = x1+float32(r[2]*q[5]), y1+float32(r[3]*q[5])
		x2, y2 = x2+float32(r[2]*q[6]), y2+float32(r[3]*q[6])
		x3, y3 = x3+float32(r[2]*q[7]), y3+float32(r[3]*q[7])
	}
	if k%2 != 0 {
		q, r := lastStep[four](b, k), lastStep[[2]float32](a, k)
		x0, y0 = x0+float32(r[0]*q[0]), y0+float32(r[1]*q[0])
		x1, y1 = x1+float32(r[0]*q[1]), y1+float32(r[1]*q[1])
		x2, y2 = x2+float32(r[0]*q[2]), y2+float32(r[1]*q[2])
		x3, y3 = x3+float32(r[0]*q[3]), y3+float32(r[1]*q[3])
	}
	*c0, *c1 = four{x0, x1, x2, x3}, four{y0, y1, y2, y3}
}

// lastStep is the last of k steps of a packed panel.
func lastStep[T any](panel *float32, k int) *T {
	return &unsafe.Slice((*T)(unsafe.Pointer(panel)), k)[k-1]
}

func tile1Generic(k int, a *float32, _ int, b *float32, panel int, c *float32, _, cols int, load bool) {
	for ; cols >= genericNR; cols -= genericNR {
		tile1Panel(k, a, b, fourAt(c), load)
		b, c = after(b, panel), after(c, genericNR)
	}
	if cols == 0 {
		return
	}
	var edge four
	c0 := unsafe.Slice(c, cols)
	copy(edge[:], c0)
	tile1Panel(k, a, b, &edge, load)
	copy(c0, edge[:])
}

func tile1Panel(k int, a, b *float32, c0 *four, load bool) {
	as := unsafe.Slice(a, k)
	bs := unsafe.Slice((*four)(unsafe.Pointer(b)), k)[:len(as)]
	var x0, x1, x2, x3 float32
	if load {
		x0, x1, x2, x3 = c0[0], c0[1], c0[2], c0[3]
	}
	for p, a0 := range as {
		q := &bs[p]
		x0 += float32(a0 * q[0])
		x1 += float32(a0 * q[1])
		x2 += float32(a0 * q[2])
		x3 += float32(a0 * q[3])
	}
	*c0 = four{x0, x1, x2, x3}
}
