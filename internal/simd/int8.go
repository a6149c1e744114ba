package simd

import (
	"fmt"
	"math"
	"unsafe"
)

// Products of float rows with int8 weights, whose sums are exact integers.
//
// A row of W is w[j,p] ≈ S_j·q, q an integer from −127 to 127 and S_j = max_p |w[j,p]|/127. A row of x is x[i,p] ≈
// s_i·v, v an integer from −32767 to 32767 and s_i = max_p |x[i,p]|/32767. The error is at most 2⁻¹⁶ of the largest
// element; that of bfloat16 is up to 2⁻⁹ of each. Then
//
//	y[i,j] = round(Σ_p q·v)·S_j·s_i,   round(t) = 256·⌊t/256⌋ + t mod 256 in float32
//
// Instructions that sum bytes take v + 2¹⁵ = 256·hi + lo, hi and lo unsigned: Σ q·v = 256·(Σ q·hi − 128·Σ q) + Σ q·lo.
// Each sum is at most 255·127·MaxKInt8 < 2³¹. Nothing is rounded before the end, so the bits of an element depend
// neither on the order of its sum nor on the implementation, m, n or its position.
//
// W is packed in panels of 32 columns. A panel is a sequence of steps of 64 elements of k, each two tiles of 16
// columns. Line p of a tile holds elements 4p … 4p+3 of k for each of its columns. The heads follow all panels: S of a
// panel's columns, then −128·Σq.

const (
	// MaxKInt8 is the largest k of an int8 product.
	MaxKInt8 = 1 << 16
	// stepInt8 is the elements of k in one step of a panel.
	stepInt8 = 64
	// PanelRowsInt8 is the number of rows in a panel of x.
	PanelRowsInt8 = 16

	headInt8  = 2 * PanelBF16        // numbers of a head
	stepBytes = stepInt8 * PanelBF16 // of a panel
	// fewWithTiles is the most rows that are not worth a tile: up to there memory is the bound either way.
	fewWithTiles = 3
	// leastInt8 is the size below which all elements of a row count as 0: their scale would have no inverse.
	leastInt8 = 0x1p-100
)

// int8Kernels is one implementation of int8 products.
type int8Kernels struct {
	few []fewInt8 // by number of rows, from 1
	// side are those that read groups[rows-1] panels side by side, for the first few numbers of rows: panels is a
	// multiple of that.
	side   []fewInt8
	groups []int
	// tiles is the product of whole panels of rows; absent where few does for any number of them.
	tiles func(g *gemmInt8)
	// planes means that a step of a panel of x holds the upper bytes of all rows, then the lower ones, not 16-bit
	// values.
	planes bool
	// top is the bits of the largest |x| of steps of 64 elements, above those of infinity for NaN.
	top func(x *float32, steps int) uint32
	// split writes v = round(x·inv), 64 per step, steps stride bytes apart: 16-bit values, or the two bytes of v + 2¹⁵,
	// the lower one half a stride after the upper.
	split func(dst *int16, x *float32, steps, stride int, inv float32)
	// peak names the loop that bounds them, see Peaks.
	peak string
}

// fewInt8 computes y for all its rows and 32·panels columns. Steps of x lie step bytes apart, panels of W stride bytes;
// scale holds s.
type fewInt8 func(steps int, x *int16, step int, w *int8, head, c *float32, ldc int, scale *float32, panels, stride int)

// upInt8 is k in whole steps.
func upInt8(k int) int { return (k + stepInt8 - 1) / stepInt8 }

// ColumnsInt8 is a packed W [n,k].
type ColumnsInt8 struct {
	n, k int
	data []int8
	head []float32
}

// SizeInt8 is the memory that a W [n,k] needs, in floats.
func SizeInt8(n, k int) int { return up32(n) / PanelBF16 * (upInt8(k)*stepBytes/4 + headInt8) }

// MakeColumnsInt8 is a W [n,k] in room, not filled unless it was before.
func MakeColumnsInt8(n, k int, room []float32) ColumnsInt8 {
	if n == 0 || k == 0 {
		return ColumnsInt8{}
	}
	if len(room) < SizeInt8(n, k) || k > MaxKInt8 {
		panic(fmt.Sprintf("simd: int8 weights %d×%d (k up to %d) in %d floats", n, k, MaxKInt8, len(room)))
	}
	size := up32(n) * upInt8(k) * stepInt8
	return ColumnsInt8{n, k, unsafe.Slice((*int8)(unsafe.Pointer(&room[0])), size), room[size/4 : SizeInt8(n, k)]}
}

// Pack rounds n rows of W to bytes, from row j on, a multiple of PanelBF16. A row that is not finite gives NaN.
func (w *ColumnsInt8) Pack(j, n int, src []float32, ld int) {
	if n == 0 || w.n == 0 {
		return
	}
	if j+n > w.n || j%PanelBF16 != 0 || len(src) < (n-1)*ld+w.k {
		panic(fmt.Sprintf("simd: rows %d to %d of int8 weights %d×%d from %d elements (ld %d)", j, j+n, w.n, w.k,
			len(src), ld))
	}
	panels, first := up32(n)/PanelBF16, j/PanelBF16
	clear(w.panel(first)[:panels*w.stride()])
	clear(w.head[first*headInt8:][:panels*headInt8])
	for i := range n {
		at := i % PanelBF16
		head := w.head[(first+i/PanelBF16)*headInt8:]
		scale, sum := packRowInt8(w.panel(first + i/PanelBF16)[at/tileBF16*tileBF16*stepInt8+at%tileBF16*4:],
			src[i*ld:][:w.k])
		head[at], head[PanelBF16+at] = scale, math.Float32frombits(uint32(sum))
	}
}

// Bytes is how far n columns, whole panels, reach from the beginning of the room.
func (w *ColumnsInt8) Bytes(n int) int { return n / PanelBF16 * w.stride() }

// panel is where panel i begins; stride is the bytes of one.
func (w *ColumnsInt8) panel(i int) []int8 { return w.data[i*w.stride():] }
func (w *ColumnsInt8) stride() int        { return upInt8(w.k) * stepBytes }

// packRowInt8 spreads one row over the lines of its tiles and gives S and −128·Σq.
func packRowInt8(dst []int8, row []float32) (scale float32, sum int32) {
	var bits uint32
	for _, x := range row {
		bits = max(bits, math.Float32bits(x)&^(1<<31)) // in the order of floats, NaN above all
	}
	top := math.Float32frombits(bits)
	if top < leastInt8 {
		return 0, 0
	}
	if top != top || top > math.MaxFloat32 {
		return float32(math.NaN()), 0
	}
	inv := 127 / top
	for p := 0; p < len(row); p += 4 {
		line := dst[p/stepInt8*stepBytes+p%stepInt8/4*stepInt8:][:4]
		for i, x := range row[p:min(p+4, len(row))] {
			const whole = 3 << 22 // floats of this size are whole, and end with q
			q := int8(math.Float32bits(float32(x*inv) + whole))
			line[i] = q
			sum += int32(q)
		}
	}
	return top / 127, -128 * sum
}

// RowsInt8 are rows of x as 16-bit values, a scale for each. They lie in panels of 16 rows, or of all where there are
// few; a panel is a run of steps of 64 elements of k, each 64 of every row.
type RowsInt8 struct {
	m, k, height int
	width        int // values between rows of a step
	data         []int16
	scale        []float32
}

// SizeRowsInt8 is the memory that m rows of k elements need, in floats.
func SizeRowsInt8(m, k int) int {
	return (m+15)&^15 + (m+PanelRowsInt8-1)/PanelRowsInt8*PanelRowsInt8*upInt8(k)*stepInt8/2
}

// MakeRowsInt8 are m rows of k elements in room, not filled yet.
func MakeRowsInt8(m, k int, room []float32) RowsInt8 {
	if m == 0 || k == 0 {
		return RowsInt8{m: m}
	}
	if len(room) < SizeRowsInt8(m, k) || k > MaxKInt8 {
		panic(fmt.Sprintf("simd: %d×%d int8 rows (k up to %d) in %d floats", m, k, MaxKInt8, len(room)))
	}
	height, width, few := PanelRowsInt8, stepInt8, len(cur.bytes.few)
	if cur.bytes.tiles != nil {
		few = min(few, fewWithTiles)
	}
	if m <= few {
		height = m
	}
	if cur.bytes.planes {
		width /= 2
	}
	n := SizeRowsInt8(m, k)
	data := room[(m+15)&^15 : n]
	return RowsInt8{m, k, height, width, unsafe.Slice((*int16)(unsafe.Pointer(&data[0])), 2*len(data)), room[:m]}
}

// Pack rounds n rows of src, from row r on. A row with an element that is not finite makes all of its products NaN.
func (x *RowsInt8) Pack(r, n int, src []float32, ld int, s *Scratch) {
	if n == 0 || x.k == 0 {
		return
	}
	if r+n > x.m || len(src) < (n-1)*ld+x.k {
		panic(fmt.Sprintf("simd: rows %d to %d of %d×%d int8 rows from %d elements (ld %d)", r, r+n, x.m, x.k,
			len(src), ld))
	}
	for i := range n {
		x.packRow(r+i, src[i*ld:][:x.k], s)
	}
}

// packRow cuts a row into whole steps and, in the scratch, one filled up with zeros.
func (x *RowsInt8) packRow(r int, row []float32, s *Scratch) {
	whole := x.k / stepInt8
	var last []float32
	if tail := row[whole*stepInt8:]; len(tail) > 0 {
		last = Grow(&s.edge, stepInt8)
		clear(last[copy(last, tail):])
	}
	var bits uint32
	if whole > 0 {
		bits = cur.bytes.top(&row[0], whole)
	}
	if last != nil {
		bits = max(bits, cur.bytes.top(&last[0], 1))
	}
	top := math.Float32frombits(bits)
	x.scale[r] = top / 32767
	inv := 32767 / top
	switch {
	case top < leastInt8:
		inv, x.scale[r] = 0, 0
	case top != top || top > math.MaxFloat32:
		inv, x.scale[r] = 0, float32(math.NaN())
	}
	dst, stride := x.row(r), 128*x.height
	if whole > 0 {
		cur.bytes.split(&dst[0], &row[0], whole, stride, inv)
	}
	if last != nil {
		cur.bytes.split(&dst[whole*stride/2], &last[0], 1, stride, inv)
	}
}

// row is where row r begins.
func (x *RowsInt8) row(r int) []int16 {
	return x.data[r/x.height*x.height*upInt8(x.k)*stepInt8+r%x.height*x.width:]
}

// gemmInt8 is one product in progress: columns from j on.
type gemmInt8 struct {
	*int8Kernels
	x     *RowsInt8
	w     *ColumnsInt8
	m     int
	j, n  int
	steps int
	c     []float32
	ldc   int
	far   bool
	s     *Scratch
}

// GemmInt8: c[m,n] = y of all rows of x and columns j … j+n−1 of w, j a multiple of PanelBF16. far requests
// non-temporal stores.
func GemmInt8(x *RowsInt8, w *ColumnsInt8, j, n int, c []float32, ldc int, far bool, s *Scratch) {
	if x.m == 0 || n == 0 {
		return
	}
	if x.k == 0 {
		zeroRows(x.m, n, c, ldc, false)
		return
	}
	if x.k != w.k || j+n > w.n || j%PanelBF16 != 0 || len(c) < (x.m-1)*ldc+n {
		panic(fmt.Sprintf("simd: int8 gemm of rows %d×%d and columns %d to %d of %d×%d in %d elements (ld %d)",
			x.m, x.k, j, j+n, w.n, w.k, len(c), ldc))
	}
	g := &s.int8
	*g = gemmInt8{&cur.bytes, x, w, x.m, j, n, upInt8(x.k), c, ldc, far, s}
	if g.tiles != nil && x.height == PanelRowsInt8 {
		g.tiles(g)
		return
	}
	g.panels()
}

// panels is the product without tiles: as many panels of columns as are read together are multiplied with all rows,
// then the next.
func (g *gemmInt8) panels() {
	together := g.group(min(g.m, len(g.few)))
	for j := 0; j < g.n; {
		panels := max(1, min(together, (g.n-j)/PanelBF16))
		for i := 0; i < g.m; i += len(g.few) {
			rows := min(len(g.few), g.m-i)
			kernel := g.few[rows-1]
			if n := g.group(rows); n > 1 && panels%n == 0 {
				kernel = g.side[rows-1]
			}
			g.block(kernel, i, j, rows, panels)
		}
		j += panels * PanelBF16
	}
}

// group is the number of panels that this many rows process together.
func (k *int8Kernels) group(rows int) int {
	if rows > len(k.groups) {
		return 1
	}
	return k.groups[rows-1]
}

// block runs a kernel on rows from i on and panels from column j on, the last of which may be cut short.
func (g *gemmInt8) block(kernel fewInt8, i, j, rows, panels int) {
	at := (g.j + j) / PanelBF16
	x, w, head, scale := &g.x.row(i)[0], &g.w.panel(at)[0], &g.w.head[at*headInt8], &g.x.scale[i]
	if cols := g.n - j; cols < PanelBF16 {
		edge := Grow(&g.s.edge, len(g.few)*PanelBF16)
		kernel(g.steps, x, 128*g.x.height, w, head, &edge[0], PanelBF16, scale, 1, g.w.stride())
		for r := range rows {
			copy(g.c[(i+r)*g.ldc+j:][:cols], edge[r*PanelBF16:])
		}
		return
	}
	kernel(g.steps, x, 128*g.x.height, w, head, &g.c[i*g.ldc+j], g.ldc, scale, panels, g.w.stride())
}

// ReserveInt8 grows s so that no int8 product allocates.
func (s *Scratch) ReserveInt8() {
	Grow(&s.edge, max(stepInt8, len(cur.bytes.few)*PanelBF16))
	Grow(&s.tile, 2*stepBF16)
	Grow(&s.partial, stepBF16*maxPartial)
}
