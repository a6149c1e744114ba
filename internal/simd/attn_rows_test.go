package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// attnRows are random rows of a pitch above their width, in float32 or in halves.
type attnRows struct {
	r              *rand.Rand
	rows, cols, ld int
	half           bool
}

// view is a new matrix, and its values.
func (a *attnRows) view() (View, []float32) {
	x := random(a.r, a.rows*a.ld, 1)
	roundBF16Generic(x, x)
	if !a.half {
		return View{X: x, Ld: a.ld}, x
	}
	h := make([]uint16, len(x))
	NarrowBF16(h, x)
	return View{H: h, Ld: a.ld}, x
}

// What goes row by row, in both dtypes, against float64.
func TestAttnRows(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 6))
		var tile AttnTile
		for _, sh := range [][2]int{{32, 64}, {33, 128}, {16, 32}, {5, 40}} {
			for _, half := range []bool{false, true} {
				a := &attnRows{r: r, rows: sh[0], cols: sh[1], ld: sh[1] + 3, half: half}
				vx, x := a.view()
				vy, y := a.view()
				got, want := make([]float32, a.rows), make([]float32, a.rows)
				for i := range want {
					want[i] = float32(dot64(x[i*a.ld:][:a.cols], y[i*a.ld:]))
				}
				tile.Dots(got, vx, vy, a.rows, a.cols)
				near(t, "dots", got, want, 1e-5)
				a.normed(t, &tile)
				a.normBack(t, &tile, vx, vy, x, y)
			}
		}
	})
}

// normed compares NormRows on random rows with its definition.
func (a *attnRows) normed(t *testing.T, tile *AttnTile) {
	t.Helper()
	r, rows, cols, ld := a.r, a.rows, a.cols, a.ld
	z, rstds := random(r, rows*ld, 1), make([]float32, 2*rows)
	want, wantRstd, gain := slices.Clone(z), make([]float32, 2*rows), random(r, cols, 1)
	for i := range rows {
		row := z[i*ld:][:cols]
		wantRstd[2*i] = float32(1 / math.Sqrt(dot64(row, row)/float64(cols)+0.01))
		for c := range row {
			want[i*ld+c] *= 0.8 * gain[c] * wantRstd[2*i]
		}
	}
	tile.NormRows(z, ld, rows, cols, gain, rstds, 2, 0.01, 0.8)
	near(t, "rstd", rstds, wantRstd, 1e-5)
	near(t, "normed", z, want, 1e-5)
}

// normBack compares NormBack with its definition; x is the gradient of the normed rows, y what they were.
func (a *attnRows) normBack(t *testing.T, tile *AttnTile, vx, vy View, x, y []float32) {
	t.Helper()
	r, rows, cols, ld := a.r, a.rows, a.cols, a.ld
	vdo, do := a.view()
	do = slices.Clone(do)
	vo2, o2 := a.view()
	n := NormBack{Rows: rows, Cols: cols, DO: vdo, DOut: vx, Raw: vy, Out2: vo2,
		Delta: [2][]float32{make([]float32, rows), make([]float32, rows)}, Weight: random(r, cols, 1),
		Rstd: random(r, 2*rows, 1), LdRstd: 2, Scale: 0.7, DNorm: make([]float32, cols)}
	dnorm := make([]float32, cols)
	for i := range rows {
		rstd, mean := float64(n.Rstd[2*i]), 0.0
		for c := range cols {
			mean += float64(x[i*ld+c]) * float64(n.Weight[c]) * float64(y[i*ld+c]) * 0.7 * rstd / float64(cols)
			dnorm[c] += float32(0.7 * rstd * float64(x[i*ld+c]) * float64(y[i*ld+c]))
		}
		for c := range cols {
			do[i*ld+c] = float32(rstd * (0.7*float64(n.Weight[c])*float64(x[i*ld+c]) -
				float64(y[i*ld+c])*rstd*mean))
		}
	}
	tile.NormBack(&n)
	near(t, "dnorm", n.DNorm, dnorm, 1e-5)
	for i := range rows {
		want := []float32{float32(dot64(do[i*ld:][:cols], y[i*ld:])),
			float32(dot64(do[i*ld:][:cols], o2[i*ld:]))}
		near(t, "delta", []float32{n.Delta[0][i], n.Delta[1][i]}, want, 1e-4)
	}
	if a.half {
		near(t, "do", values(vdo.H), do, 0.01)
	} else {
		near(t, "do", vdo.X, do, 1e-5)
	}
}

// Logarithms of sums, and what they divide by, in any number.
func TestLogSums(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range []int{0, 1, 15, 16, 17, 40} {
			top, sum := random(r, n+1, 5), make([]float32, n+1)
			want, over := make([]float32, n+1), make([]float32, n+1)
			for i := range sum {
				sum[i] = float32(math.Exp(6 * r.NormFloat64()))
				want[i], over[i] = top[i]+float32(math.Log(float64(sum[i]))), 1/sum[i]
			}
			want[n], over[n] = top[n], sum[n]
			LogSums(top[:n], sum)
			near(t, "log sums", top, want, 3e-7)
			near(t, "over sums", sum, over, 1e-7)
		}
	})
}
