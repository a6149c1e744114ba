package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// packedA and packedB are random operands of across rows or columns and k elements of k, packed and as they are.
func packedA(r *rand.Rand, across, k int) ([]uint16, []float32) {
	x, dst := random(r, across*k, 1), make([]uint16, SizeBF16(across, k))
	roundBF16Generic(x, x)
	PackABF16(dst, across, k, View{X: x, Ld: k}, false)
	return dst, x
}

func packedB(r *rand.Rand, across, k int) ([]uint16, []float32) {
	x, dst := random(r, across*k, 1), make([]uint16, SizeBF16(across, k))
	roundBF16Generic(x, x)
	PackBBF16(dst, k, across, View{X: x, Ld: k}, true, k)
	return dst, x
}

func dot64(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// spans are random windows of columns, none of one row.
func spans(r *rand.Rand, rows, cols int) (lo, hi []int32) {
	for i := range rows {
		l, h := r.IntN(cols/4), cols-r.IntN(cols/4)
		if i == 5 {
			l, h = 0, 0
		}
		lo, hi = append(lo, int32(l)), append(hi, int32(h))
	}
	return lo, hi
}

func values(x []uint16) []float32 {
	out := make([]float32, len(x))
	for i := range x {
		out[i] = f32Of(x[i])
	}
	return out
}

// addTile adds the terms of one key tile to the sums of every row's softmax and to its products with v, by definition.
func addTile(x *AttnRows, q []float32, k [2][]float32, v []float32, sums, accs []float64) {
	rows, cols, d, dv := x.Rows, x.Cols, x.D, x.DV
	for i := range sums {
		for c := range cols {
			in := i % rows
			masked := x.Live[in/32]&Masked != 0 && (c < int(x.Lo[in]) || c >= int(x.Hi[in]))
			if masked || c >= 32*int(x.Live[in/32]&^Masked) {
				continue
			}
			e := math.Exp2(0.3 * dot64(q[i*d:(i+1)*d], k[i/rows][c*d:]))
			sums[i] += e
			for j := range dv {
				accs[i*dv+j] += e * float64(v[j*cols+c])
			}
		}
	}
}

// Three key tiles, the middle one masked, against the softmax of all of them at once.
func TestAttnForward(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 1))
		var s Scratch
		var tile AttnTile
		for _, sh := range [][6]int{{32, 32, 32, 32, 1, 1}, {64, 128, 64, 64, 1, 64}, {64, 96, 40, 96, 2, 50},
			{32, 64, 64, 32, 2, 17}} {
			rows, cols, d, dv, maps := sh[0], sh[1], sh[2], sh[3], sh[4]
			n := maps * rows
			x := AttnRows{Maps: maps, Rows: rows, Used: sh[5], Cols: cols, D: d, DV: dv, StrideV: SizeBF16(32, cols),
				Scale: 0.3, First: true, Top: make([]float32, n), Sum: make([]float32, n), Acc: make([]float32, n*dv)}
			var q []float32
			x.Q, q = packedA(r, n, d)
			sums, accs := make([]float64, n), make([]float64, n*dv)
			for i := range n {
				x.Top[i], x.Acc[i] = float32(math.Inf(-1)), float32(math.NaN())
			}
			for step := range 3 {
				var k [2][]float32
				var v []float32
				for m := range maps {
					x.K[m], k[m] = packedB(r, cols, d)
				}
				x.V, v = packedB(r, dv, cols)
				x.Lo, x.Hi = spans(r, rows, cols)
				x.Live = slices.Repeat([]int32{int32(cols / 32)}, rows/32)
				if step == 1 {
					x.Live[rows/32-1] |= Masked
					x.Live[0] = 1 // its other columns do not count
				}
				addTile(&x, q, k, v, sums, accs)
				tile.Forward(&x, &s)
				x.First = false
			}
			for i := range n {
				if i%rows >= x.Used {
					continue
				}
				near(t, "log sum", []float32{x.Top[i] + float32(math.Log2(float64(x.Sum[i])))},
					[]float32{float32(math.Log2(sums[i]))}, 2e-4)
				for j := range dv {
					x.Acc[i*dv+j] /= x.Sum[i]
					accs[i*dv+j] /= sums[i]
					near(t, "out", x.Acc[i*dv+j:][:1], []float32{float32(accs[i*dv+j])}, 0.01)
				}
			}
		}
	})
}

// The backward pass, against its definition.
func TestAttnGrad(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 2))
		var s Scratch
		var tile AttnTile
		for _, sh := range [][5]int{{32, 32, 32, 32, 1}, {64, 128, 64, 64, 1}, {64, 128, 40, 70, 2},
			{96, 64, 32, 96, 2}} {
			rows, cols, d, dv, maps := sh[0], sh[1], sh[2], sh[3], sh[4]
			x := &AttnGrad{Maps: maps, Rows: rows, Cols: cols, D: d, DV: dv, Scale: 0.2, Lam: random(r, rows, 1),
				Live: make([]int32, rows/32), Mix: make([]uint16, SizeBF16(cols, rows)),
				StridePairs: SizeBF16(32, maps*rows)}
			x.Lo, x.Hi = spans(r, rows, cols)
			for i := range x.Live {
				x.Live[i] = Masked | int32(cols/32)
			}
			x.Live[0] = 1 // its other columns are zeros, the first ones whole
			var do, v, k, q []float32
			x.DO, do = packedA(r, rows, dv)
			x.V, v = packedB(r, cols, dv)
			mix, both := make([]float32, len(x.Mix)), make([]uint16, SizeBF16(cols, maps*rows))
			wantBoth := make([]float32, len(both))
			queries := make([]uint16, maps*SizeBF16(rows, d))
			for m := range maps {
				var pq []uint16
				pq, q = packedA(r, rows, d)
				x.Q[m] = queries[m*SizeBF16(rows, d):][:copy(queries[m*SizeBF16(rows, d):], pq)]
				x.K[m], k = packedB(r, cols, d)
				x.LSE[m], x.Delta[m] = random(r, rows, 3), random(r, rows, 1)
				x.Lines[m], x.Pairs[m] = make([]uint16, SizeBF16(rows, cols)), both[m*rows*32:]
				lines := make([]float32, len(x.Lines[m]))
				for i := range rows {
					lo, hi, lam := x.Lo[i], x.Hi[i], 1.0
					if i < 32 {
						lo, hi = 0, 32
					}
					if m == 1 {
						lam = float64(x.Lam[i])
					}
					for c := lo; c < hi; c++ {
						p := lam * math.Exp2(0.2*dot64(q[i*d:(i+1)*d], k[int(c)*d:])-float64(x.LSE[m][i]))
						ds := float32(p * (dot64(do[i*dv:(i+1)*dv], v[int(c)*dv:]) - float64(x.Delta[m][i])))
						mix[placeB(int(c), i, SizeBF16(32, rows))] += float32(p)
						lines[placeA(i, int(c), SizeBF16(32, cols))] = ds
						wantBoth[placeB(int(c), m*rows+i, x.StridePairs)] = ds
					}
				}
				defer func() { near(t, "lines", values(x.Lines[m]), lines, 0.005) }()
			}
			tile.Grad(x, &s)
			near(t, "mix", values(x.Mix), mix, 0.01)
			near(t, "pairs", values(both), wantBoth, 0.005)
		}
	})
}

// Products of whole panels have the bits of GemmBF16, on any strides.
func TestAttnProduct(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 3))
		var s Scratch
		var tile AttnTile
		for _, sh := range [][3]int{{32, 32, 32}, {64, 96, 64}, {128, 64, 96}, {96, 128, 50}} {
			m, n, k := sh[0], sh[1], sh[2]
			pa, _ := packedA(r, m, k)
			pb, _ := packedB(r, n, k)
			for _, accumulate := range []bool{false, true} {
				got := random(r, m*(n+16), 1)
				want := slices.Clone(got)
				GemmBF16(m, n, k, pa, pb, k, View{X: want, Ld: n + 16}, accumulate, false, &s)
				tile.Product(m, n, k, pa, SizeBF16(32, k), pb, SizeBF16(32, k), got, n+16, accumulate, Full, &s)
				near(t, "product", got, want, 0)
			}
		}
	})
}

// What is left out of a product makes no difference where it is zeros.
func TestAttnTriangle(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 5))
		var s Scratch
		var tile AttnTile
		for _, sh := range [][3]int{{64, 96, 96}, {160, 64, 128}, {96, 128, 256}} {
			m, n, k := sh[0], sh[1], sh[2]
			a, b := random(r, m*k, 1), random(r, k*n, 1)
			for _, zeros := range []Triangle{LaterColumns, LongerRows} {
				x, y := slices.Clone(a), slices.Clone(b)
				if zeros == LaterColumns && k < n {
					continue
				}
				for p := range k {
					for i := 0; i < m && zeros == LongerRows; i++ {
						if p/32 > i/32 {
							x[i*k+p] = 0
						}
					}
					for j := 0; j < n && zeros == LaterColumns; j++ {
						if p/32 < j/32 {
							y[p*n+j] = 0
						}
					}
				}
				pa, pb := make([]uint16, SizeBF16(m, k)), make([]uint16, SizeBF16(n, k))
				PackABF16(pa, m, k, View{X: x, Ld: k}, false)
				PackBBF16(pb, k, n, View{X: y, Ld: n}, false, k)
				got, want := make([]float32, m*n), make([]float32, m*n)
				tile.Product(m, n, k, pa, SizeBF16(32, k), pb, SizeBF16(32, k), got, n, false, zeros, &s)
				tile.Product(m, n, k, pa, SizeBF16(32, k), pb, SizeBF16(32, k), want, n, false, Full, &s)
				near(t, "triangle", got, want, 0)
			}
		}
	})
}

// nearHalf holds rows of bfloat16, twice as far apart, to the rounded rows of want. What lies beside them stays 0.
func nearHalf(t *testing.T, what string, got []uint16, want []float32, rows, cols, ld int) {
	t.Helper()
	for i := range rows {
		for c := range 2 * ld {
			x := uint16(0)
			if c < cols {
				x = bf16Of(want[i*ld+c])
			}
			if y := got[i*2*ld+c]; x != y {
				t.Fatalf("%s[%d,%d] = %x, want %x", what, i, c, y, x)
			}
		}
	}
}

// Results on their way out, whole vectors and ragged ones, near and far.
func TestAttnOut(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 4))
		var tile AttnTile
		for _, sh := range [][2]int{{16, 16}, {128, 64}, {33, 48}, {5, 7}} {
			for _, far := range []bool{false, true} {
				rows, cols := sh[0], sh[1]
				ld := (cols + 31) &^ 15
				src, scale := random(r, (rows+cols)*(rows+cols), 1), random(r, rows, 1)
				dst, half := Aligned(rows*ld), Halves(Aligned(rows*ld))
				want := make([]float32, rows*ld)
				for i := range rows {
					for c := range cols {
						want[i*ld+c] = scale[i] * src[i*(cols+1)+c]
					}
				}
				lost := slices.Clone(src)
				tile.ScaleRows(View{X: dst, Ld: ld}, lost, cols+1, rows, cols, scale, far)
				near(t, "scaled", dst, want, 0)
				copy(lost, src)
				tile.ScaleRows(View{H: half, Ld: 2 * ld}, lost, cols+1, rows, cols, scale, far)
				nearHalf(t, "scaled", half, want, rows, cols, ld)
				for i := range rows {
					for c := range cols {
						want[i*ld+c] = scale[0] * src[c*(rows+1)+i]
					}
				}
				copy(lost, src)
				tile.TurnRows(View{X: dst, Ld: ld}, lost, rows+1, rows, cols, scale, far)
				near(t, "turned", dst, want, 0)
				copy(lost, src)
				tile.TurnRows(View{H: half, Ld: 2 * ld}, lost, rows+1, rows, cols, scale, far)
				nearHalf(t, "turned", half, want, rows, cols, ld)
			}
		}
	})
}
