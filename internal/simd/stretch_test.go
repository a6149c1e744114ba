package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// fewCase is keys and values of some tiles of positions as a cache holds them, 16 rows of 16 positions in any order,
// and what rows have of them.
type fewCase struct {
	x          AttnFew
	k, v       []uint16
	q          []float32
	wide       [2][]float32 // k and v as floats, by position
	order      []int
	kCol, vCol int
}

func newFew(rng *rand.Rand, groups, keys, queries, d, dv, pad, blocks int) *fewCase {
	rows := groups * keys * queries
	c := &fewCase{kCol: groups*keys*d + 2*pad, vCol: groups*dv + pad, order: rng.Perm(blocks)}
	c.k, c.v = make([]uint16, blocks*BlockRows*c.kCol), make([]uint16, blocks*BlockRows*c.vCol)
	for i, x := range [][]uint16{c.k, c.v} {
		for j := range x {
			x[j] = bf16Of(float32(rng.NormFloat64()))
		}
		c.wide[i] = make([]float32, len(x))
	}
	for b, at := range c.order {
		for i := range BlockRows * c.kCol {
			c.wide[0][b*BlockRows*c.kCol+i] = f32Of(c.k[at*BlockRows*c.kCol+i])
		}
		for i := range BlockRows * c.vCol {
			c.wide[1][b*BlockRows*c.vCol+i] = f32Of(c.v[at*BlockRows*c.vCol+i])
		}
	}
	c.x = AttnFew{Groups: groups, Keys: keys, Queries: queries, D: d, DV: dv, LdK: c.kCol, LdV: c.vCol,
		Q: make([]uint16, rows*d), Hi: make([]int32, rows), Scale: 0.3, Logits: make([]float32, rows*TileCols),
		Top: make([]float32, rows), Sum: make([]float32, rows), Acc: make([]float32, rows*dv)}
	c.q = make([]float32, rows*d)
	for i := range c.q {
		c.q[i] = float32(rng.NormFloat64())
	}
	for i := range rows {
		c.x.SetQuery(i, View{X: c.q[i*d : (i+1)*d]})
	}
	for i := range c.x.Top {
		c.x.Top[i] = float32(math.Inf(-1))
	}
	return c
}

// tile prepares positions from p0 on, of which the last row attends to cols and each one before to one less.
func (c *fewCase) tile(p0, cols int) {
	c.x.Cols = cols
	for b := 0; b*BlockRows < cols; b++ {
		at := c.order[p0/BlockRows+b]
		c.x.K[b], c.x.V[b] = c.k[at*BlockRows*c.kCol:], c.v[at*BlockRows*c.vCol:]
	}
	for r := range c.x.Hi {
		c.x.Hi[r] = int32(max(0, cols-(c.x.Queries-1-r%c.x.Queries)))
	}
}

// packed runs the same through Forward, group by group.
func (c *fewCase) packed(p0 int, first bool, top, sum, acc []float32, t *AttnTile, s *Scratch) {
	x, n := &c.x, c.x.Keys*c.x.Queries
	width := up32(x.Cols)
	for g := range x.Groups {
		q := make([]uint16, SizeBF16(x.Keys*strip, x.D))
		y := AttnRows{Maps: x.Keys, Rows: strip, Used: x.Queries, Cols: width, D: x.D, DV: x.DV, Q: q,
			Scale: x.Scale, First: first, V: make([]uint16, SizeBF16(x.DV, TileCols)),
			StrideV: SizeBF16(PanelBF16, TileCols), Lo: make([]int32, strip), Hi: make([]int32, strip),
			Top: make([]float32, x.Keys*strip), Sum: make([]float32, x.Keys*strip),
			Acc:  make([]float32, x.Keys*strip*x.DV),
			Live: []int32{Masked | int32(width/32)}}
		copy(y.Hi, x.Hi[g*n:][:x.Queries])
		PackBBF16(y.V, x.Cols, x.DV, View{X: c.wide[1][p0*c.vCol+g*x.DV:], Ld: c.vCol}, false, TileCols)
		row := func(m, j int) (from, to int) { return g*n + m*x.Queries + j, m*strip + j }
		for m := range x.Keys {
			PackABF16(q[SizeBF16(m*strip, x.D):], x.Queries, x.D, View{X: c.q[(g*n+m*x.Queries)*x.D:], Ld: x.D}, false)
			y.K[m] = make([]uint16, SizeBF16(TileCols, x.D))
			PackBBF16(y.K[m], x.D, x.Cols, View{X: c.wide[0][p0*c.kCol+(g*x.Keys+m)*x.D:], Ld: c.kCol}, true, x.D)
			for j := range x.Queries {
				from, to := row(m, j)
				y.Top[to], y.Sum[to] = top[from], sum[from]
				copy(y.Acc[to*x.DV:][:x.DV], acc[from*x.DV:])
			}
		}
		t.Forward(&y, s)
		for m := range x.Keys {
			for j := range x.Queries {
				to, from := row(m, j)
				top[to], sum[to] = y.Top[from], y.Sum[from]
				copy(acc[to*x.DV:][:x.DV], y.Acc[from*x.DV:])
			}
		}
	}
}

// TestFew asks for Forward's bits from rows that meet a cache as it lies.
func TestFew(t *testing.T) {
	if FewAttn() == 0 {
		t.Skip("no kernels for few rows here: the packed way serves them")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, g := range [][5]int{{3, 1, 1, 64, 64}, {2, 2, 1, 64, 128}, {3, 1, 2, 64, 64}, {1, 1, 3, 32, 96},
		{2, 2, 2, 96, 32}, {2, 1, 4, 128, 128}} {
		for _, cols := range [][]int{{1}, {15, 128}, {128, 16, 127}, {64, 33}, {97, 128}, {18, 49, 31}} {
			t.Run(fmt.Sprint(g, cols), func(t *testing.T) {
				c := newFew(rng, g[0], g[1], g[2], g[3], g[4], 3, TileCols/BlockRows*len(cols))
				var tile AttnTile
				var s Scratch
				top, sum, acc := slices.Clone(c.x.Top), slices.Clone(c.x.Sum), slices.Clone(c.x.Acc)
				for i, n := range cols {
					c.tile(i*TileCols, n)
					tile.Few(&c.x)
					c.packed(i*TileCols, i == 0, top, sum, acc, &tile, &s)
				}
				for what, pair := range map[string][2][]float32{"top": {c.x.Top, top}, "sum": {c.x.Sum, sum},
					"acc": {c.x.Acc, acc}} {
					if !slices.Equal(pair[0], pair[1]) {
						t.Errorf("%s = %v…, packed %v…", what, pair[0][:min(4, len(pair[0]))],
							pair[1][:min(4, len(pair[1]))])
					}
				}
			})
		}
	}
}

// stressFew repeats one meeting of a few rows with a cache, whose tiles have another shape than products', and compares
// with the first; where there are no kernels for that, a product.
func stressFew(seed uint64, products, wrong, stop *atomic.Int64) {
	if FewAttn() == 0 {
		stressProducts(seed, products, wrong, stop)
		return
	}
	c := newFew(rand.New(rand.NewPCG(seed, 10)), 2, 2, 1, 64, 128, 0, TileCols/BlockRows)
	c.tile(0, 100)
	var tile AttnTile
	var want []float32
	for stop.Load() == 0 {
		for i := range c.x.Top {
			c.x.Top[i], c.x.Sum[i] = float32(math.Inf(-1)), 0
		}
		clear(c.x.Acc)
		tile.Few(&c.x)
		products.Add(1)
		if want == nil {
			want = slices.Concat(c.x.Acc, c.x.Top, c.x.Sum)
		}
		if !slices.Equal(slices.Concat(c.x.Acc, c.x.Top, c.x.Sum), want) {
			wrong.Add(1)
		}
	}
}

// TestHalves packs bfloat16 values as they are and as floats: the same tiles, on odd sizes, at odd places.
func TestHalves(t *testing.T) {
	each(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, g := range [][3]int{{1, 1, 1}, {16, 32, 0}, {32, 64, 5}, {31, 33, 2}, {48, 96, 1}, {64, 40, 3}} {
			rows, cols, ld := g[0], g[1], g[1]+g[2]
			wide, half := make([]float32, rows*ld), make([]uint16, rows*ld)
			for i := range wide {
				wide[i] = float32(rng.NormFloat64())
			}
			NarrowBF16(half, wide)
			for i, x := range wide {
				if half[i] != bf16Of(x) {
					t.Fatalf("%v: %g is rounded to %x", g, x, half[i])
				}
			}
			depth := rows + 32
			want, got := make([]uint16, SizeBF16(cols, depth)), make([]uint16, SizeBF16(cols, depth))
			PackBBF16(want, rows, cols, View{X: wide, Ld: ld}, false, depth)
			PackBBF16(got, rows, cols, View{H: half, Ld: ld}, false, depth)
			if !slices.Equal(got, want) {
				t.Errorf("%v: packed rows differ", g)
			}
			want, got = make([]uint16, SizeBF16(rows, cols)), make([]uint16, SizeBF16(rows, cols))
			PackBBF16(want, cols, rows, View{X: wide, Ld: ld}, true, cols)
			PackBBF16(got, cols, rows, View{H: half, Ld: ld}, true, cols)
			if !slices.Equal(got, want) {
				t.Errorf("%v: packed columns differ", g)
			}
		}
	})
}

// BenchmarkFew is the attention of single rows of a model 768 wide to positions that the caches do not hold, in turns
// with reading as much memory beside it: medians of the rate and of its share of reading's.
func BenchmarkFew(b *testing.B) {
	if FewAttn() == 0 {
		b.Skip("no kernels for few rows here")
	}
	for _, g := range [][5]int{{12, 1, 1, 64, 64}, {6, 2, 1, 64, 128}, {12, 1, 2, 64, 64}} {
		b.Run(fmt.Sprint(g), func(b *testing.B) { benchFew(b, g) })
	}
}

func benchFew(b *testing.B, g [5]int) {
	const tiles, turn = 128, 8
	c := newFew(rand.New(rand.NewPCG(1, 1)), g[0], g[1], g[2], g[3], g[4], 0, TileCols/BlockRows)
	c.order = make([]int, (tiles+1)*TileCols/BlockRows)
	for i := range c.order {
		c.order[i] = i % (tiles * TileCols / BlockRows)
	}
	n := tiles * TileCols * (c.kCol + c.vCol) / 2
	room := huge(b, 2*n)
	c.k, c.v = Halves(room)[:tiles*TileCols*c.kCol], Halves(room)[tiles*TileCols*c.kCol:]
	var t AttnTile
	var rate, share []float64
	for b.Loop() {
		for i := 0; i < tiles; i += turn {
			begin := time.Now()
			for j := i; j < i+turn; j++ {
				c.tile(j*TileCols, TileCols)
				for next := range c.x.Next {
					c.x.Next[next] = c.k[c.order[(j+1)*TileCols/BlockRows+next]*BlockRows*c.kCol:]
				}
				t.Few(&c.x)
			}
			took := time.Since(begin).Seconds()
			begin = time.Now()
			ReadLoop(room[n+i*n/tiles:][:turn*n/tiles])
			rate, share = append(rate, float64(4*turn*n/tiles)/took/1e9),
				append(share, time.Since(begin).Seconds()/took)
		}
	}
	slices.Sort(rate)
	slices.Sort(share)
	b.ReportMetric(rate[len(rate)/2], "GB/s")
	b.ReportMetric(share[len(share)/2], "of-reading")
}
