package simd

import (
	"math"
	"unsafe"
)

var genericBF16 = bf16Kernels{product: productFew, fewAlike: true,
	few: []fewBF16{fewBF16Generic(1), fewBF16Generic(2)},
}

// bf16Of rounds to nearest, ties to even; a NaN stays one.
func bf16Of(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16 | 0x40)
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

func f32Of(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// productFew is the product without tiles: A's rows are widened, 32 at a time, and processed a few at once.
func productFew(g *gemmBF16) {
	depth := g.steps * PanelBF16
	wide := Grow(&g.s.wide, PanelBF16*depth)
	for i := 0; i < g.m; i += PanelBF16 {
		rows := min(PanelBF16, g.m-i)
		for r := range rows {
			from := g.row(i + r)
			for s := range g.steps {
				for p, x := range from[s*stepBF16:][:PanelBF16] {
					wide[r*depth+s*PanelBF16+p] = f32Of(x)
				}
			}
		}
		g.fewRows(i, rows, wide, depth, func(j, rows, panels int, a, c *float32, ldc int) {
			g.few[rows-1](g.steps, a, depth, &g.b[j/PanelBF16*g.strideB], c, ldc, panels, 2*g.strideB)
		})
	}
}

// fewRows covers rows i … i+rows−1 of C, whose operands are the widened rows of a, with calls of f on a few rows and
// some panels of columns, which add to C.
func (g *gemmBF16) fewRows(i, rows int, a []float32, lda int, f func(j, rows, panels int, a, c *float32, ldc int)) {
	if !g.accumulate {
		zeroRows(rows, g.n, g.c[i*g.ldc:], g.ldc, false)
	}
	for r := 0; r < rows; r += len(g.few) {
		n, j := min(len(g.few), rows-r), 0
		for j+PanelBF16 <= g.n {
			panels := min(fewPanels, (g.n-j)/PanelBF16)
			f(j, n, panels, &a[r*lda], &g.c[(i+r)*g.ldc+j], g.ldc)
			j += panels * PanelBF16
		}
		if j < g.n {
			edge := View{X: Grow(&g.s.edge, n*PanelBF16), Ld: PanelBF16}
			g.pad(edge, i+r, j, n, g.n-j)
			f(j, n, 1, &a[r*lda], &edge.X[0], PanelBF16)
			g.unpad(edge, i+r, j, n, g.n-j)
		}
	}
}

// fewBF16Generic is the product of this many rows: per step of 32 one sum of the even and one of the odd elements of k,
// as the tile instruction does.
func fewBF16Generic(rows int) fewBF16 {
	return func(steps int, a *float32, lda int, b *uint16, c *float32, ldc, panels, stride int) {
		all := unsafe.Slice(b, (panels-1)*stride/2+steps*stepBF16)
		for q := range panels {
			panel, c := all[q*stride/2:], (*float32)(unsafe.Add(unsafe.Pointer(c), 4*q*PanelBF16))
			fewGeneric(rows, steps, a, lda, c, ldc, func(line int) (b widened) {
				for t := range 2 {
					for j := range tileBF16 {
						x := panel[line+t*tileBF16*PanelBF16+2*j:][:2]
						b[0][t*tileBF16+j], b[1][t*tileBF16+j] = f32Of(x[0]), f32Of(x[1])
					}
				}
				return b
			})
		}
	}
}

// widened holds the even and the odd elements of k of a panel's columns.
type widened [2][PanelBF16]float32

// fewGeneric does one panel. It calls widen for the 32 columns of a line of both tiles, which begins at element line of
// the panel; the result is passed by value, because a pointer passed to an unknown function would escape to the heap.
func fewGeneric(rows, steps int, a *float32, lda int, c *float32, ldc int, widen func(line int) widened) {
	as, cs := unsafe.Slice(a, (rows-1)*lda+steps*PanelBF16), unsafe.Slice(c, (rows-1)*ldc+PanelBF16)
	for s := range steps {
		for r := range rows {
			var sum widened
			for p := range PanelBF16 / 2 {
				b := widen(s*stepBF16 + p*PanelBF16)
				x := as[r*lda+s*PanelBF16+2*p:][:2]
				for j := range PanelBF16 {
					sum[0][j] += float32(x[0] * b[0][j])
					sum[1][j] += float32(x[1] * b[1][j])
				}
			}
			for j, y := range cs[r*ldc:][:PanelBF16] {
				cs[r*ldc+j] = y + (sum[0][j] + sum[1][j])
			}
		}
	}
}
