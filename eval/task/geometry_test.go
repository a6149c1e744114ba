package task

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSpectrum(t *testing.T) {
	for _, c := range []struct {
		name string
		rows [][]float64
		want []float64
	}{
		{"diagonal", [][]float64{{3, 0}, {0, -4}}, []float64{4, 3}},
		{"rank one", [][]float64{{1, 2}, {2, 4}, {3, 6}}, []float64{math.Sqrt(70), 0}}, // |(1,2,3)|·|(1,2)|
		// The golden ratio and its inverse.
		{"shear", [][]float64{{1, 1}, {0, 1}}, []float64{(math.Sqrt(5) + 1) / 2, (math.Sqrt(5) - 1) / 2}},
		{"zeros", [][]float64{{0, 0, 0}}, []float64{0}},
		// AᵀA has trace 3/2, det 1/4.
		{"uniform causal", [][]float64{{1, 0}, {0.5, 0.5}},
			[]float64{math.Sqrt((3 + math.Sqrt(5)) / 4), math.Sqrt((3 - math.Sqrt(5)) / 4)}},
	} {
		got := spectrum(c.rows)
		for i, x := range c.want {
			if len(got) != len(c.want) || !near(got[i], x, 1e-7) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

// A matrix made with known singular values, turned by random rotations, gives them back.
func TestSpectrumOfKnown(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{2, 3, 10, 41} {
		rows, want := make([][]float64, n), make([]float64, n)
		for i := range rows {
			rows[i] = make([]float64, n)
			want[i] = math.Exp(g.NormFloat64())
			rows[i][i] = want[i]
		}
		turn := func(by func(a, b int, s, c float64)) {
			for range 20 * n {
				a := g.IntN(n)
				b := (a + 1 + g.IntN(n-1)) % n
				s, c := math.Sincos(7 * g.Float64())
				by(a, b, s, c)
			}
		}
		turn(func(a, b int, s, c float64) { // rows
			for k := range n {
				rows[a][k], rows[b][k] = c*rows[a][k]-s*rows[b][k], s*rows[a][k]+c*rows[b][k]
			}
		})
		turn(func(a, b int, s, c float64) { // columns
			for k := range n {
				rows[k][a], rows[k][b] = c*rows[k][a]-s*rows[k][b], s*rows[k][a]+c*rows[k][b]
			}
		})
		slices.Sort(want)
		slices.Reverse(want)
		for i, x := range spectrum(rows) {
			if !near(x, want[i], 1e-7*want[0]) {
				t.Fatalf("%d × %d: value %d is %g, want %g", n, n, i, x, want[i])
			}
		}
	}
}

// What counts as noise is relative to the largest value: a matrix's scale does not change which values are 0.
func TestSpectrumScale(t *testing.T) {
	for _, scale := range []float64{1e-9, 1, 1e9} {
		got := spectrum([][]float64{{scale, 0, 0, 0}, {0, 1e-3 * scale, 0, 0}, {0, 0, 2e-7 * scale, 0},
			{0, 0, 0, 0.5e-7 * scale}})
		if got[2] == 0 || got[3] != 0 {
			t.Errorf("scale %g: of %g only the last is below 1e-7 of the largest", scale, got)
		}
	}
}

func TestGapAndRank(t *testing.T) {
	for _, c := range []struct {
		sigma     []float64
		gap, rank float64
	}{
		{[]float64{5, 0, 0}, 1, 1},
		{[]float64{2, 2, 2, 2}, 0, 4},
		{[]float64{3, 1}, 2.0 / 3, 4 / math.Pow(3, 0.75)}, // p = ¾, ¼: exp(H) = 4/3^¾
		{[]float64{0, 0}, 1, 0},
	} {
		if g, r := spectralGap(c.sigma), effectiveRank(c.sigma); !near(g, c.gap, 1e-12) || !near(r, c.rank, 1e-12) {
			t.Errorf("%v: gap %g, rank %g, want %g, %g", c.sigma, g, r, c.gap, c.rank)
		}
	}
}

func TestMapGeometry(t *testing.T) {
	// Row 1 is one entry: sparsity 1. Row 2 has entries 0.5, −0.25 and 0: ‖·‖₁ = 0.75, ‖·‖₂ = √0.3125.
	g := mapGeometry([][]float64{{1, 0, 0}, {0, 1, 0}, {0.5, -0.25, 0}})
	third := (math.Sqrt(3) - 0.75/math.Sqrt(0.3125)) / (math.Sqrt(3) - 1)
	if !near(g.Sparsity, (1+third)/2, 1e-12) || !near(g.NearZero, 2.0/6, 1e-12) || !near(g.Negative, 0.25/2.75, 1e-12) {
		t.Errorf("%+v", g)
	}
	uniform := mapGeometry([][]float64{{1, 0, 0}, {0.5, 0.5, 0}, {1. / 3, 1. / 3, 1. / 3}})
	if !near(uniform.Sparsity, 0, 1e-12) || uniform.NearZero != 0 || uniform.Negative != 0 {
		t.Errorf("uniform: %+v", uniform)
	}
	sink := mapGeometry([][]float64{{1, 0, 0}, {1, 0, 0}, {1, 0, 0}})
	if !near(sink.Gap, 1, 1e-9) || !near(sink.Rank, 1, 1e-6) || !near(sink.Sparsity, 1, 1e-12) {
		t.Errorf("sink: %+v", sink)
	}
}

func TestCollapse(t *testing.T) {
	// Mean (2,0): rest 1+1 = 2 of 1+9 = 10.
	if x := collapse([][]float64{{1, 0}, {3, 0}}); !near(x, math.Sqrt(0.2), 1e-12) {
		t.Errorf("%g", x)
	}
	if x := collapse([][]float64{{1, 2}, {1, 2}}); x != 0 {
		t.Errorf("all the same: %g", x)
	}
}
