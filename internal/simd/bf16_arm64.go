//go:build !purego

package simd

import "unsafe"

// neonBF16 is neon with products of bfloat16 by BFMMLA.
var neonBF16 kernels

func withMMLA(k kernels) kernels {
	k.name = "neonbf16"
	k.narrow = narrowNEONBF16
	k.short = vectorsNEONBF16
	k.product, k.fewAlike, k.ordered = productMMLA, false, true
	return k
}

// group is the rows or columns of a tile of BFMMLA.
const group = 8

// productMMLA reorders all of A and then one panel of B after the other for BFMMLA, and multiplies group by group.
func productMMLA(g *gemmBF16) {
	depth := g.steps * PanelBF16
	rows := (g.m + group - 1) / group
	a, b := halvesOf(Grow(&g.s.wide, rows*group*depth/2)), halvesOf(Grow(&g.s.below, PanelBF16*depth/2))
	for i := range rows {
		orderRowsNEONBF16(&a[i*group*depth], &g.row(i * group)[0], g.steps)
	}
	for j := 0; j < g.n; j += PanelBF16 {
		cols := (min(PanelBF16, g.n-j) + group - 1) / group
		for c := range cols {
			panel := g.b[j/PanelBF16*g.strideB:]
			orderColumnsNEONBF16(&b[c*group*depth], &panel[c/2*tileBF16*PanelBF16+c%2*group*2], g.steps)
		}
		for i := range rows {
			for c := range cols {
				g.square(&a[i*group*depth], &b[c*group*depth], i*group, j+c*group)
			}
		}
	}
}

// square computes the tile of C starting at (i,j), which may be partial.
func (g *gemmBF16) square(a, b *uint16, i, j int) {
	m, n := min(group, g.m-i), min(group, g.n-j)
	if m == group && n == group {
		mmlaNEONBF16(g.steps, a, b, &g.c[i*g.ldc+j], g.ldc, g.accumulate)
		return
	}
	edge := View{X: Grow(&g.s.edge, group*group), Ld: group}
	if g.accumulate {
		g.pad(edge, i, j, m, n)
	}
	mmlaNEONBF16(g.steps, a, b, &edge.X[0], group, g.accumulate)
	g.unpad(edge, i, j, m, n)
}

// halvesOf views floats as twice as many 16-bit values.
func halvesOf(x []float32) []uint16 { return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x)) }
