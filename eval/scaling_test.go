package eval

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// curveOf is points of a known curve, with noise.
func curveOf(name string, e, a, alpha, noise float64, g *rand.Rand, xs ...float64) ScalingCurve {
	c := ScalingCurve{Name: name}
	for _, x := range xs {
		y := e + a*math.Pow(x, -alpha)
		if g != nil {
			y += noise * g.NormFloat64()
		}
		c.Points = append(c.Points, ScalingPoint{x, y})
	}
	return c
}

var fewSizes = []float64{1e6, 2e6, 4e6, 8e6, 1.6e7, 3.2e7}

func TestScalingRecoversCurve(t *testing.T) {
	for _, want := range []ScalingCurve{{E: 2.8, A: 120, Alpha: 0.4}, {E: 0.5, A: 9, Alpha: 0.1},
		{E: 1, A: 3e5, Alpha: 1.1}} {
		c := curveOf("a", want.E, want.A, want.Alpha, 0, nil, fewSizes...)
		if err := c.fit(); err != nil {
			t.Fatal(err)
		}
		if !near(c.E, want.E, 1e-3) || !near(c.Alpha, want.Alpha, 1e-3) || !near(c.A/want.A, 1, 2e-2) || c.RMS > 1e-6 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// The order of points does not matter; α stays within its bounds; the error is the root of the mean square of the
// points' distances.
func TestScalingFit(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 7))
	for _, alpha := range []float64{0.001, 0.02, 0.4, 3, 9} {
		c := curveOf("a", 1, 2, alpha, 1e-4, g, 1, 1.5, 2, 3, 5)
		mixed := ScalingCurve{Points: []ScalingPoint{c.Points[3], c.Points[0], c.Points[4], c.Points[2], c.Points[1]}}
		if err := errors.Join(c.fit(), mixed.fit()); err != nil {
			t.Fatal(err)
		}
		if mixed.E != c.E || mixed.A != c.A || mixed.Alpha != c.Alpha || !slices.Equal(mixed.Points, c.Points) {
			t.Errorf("α = %g: %+v, in another order %+v", alpha, c, mixed)
		}
		if c.Alpha < leastAlpha || c.Alpha > mostAlpha || alpha > 0.1 && alpha < 4 && !near(c.Alpha/alpha, 1, 0.02) {
			t.Errorf("α = %g was fitted as %g", alpha, c.Alpha)
		}
		squares := 0.0
		for _, p := range c.Points {
			squares += math.Pow(p.Loss-c.At(p.X), 2) / 5
		}
		if !near(c.RMS/math.Sqrt(squares), 1, 1e-6) {
			t.Errorf("α = %g: an error of %g, want %g", alpha, c.RMS, math.Sqrt(squares))
		}
	}
}

// A fitted curve is the best of its neighbours with E of 0 or more, also where E would be negative.
func TestScalingIsLeastSquares(t *testing.T) {
	g := rand.New(rand.NewPCG(8, 8))
	for _, e := range []float64{-0.9, -0.2, 0, 0.3, 2} {
		c := curveOf("a", e, 3, 0.3, 0.01, g, 1, 2, 4, 8, 16, 32)
		if err := c.fit(); err != nil {
			t.Fatal(err)
		}
		squares := func(e, a, alpha float64) (sum float64) {
			for _, p := range c.Points {
				sum += math.Pow(p.Loss-e-a*math.Pow(p.X, -alpha), 2)
			}
			return sum
		}
		best := squares(c.E, c.A, c.Alpha)
		if c.E < 0 || e < -0.1 && c.E != 0 || !near(math.Sqrt(best/6)/c.RMS, 1, 1e-6) {
			t.Errorf("E = %g: %+v, squares of %g", e, c, best)
		}
		for _, by := range []float64{-0.02, 0.02} {
			for what, other := range map[string]float64{"E": squares(max(0, c.E+by), c.A, c.Alpha),
				"A": squares(c.E, c.A*(1+by), c.Alpha), "alpha": squares(c.E, c.A, c.Alpha*(1+by))} {
				if other < best {
					t.Errorf("E = %g: another %s gives squares of %g, less than %g", e, what, other, best)
				}
			}
		}
	}
}

// Where a curve has a loss, and that it never has one at or below its end, or one so near it that x is no number.
func TestScalingInverse(t *testing.T) {
	for _, c := range []struct {
		alpha, loss, want float64
	}{{1, 4, 1}, {0.5, 2.5, 16}, {2, 1.02, 10}, {1, 1, 0}, {1, 0, 0}, {0.5, -3, 0}, {0.01, 1.000001, 0},
		{1, math.NaN(), 0}} {
		curve := ScalingCurve{E: 1, A: 2, Alpha: c.alpha}
		if c.alpha == 1 {
			curve.A = 3
		} else if c.alpha == 0.5 {
			curve.A = 6
		}
		if x, ok := curve.inverse(c.loss); ok != (c.want > 0) || ok && !near(x, c.want, 1e-9) {
			t.Errorf("loss %g of α = %g is at %g, %v; want %g", c.loss, c.alpha, x, ok, c.want)
		}
	}
}

// Drawn errors leave residuals as large as the curve's own; their innovations have the mean 0 and the first error the
// spread of the others.
func TestDrawnErrors(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 1))
	xs := make([]float64, 12)
	for i := range xs {
		xs[i] = float64(i + 1)
	}
	for _, n := range []int{5, 12} {
		for _, rho := range []float64{0, 0.6} {
			c := correlated(curveOf("a", 2, 3, 0.7, 0, nil, xs[:n]...), rho, 0.01, g)
			if err := c.fit(); err != nil {
				t.Fatal(err)
			}
			c.Rho = rho
			d := c.newErrors(g)
			mean, x := 0.0, c.residuals()
			for i, u := range d.u {
				mean += u / float64(n)
				want := x[i] * math.Sqrt(1-rho*rho)
				if i > 0 {
					want = x[i] - rho*x[i-1]
				}
				if i > 0 && !near(u-d.u[0], want-x[0]*math.Sqrt(1-rho*rho), 1e-12) {
					t.Errorf("innovation %d is %g", i, u)
				}
			}
			if !near(mean, 0, 1e-12) {
				t.Errorf("innovations have the mean %g", mean)
			}
			const draws = 300
			squares := 0.0
			for range draws {
				y := d.redrawn(g)
				squares += y.RMS * y.RMS / draws
			}
			if !near(math.Sqrt(squares)/c.RMS, 1, 0.15) || d.wide < 1.05 {
				t.Errorf("%d points, ρ = %g: residuals of %g, want %g (errors are %g times as wide)", n, rho,
					math.Sqrt(squares), c.RMS, d.wide)
			}
		}
	}
}

// The same curve shifted to 0.6 of the size needs 0.6 of the size.
func TestScalingRatio(t *testing.T) {
	const alpha, ratio = 0.35, 0.6
	exact := func(name string, a float64) ScalingCurve { return curveOf(name, 2, a, alpha, 0, nil, fewSizes...) }
	r, err := Scaling("parameters", []ScalingCurve{exact("base", 100), exact("other", 100*math.Pow(ratio, alpha))}, 0,
		1)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Matches[0]; !near(m.Ratio, ratio, 1e-3) || m.At != 3.2e7 || !near(m.Low, ratio, 1e-2) ||
		!near(m.High, ratio, 1e-2) {
		t.Errorf("%+v", m)
	}
	// With noise, about 95 of 100 intervals hold the true ratio.
	held, noise := 0, rand.New(rand.NewPCG(4, 4))
	const trials = 12
	for k := range trials {
		a := curveOf("base", 2, 100, alpha, 0.002, noise, append(fewSizes, 6.4e7, 1.28e8)...)
		b := curveOf("other", 2, 100*math.Pow(ratio, alpha), alpha, 0.002, noise, append(fewSizes, 6.4e7, 1.28e8)...)
		r, err := Scaling("parameters", []ScalingCurve{a, b}, 0, uint64(k))
		if err != nil {
			t.Fatal(err)
		}
		m := r.Matches[0]
		if m.Low < ratio && ratio < m.High {
			held++
		}
		if m.High-m.Low > 0.5 || m.Low >= m.High {
			t.Errorf("trial %d: interval %g to %g", k, m.Low, m.High)
		}
	}
	if held < trials*8/10 {
		t.Errorf("%d of %d intervals hold the true ratio", held, trials)
	}
}

func TestScalingRefuses(t *testing.T) {
	point := func(x, l float64) ScalingPoint { return ScalingPoint{x, l} }
	for want, points := range map[string][]ScalingPoint{
		"at 2 different places": {point(1, 3), point(1, 3), point(2, 2)},
		"positive":              {point(0, 3), point(1, 2), point(2, 1)},
		"finite":                {point(3, math.NaN()), point(1, 2), point(2, 1)},
		"does not fall":         {point(1, 2), point(2, 2.5), point(4, 2.1)},
		"loss does not fall":    {point(4, 2), point(2, 1.5), point(1, 2)},
	} {
		if _, err := Scaling("tokens", []ScalingCurve{{Name: "a", Points: points}}, 0, 1); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Scaling("tokens", nil, 0, 1); err == nil {
		t.Error("of nothing: no error")
	}
	// A challenger whose curve ends above has no match.
	high := curveOf("high", 3, 100, 0.35, 0, nil, fewSizes...)
	r, err := Scaling("tokens", []ScalingCurve{curveOf("low", 1, 100, 0.35, 0, nil, fewSizes...), high}, 0, 1)
	if err != nil || len(r.Matches) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The paper's Figure 3 at the paper's own points: DIFF after 160B tokens is where the Transformer is after 251B, and
// 6.8B parameters of DIFF do what 11B do.
func TestScalingAtThePapersPoint(t *testing.T) {
	of := func(name string, x, loss []float64) ScalingCurve {
		c := ScalingCurve{Name: name}
		for i := range x {
			c.Points = append(c.Points, ScalingPoint{1e9 * x[i], loss[i]})
		}
		return c
	}
	tokens := []float64{40, 80, 120, 160, 200, 240, 280, 320, 360}
	sizes := []float64{0.8335, 1.4132, 2.7943, 6.8365, 13.1226}
	for _, x := range []struct {
		by         string
		at, want   float64
		base, diff ScalingCurve
	}{
		{"tokens", 160e9, 251e9, of("t", tokens,
			[]float64{2.947, 2.689, 2.618, 2.580, 2.555, 2.540, 2.544, 2.510, 2.508}),
			of("d", tokens, []float64{2.855, 2.636, 2.573, 2.535, 2.518, 2.510, 2.490, 2.478, 2.474})},
		{"parameters", 6.8365e9, 11e9, of("t", sizes, []float64{3.170, 3.087, 3.003, 2.961, 2.899}),
			of("d", sizes, []float64{3.138, 3.062, 2.977, 2.934, 2.872})},
	} {
		r, err := Scaling(x.by, []ScalingCurve{x.base, x.diff}, x.at, 1)
		if err != nil || len(r.Matches) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if m := r.Matches[0]; m.Needs != x.at || !near(m.At/x.want, 1, 0.02) || !near(m.Ratio, x.at/m.At, 1e-12) ||
			!(m.Low < m.Ratio && m.Ratio < m.High) {
			t.Errorf("%s: %+v, want %g", x.by, m, x.want)
		}
	}
	for _, at := range []float64{-1, math.Inf(1), math.NaN()} {
		if _, err := Scaling("tokens", []ScalingCurve{curveOf("a", 1, 100, 0.35, 0, nil, fewSizes...)}, at,
			1); err == nil {
			t.Errorf("at %g: no error", at)
		}
	}
}

// correlated adds errors with e_i = ρ·e_(i−1) + u_i to a curve.
func correlated(c ScalingCurve, rho, noise float64, g *rand.Rand) ScalingCurve {
	e := noise * g.NormFloat64()
	for i := range c.Points {
		c.Points[i].Loss += e
		e = rho*e + noise*math.Sqrt(1-rho*rho)*g.NormFloat64()
	}
	return c
}

// coverage is the share of intervals that hold the true ratio, for curves by tokens or by parameters.
func scalingCoverage(t *testing.T, by string, rho float64, n, trials int) float64 {
	const alpha, ratio = 0.6, 0.65
	g := rand.New(rand.NewPCG(9, uint64(n)))
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = 1e8 * float64(i+1)
	}
	held := 0
	for k := range trials {
		a := correlated(curveOf("base", 2, 1e4, alpha, 0, nil, xs...), rho, 0.003, g)
		b := correlated(curveOf("other", 2, 1e4*math.Pow(ratio, alpha), alpha, 0, nil, xs...), rho, 0.003, g)
		r, err := Scaling(by, []ScalingCurve{a, b}, xs[n/2], uint64(k))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Matches) == 1 && r.Matches[0].Low < ratio && ratio < r.Matches[0].High {
			held++
		}
	}
	return float64(held) / float64(trials)
}

// Errors that are correlated along a run make an interval that takes them for independent far too narrow; the one by
// tokens knows.
func TestScalingRespectsCorrelation(t *testing.T) {
	trials := 40
	if testing.Short() {
		trials = 20
	}
	aware, naive := scalingCoverage(t, "tokens", 0.7, 24, trials), scalingCoverage(t, "parameters", 0.7, 24, trials)
	t.Logf("of 95 %% intervals %.0f %% hold the truth, %.0f %% where errors are taken for independent",
		100*aware, 100*naive)
	if aware < 0.85 || naive > aware-0.1 {
		t.Errorf("coverage %g, and %g without the correlation", aware, naive)
	}
}
