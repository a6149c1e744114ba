package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// softShapes are rows, columns and the width of values.
var softShapes = [][3]int{{1, 1, 1}, {7, 8, 8}, {8, 31, 20}, {9, 64, 64}, {64, 128, 64}, {17, 100, 3}, {64, 33, 96}}

// tileOf is a tile of logits with NaN where nothing may be read: after the row's last column. Row 3 has no column, some
// begin with −Inf, and logits of row 2 differ by more than float32 has powers of 2.
func tileOf(r *rand.Rand, rows, width int) (x []float32, hi []int32) {
	x = random(r, rows*TileCols, 3)
	for i := range rows {
		h := width - r.IntN(width)
		switch i {
		case 3:
			h = -r.IntN(2)
		case 2:
			if h > 1 {
				x[i*TileCols] = -500
			}
		default:
			for c := range r.IntN(h) * r.IntN(2) {
				x[i*TileCols+c] = float32(math.Inf(-1))
			}
		}
		hi = append(hi, int32(h))
		for c := max(0, h); c < TileCols; c++ {
			x[i*TileCols+c] = float32(math.NaN())
		}
	}
	return x, hi
}

// Three tiles, one after the other, against the softmax of all of them at once in float64.
func TestSoften(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 9))
		var tile AttnTile
		for _, sh := range softShapes {
			rows, width, dv := sh[0], sh[1], sh[2]
			acc := random(r, rows*(dv+2), 1)
			was, logits := append([]float32(nil), acc...), make([][]float64, rows)
			s := SoftTile{Rows: rows, Width: width, Scale: 0.75, Top: make([]float32, rows+1),
				Sum: make([]float32, rows+1), Acc: acc, LdAcc: dv + 2}
			for i := range s.Top {
				s.Top[i] = float32(math.Inf(-1))
			}
			begun := make([]float64, rows) // the largest logit when acc began
			for step := range 3 {
				s.X, s.Hi = tileOf(r, rows, width)
				for i := range rows {
					for _, x := range s.X[i*TileCols:][:max(0, s.Hi[i])] {
						logits[i] = append(logits[i], 0.75*float64(x))
					}
				}
				if step > 0 {
					s.DV = dv
				}
				tile.Soften(&s)
				checkSoft(t, &s, logits)
				for i := range begun {
					if step == 0 {
						begun[i] = float64(s.Top[i])
					}
				}
			}
			for i := range rows {
				c := math.Exp2(begun[i] - float64(s.Top[i]))
				for j := range dv + 2 {
					want := float64(was[i*(dv+2)+j])
					if j < dv {
						want *= c
					}
					if j >= dv || !math.IsInf(begun[i], -1) { // a row that had no column has nothing in acc
						near(t, "acc", acc[i*(dv+2)+j:][:1], []float32{float32(want)}, 1e-6)
					}
				}
			}
			if !math.IsInf(float64(s.Top[rows]), -1) || s.Sum[rows] != 0 {
				t.Fatal("written after the last row")
			}
		}
	})
}

// checkSoft compares a tile and its sums with the logits of each row so far.
func checkSoft(t *testing.T, s *SoftTile, logits [][]float64) {
	t.Helper()
	for i, all := range logits {
		top, sum := math.Inf(-1), 0.0
		for _, x := range all {
			top = max(top, x)
		}
		for _, x := range all {
			sum += math.Exp2(max(x-top, -1000))
		}
		near(t, "top", s.Top[i:i+1], []float32{float32(top)}, 1e-6)
		near(t, "sum", s.Sum[i:i+1], []float32{float32(sum)}, 2e-6)
		hi := max(0, int(s.Hi[i]))
		for c, got := range s.X[i*TileCols:][:s.Width] {
			want := 0.0
			if c < hi {
				want = math.Exp2(all[len(all)-hi+c] - top)
			}
			if math.Abs(float64(got)-want) > 2e-6*want+1e-37 || want < 0x1p-127 && got != 0 {
				t.Fatalf("row %d column %d of %d: %g, want %g", i, c, hi, got, want)
			}
		}
	}
}

// Both passes against the formulas in float64, with logits below their sum's logarithm, as they are.
func TestSoftenBack(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 9))
		var tile AttnTile
		for _, sh := range softShapes {
			for maps := 1; maps <= 2; maps++ {
				rows, width := sh[0], sh[1]
				x := SoftTileBack{Maps: maps, Rows: rows, Width: width, Scale: 0.75, Mix: random(r, rows*TileCols, 1),
					Lam: random(r, rows, 1)}
				x.DP, x.Hi = tileOf(r, rows, width)
				for i := range x.DP {
					if x.DP[i] < -400 {
						x.DP[i] = 1
					}
				}
				for m := range maps {
					x.P[m] = append([]float32(nil), x.DP...)
					x.LSE[m], x.Delta[m] = random(r, rows, 1), random(r, rows, 1)
					for i := range rows {
						x.LSE[m][i] = 9 + x.LSE[m][i]
					}
				}
				for i, e := range x.DP {
					if math.IsInf(float64(e), -1) {
						x.DP[i] = 0.5
					}
				}
				was := x
				was.DP = append([]float32(nil), x.DP...)
				for m := range maps {
					was.P[m] = append([]float32(nil), x.P[m]...)
				}
				tile.SoftenBack(&x)
				for i := range rows {
					checkSoftBack(t, &x, &was, i)
				}
			}
		}
	})
}

func checkSoftBack(t *testing.T, x, was *SoftTileBack, i int) {
	t.Helper()
	lam := [2]float64{1, float64(x.Lam[i])}
	for c := range x.Width {
		at := i*TileCols + c
		var p, ds [2]float64
		for m := 0; m < x.Maps && c < int(x.Hi[i]); m++ {
			p[m] = lam[m] * math.Exp2(0.75*float64(was.P[m][at])-float64(x.LSE[m][i]))
			ds[m] = p[m] * (float64(was.DP[at]) - float64(x.Delta[m][i]))
		}
		got, want := []float32{x.P[0][at], x.DP[at]}, []float32{float32(p[0]), float32(ds[0])}
		if x.Maps == 2 {
			got, want = []float32{x.P[0][at], x.P[1][at], x.Mix[at]},
				[]float32{float32(ds[0]), float32(ds[1]), float32(p[0] + p[1])}
		}
		near(t, "softmax backward", got, want, 3e-6)
	}
}

// MixNorm against the formula in float64, with and without the outputs that may be absent.
func TestMixNorm(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 9))
		var tile AttnTile
		for _, sh := range [][2]int{{1, 32}, {5, 64}, {64, 128}, {3, 20}, {8, 96}} {
			for _, all := range []bool{true, false} {
				rows, n := sh[0], sh[1]
				ld, ldOut := n+3, n+5
				x := MixNorm{Rows: rows, Cols: n, Ld: ld, Weight: random(r, n, 1),
					Rstd: make([]float32, 2*rows), LdRstd: 2, Eps: 0.01, Scale: 0.8, Back: random(r, rows, 1),
					Out: View{X: make([]float32, rows*ldOut), Ld: ldOut}}
				var was [2][]float32
				for m := range 2 {
					x.Acc[m], x.F[m] = random(r, rows*ld, 1), random(r, rows, 1)
					was[m] = append([]float32(nil), x.Acc[m]...)
				}
				if all {
					x.Raw = View{X: make([]float32, rows*ldOut), Ld: ldOut}
					x.Out2 = View{X: make([]float32, rows*ldOut), Ld: ldOut}
				}
				tile.MixNorm(&x)
				for i := range rows {
					checkMixNorm(t, &x, was, i)
				}
			}
		}
	})
}

func checkMixNorm(t *testing.T, x *MixNorm, was [2][]float32, i int) {
	t.Helper()
	n, squares := x.Cols, 0.0
	raw, out, out2 := make([]float32, n), make([]float32, n), make([]float32, n)
	for c := range n {
		a, b := float64(was[0][i*x.Ld+c]), float64(was[1][i*x.Ld+c])
		y := float64(x.F[0][i])*a + float64(x.F[1][i])*b
		raw[c], out2[c] = float32(y), float32(float64(x.Back[i])*b)
		squares += y * y
	}
	rstd := 1 / math.Sqrt(squares/float64(n)+0.01)
	for c := range n {
		out[c] = float32(0.8 * float64(x.Weight[c]) * float64(raw[c]) * rstd)
	}
	near(t, "rstd", x.Rstd[2*i:][:1], []float32{float32(rstd)}, 2e-6)
	near(t, "out", x.Out.X[i*x.Out.Ld:][:n], out, 2e-6)
	if x.Raw.X != nil {
		near(t, "raw", x.Raw.X[i*x.Raw.Ld:][:n], raw, 1e-6)
		near(t, "out2", x.Out2.X[i*x.Out2.Ld:][:n], out2, 1e-6)
	}
	for _, v := range []View{x.Out, x.Raw, x.Out2} {
		if len(v.X) > 0 {
			near(t, "after the row", v.X[i*v.Ld+n:][:5], make([]float32, 5), 0)
		}
	}
}

// A NaN among the logits of a row, at any place, makes the row's sum and gradients NaN, and those of no other row:
// training that has diverged must not look as if it had not.
func TestSoftenKeepsNaN(t *testing.T) {
	const rows, width, bad = 9, 45, 4
	isNaN := func(x float32) bool { return x != x }
	each(t, func(t *testing.T) {
		var tile AttnTile
		for at := range width {
			r := rand.New(rand.NewPCG(5, uint64(at)))
			hi := make([]int32, rows)
			for i := range hi {
				hi[i] = width
			}
			x := random(r, rows*TileCols, 3)
			x[bad*TileCols+at] = float32(math.NaN())
			p, dp := append([]float32(nil), x...), random(r, rows*TileCols, 1)
			s := SoftTile{Rows: rows, Width: width, Hi: hi, X: x, Scale: 0.75, Top: make([]float32, rows),
				Sum: make([]float32, rows)}
			tile.Soften(&s)
			tile.SoftenBack(&SoftTileBack{Maps: 1, Rows: rows, Width: width, Hi: hi, P: [2][]float32{p},
				DP: dp, Scale: 0.75, LSE: [2][]float32{make([]float32, rows)},
				Delta: [2][]float32{make([]float32, rows)}})
			for i := range rows {
				if isNaN(s.Sum[i]) != (i == bad) || isNaN(dp[i*TileCols+at]) != (i == bad) ||
					isNaN(p[i*TileCols+at]) != (i == bad) {
					t.Fatalf("NaN in row %d, column %d: row %d has the sum %g, P %g and dS %g", bad, at, i, s.Sum[i],
						p[i*TileCols+at], dp[i*TileCols+at])
				}
			}
		}
	})
}
