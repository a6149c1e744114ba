package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"antiphase/internal/quiet"
)

func benchEach(b *testing.B, f func(b *testing.B)) {
	before := Name()
	defer func() { cur = pick(before) }()
	for _, name := range Names() {
		cur = pick(name)
		b.Run(name, f)
	}
}

// BenchmarkGemm times one thread with both operands packed in the call.
func BenchmarkGemm(b *testing.B) {
	for _, s := range [][3]int{{1024, 768, 768}, {64, 64, 128}, {1, 768, 768}} {
		m, n, k := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			benchEach(b, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				x, w, y := random(r, m*k, 1), random(r, n*k, 1), make([]float32, m*n)
				var s Scratch
				for b.Loop() {
					Gemm(m, n, k, x, k, false, w, k, true, y, n, false, &s)
				}
				b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		})
	}
}

// peakNamed is one of the peak loops.
func peakNamed(b *testing.B, name string) quiet.Loop {
	i := slices.IndexFunc(Peaks(), func(p PeakLoop) bool { return p.Name == name })
	if i < 0 {
		b.Skip("no " + name + " here")
	}
	return quiet.Loop{Ops: Peaks()[i].Ops, Run: Peaks()[i].Run}
}

// asBF16 sees floats as twice as many bfloat16 values.
func asBF16(x []float32) []uint16 { return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x)) }

// BenchmarkGemmBF16 times products of packed operands on one thread, and attention's short ones in the caches.
func BenchmarkGemmBF16(b *testing.B) {
	peak := peakNamed(b, "amx bf16")
	for _, s := range [][3]int{{1024, 768, 768}, {1024, 3072, 768}, {1024, 768, 3072}, {4096, 1024, 384},
		{4096, 384, 1024}, {64, 128, 64}, {64, 128, 128}, {128, 64, 128}} {
		m, n, k := s[0], s[1], s[2]
		r := rand.New(rand.NewPCG(1, 1))
		x, w, y := huge(b, m*k), huge(b, n*k), huge(b, m*n)
		copy(x, random(r, m*k, 1))
		copy(w, random(r, n*k, 1))
		px, pw := asBF16(huge(b, SizeBF16(m, k)/2)), asBF16(huge(b, SizeBF16(n, k)/2))
		var sc Scratch
		PackBBF16(pw, k, n, View{X: w, Ld: k}, true, k)
		PackABF16(px, m, k, View{X: x, Ld: k}, false)
		name := fmt.Sprintf("%dx%dx%d", m, n, k)
		block := max(64, (1<<19)/k/32*32)
		halves := View{H: asBF16(huge(b, m*k/2)), Ld: k}
		NarrowBF16(halves.H, x)
		to := [2]View{{X: y, Ld: n}, {H: asBF16(huge(b, m*n/2)), Ld: n}}
		for _, way := range []struct {
			name string
			c    View
			from View // packed in the call, or as it lies
			rows bool
		}{{"packed", to[0], View{}, false}, {"packing a", to[0], View{X: x, Ld: k}, false},
			{"packed/halves", to[1], View{}, false},
			{"packing a/halves", to[1], halves, false}, {"rows/halves", to[1], halves, true}} {
			if way.rows && !RowsBF16(halves, k) {
				continue
			}
			b.Run(name+"/"+way.name, func(b *testing.B) {
				quiet.Time(b, peak, 2*float64(m)*float64(n)*float64(k), func() {
					for i := 0; i < m; i += block {
						rows, c := min(block, m-i), way.c.From(i, 0)
						if way.rows {
							GemmRowsBF16(rows, n, k, halves.From(i, 0), pw, k, c, false, m > 128, true, true, &sc)
							continue
						}
						if way.from.Ld > 0 {
							PackABF16(px[SizeBF16(i, k):], rows, k, way.from.From(i, 0), false)
						}
						GemmBF16(rows, n, k, px[SizeBF16(i, k):], pw, k, c, false, m > 128, &sc)
					}
				})
			})
		}
	}
}

// BenchmarkTile times the largest matrix tile on data in the first cache: the peak that Gemm can reach.
func BenchmarkTile(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		const k = 192
		x, y, z := Aligned(cur.mr*k), Aligned(cur.nr*k), Aligned(cur.mr*cur.nr)
		for b.Loop() {
			cur.tiles[0].run(k, &x[0], cur.mr, &y[0], k*cur.nr, &z[0], cur.nr, cur.nr, false)
		}
		b.ReportMetric(2*float64(cur.mr*cur.nr*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}

// BenchmarkVector times elementwise ops on 16 Ki elements, in the second cache.
func BenchmarkVector(b *testing.B) {
	const n = 16384
	r := rand.New(rand.NewPCG(1, 1))
	x, y, z, u, v := random(r, n, 1), random(r, n, 1), random(r, n, 1), random(r, n, 1), make([]float32, n)
	s := &AdamW{Clip: 1, Beta1: 0.9, Beta1c: 0.1, Beta2: 0.95, Beta2c: 0.05, Keep: 1, Step: 1e-9, C2: 1, Eps: 1e-8}
	for _, op := range []struct {
		name string
		f    func()
	}{
		{"add", func() { Add(z, x, y) }},
		{"dot", func() { Dot(x, y) }},
		{"sumsquares", func() { SumSquares(x) }},
		{"max", func() { Max(x) }},
		{"exp", func() { ExpSum(z, x, 1, 0) }},
		{"silumul", func() { SiluMul(z, x, y) }},
		{"silumulgrad", func() { SiluMulGrad(z, v, x, x, y, u) }},
		{"adamw", func() { AdamWStep(z, x, v, y, s) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			benchEach(b, func(b *testing.B) {
				for b.Loop() {
					op.f()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/n, "ns/elem")
			})
		})
	}
}

// BenchmarkHalf times conversions of rows in the first cache.
func BenchmarkHalf(b *testing.B) {
	for _, n := range []int{384, 1000} {
		r := rand.New(rand.NewPCG(1, 1))
		x, up, low := random(r, n, 1), make([]uint16, n), make([]uint16, n)
		for _, op := range []struct {
			name string
			f    func()
		}{
			{"widen", func() { WidenBF16(x, up) }},
			{"narrow", func() { NarrowBF16(up, x) }},
			{"join", func() { JoinBF16(x, up, low) }},
			{"split", func() { SplitBF16(up, low, x) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", op.name, n), func(b *testing.B) {
				benchEach(b, func(b *testing.B) {
					for b.Loop() {
						op.f()
					}
				})
			})
		}
	}
}

// BenchmarkPack times packing of a 768 × 768 weight, both ways.
func BenchmarkPack(b *testing.B) {
	const n = 768
	x, y := Aligned(n*n), Aligned(n*n+64*n)
	for _, trans := range []bool{false, true} {
		b.Run(fmt.Sprintf("B/trans=%v", trans), func(b *testing.B) {
			benchEach(b, func(b *testing.B) {
				for b.Loop() {
					PackB(y, n, n, x, n, trans)
				}
				b.ReportMetric(4*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
			})
		})
	}
}

// BenchmarkPackBF16 times packing of activations from memory beyond the second cache, in all four layouts, in the
// blocks that products take.
func BenchmarkPackBF16(b *testing.B) {
	const run, wide = 512, 256
	for _, sh := range [][2]int{{4096, 384}, {4096, 2048}, {4200, 770}} {
		rows, cols := sh[0], sh[1]
		x, dst := huge(b, rows*cols), asBF16(huge(b, run*wide))
		for bits := range 8 {
			down, right, view, bytes, kind := bits&1 != 0, bits&2 != 0, View{X: x, Ld: cols}, 4, "floats"
			if bits >= 4 {
				view, bytes, kind = View{H: asBF16(x), Ld: cols}, 2, "halves"
			}
			high, width := wide, run
			if down {
				high, width = run, wide
			}
			b.Run(fmt.Sprintf("%dx%d/down=%v,right=%v/%s", rows, cols, down, right, kind), func(b *testing.B) {
				b.SetBytes(int64(bytes * rows * cols))
				for b.Loop() {
					for r := 0; r < rows; r += high {
						for c := 0; c < cols; c += width {
							across, k := min(high, rows-r), min(width, cols-c)
							if down {
								across, k = k, across
							}
							packBF16(dst, across, k, view.From(r, c), down, right, k)
						}
					}
				}
			})
		}
	}
}
