package simd

import (
	"fmt"
	"math"
)

// Weights as bytes: w[j,p] ≈ Scale_j·q with q a whole number from −127 to 127 and Scale_j = max_p |w[j,p]|/127. Panels are those
// of a bfloat16 B with one byte for each value; a line of a tile holds the 16 even elements before the 16 odd ones. Bytes are
// exact as bfloat16, so a product sums them as it would sum those, and is scaled at the end.

// SizeInt8 is the number of bytes of a packed k × n operand.
func SizeInt8(n, k int) int { return SizeBF16(n, k) }

// PackInt8 rounds the rows of w [n,k] to bytes and packs them as the columns of a right-hand operand.
func PackInt8(dst []int8, scale []float32, n, k int, w []float32, ldw int) {
	if n == 0 || k == 0 {
		return
	}
	if len(dst) < SizeInt8(n, k) || len(scale) < n || len(w) < (n-1)*ldw+k {
		panic(fmt.Sprintf("simd: pack int8 of %d×%d (ld %d) from %d into %d bytes and %d scales", n, k, ldw, len(w), len(dst), len(scale)))
	}
	clear(dst[:SizeInt8(n, k)])
	for j := range n {
		row := w[j*ldw : j*ldw+k]
		scale[j] = packRowInt8(dst[j/PanelBF16*SizeBF16(PanelBF16, k)+j%PanelBF16/tileBF16*tileBF16*PanelBF16+j%tileBF16:], row)
	}
}

// packRowInt8 spreads one row over the lines of its tiles and gives its scale.
func packRowInt8(dst []int8, row []float32) float32 {
	var top float32
	for _, x := range row {
		top = max(top, x, -x)
	}
	if top == 0 || top != top || math.IsInf(float64(top), 0) {
		return top // all zero, or nothing that bytes could hold
	}
	inv := 127 / top
	for p, x := range row {
		q := int8(math.RoundToEven(float64(x * inv)))
		dst[p/PanelBF16*stepBF16+p%PanelBF16/2*PanelBF16+p%2*tileBF16] = q
	}
	return top / 127
}

// FewInt8 says how many rows GemmInt8 should get at most: above that, WidenInt8 and GemmBF16 are faster.
func FewInt8() int {
	if cur.widen == nil {
		return math.MaxInt
	}
	return len(cur.fewInt8)
}

// GemmInt8: c[m,n] = a·b, column j times scale[j], for rows of a [m, up to a multiple of 32 of k, zeros from k on] that hold
// bfloat16 values, and b from PackInt8. The bits are those of GemmBF16 on the widened bytes.
func GemmInt8(m, n, k int, a []float32, lda int, pb []int8, scale, c []float32, ldc int, s *Scratch) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		zeroRows(m, n, c, ldc, false)
		return
	}
	if len(a) < (m-1)*lda+up32(k) || len(pb) < SizeInt8(n, k) || len(scale) < n || len(c) < (m-1)*ldc+n {
		panic(fmt.Sprintf("simd: int8 gemm %d×%d×%d on %d (ld %d), %d and %d (ld %d) elements", m, n, k, len(a), lda, len(pb), len(c), ldc))
	}
	g := s.few(m, n, k, c, ldc, false)
	g.fewRows(0, m, a, lda, func(j, rows, panels int, a, c *float32, ldc int) {
		kernel := g.fewInt8[rows-1]
		if rows == 1 && g.group > 0 && panels%g.group == 0 {
			kernel = g.oneInt8
		}
		kernel(g.steps, a, lda, &pb[SizeInt8(j, k)], c, ldc, panels, SizeInt8(PanelBF16, k))
	})
	ScaleColumns(m, n, c, ldc, scale)
}

// ScaleColumns multiplies column j of c by scale[j].
func ScaleColumns(m, n int, c []float32, ldc int, scale []float32) {
	for i := range m {
		Mul(c[i*ldc:i*ldc+n], c[i*ldc:], scale)
	}
}

// WidenInt8 turns packed bytes, whole panels of them, into a packed bfloat16 operand.
func WidenInt8(dst []uint16, src []int8) {
	if len(src)%stepBF16 != 0 || len(dst) < len(src) {
		panic(fmt.Sprintf("simd: widen %d bytes into %d", len(src), len(dst)))
	}
	if len(src) == 0 {
		return
	}
	if cur.widen != nil {
		cur.widen(&dst[0], &src[0], len(src)/PanelBF16)
		return
	}
	widenInt8Generic(dst, src)
}

func widenInt8Generic(dst []uint16, src []int8) {
	for line := 0; line < len(src); line += PanelBF16 {
		for j := range tileBF16 {
			dst[line+2*j], dst[line+2*j+1] = bf16Of(float32(src[line+j])), bf16Of(float32(src[line+tileBF16+j]))
		}
	}
}
