package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/internal/quiet"
)

// BenchmarkAttnTile times the kernels of attention's tiles in the caches: products, and the passes from queries to
// results, whose GFLOP/s count the products in them.
func BenchmarkAttnTile(b *testing.B) {
	peak := peakNamed(b, "amx bf16")
	r := rand.New(rand.NewPCG(1, 1))
	var sc Scratch
	var tile AttnTile
	const often, cols, d = 64, TileCols, 64
	packed := func(n int) []uint16 {
		x := make([]uint16, n)
		for i := range x {
			x[i] = bf16Of(float32(r.NormFloat64()))
		}
		return x
	}
	for _, s := range [][3]int{{64, 128, 256}, {256, 64, 128}} {
		m, n, k := s[0], s[1], s[2]
		pa, pb, c := packed(SizeBF16(m, k)), packed(SizeBF16(n, k)), Aligned(m*n)
		b.Run(fmt.Sprintf("product/%dx%dx%d", m, n, k), func(b *testing.B) {
			quiet.Time(b, peak, often*2*float64(m*n*k), func() {
				for range often {
					tile.Product(m, n, k, pa, SizeBF16(32, k), pb, SizeBF16(32, k), c, n, true, Full, &sc)
				}
			})
		})
	}
	for maps := 1; maps <= 2; maps++ {
		rows, dv := 64, d*maps
		kv := packed(SizeBF16(cols, d))
		x := AttnRows{Maps: maps, Rows: rows, Used: rows, Cols: cols, D: d, DV: dv, Q: packed(SizeBF16(maps*rows, d)),
			K: [2][]uint16{kv, kv}, V: packed(SizeBF16(cols, dv)), StrideV: SizeBF16(32, cols), Scale: 0.125,
			Top: Aligned(maps * rows), Sum: Aligned(maps * rows), Acc: Aligned(maps * rows * dv),
			Lo: make([]int32, rows), Hi: make([]int32, rows), Live: slices.Repeat([]int32{cols / 32}, rows/32)}
		b.Run(fmt.Sprintf("forward%d", maps), func(b *testing.B) {
			quiet.Time(b, peak, float64(often*maps*rows*cols*2*(d+dv)), func() {
				for range often {
					tile.Forward(&x, &sc)
				}
			})
		})
		rows = 256
		g := AttnGrad{Maps: maps, Rows: rows, Cols: cols, D: d, DV: dv, DO: packed(SizeBF16(rows, dv)), K: x.K,
			V: packed(SizeBF16(cols, dv)), Lo: make([]int32, rows), Hi: make([]int32, rows),
			Live: make([]int32, rows/32), Scale: 0.125, Lam: Aligned(rows),
			Mix: packed(SizeBF16(cols, rows)), StridePairs: SizeBF16(32, rows)}
		for i := range g.Live {
			g.Live[i] = cols / 32
		}
		both := packed(2 * SizeBF16(rows, d))
		for m := range maps {
			g.Q[m], g.LSE[m], g.Delta[m] = both[m*SizeBF16(rows, d):], Aligned(rows), Aligned(rows)
			g.Lines[m], g.Pairs[m] = packed(SizeBF16(rows, cols)), packed(SizeBF16(rows, cols))
		}
		b.Run(fmt.Sprintf("grad%d", maps), func(b *testing.B) {
			quiet.Time(b, peak, float64(often*rows*cols*2*(maps*d+dv)), func() {
				for range often {
					tile.Grad(&g, &sc)
				}
			})
		})
	}
}
