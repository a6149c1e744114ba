package eval

import (
	"math"
	"math/rand/v2"
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
	for _, want := range []ScalingCurve{{E: 2.8, A: 120, Alpha: 0.4}, {E: 0.5, A: 9, Alpha: 0.1}, {E: 1, A: 3e5, Alpha: 1.1}} {
		c := curveOf("a", want.E, want.A, want.Alpha, 0, nil, fewSizes...)
		if err := c.fit(); err != nil {
			t.Fatal(err)
		}
		if !near(c.E, want.E, 1e-3) || !near(c.Alpha, want.Alpha, 1e-3) || !near(c.A/want.A, 1, 2e-2) || c.RMS > 1e-6 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}

// The same curve shifted to 0.6 of the size needs 0.6 of the size.
func TestScalingRatio(t *testing.T) {
	const alpha, ratio = 0.35, 0.6
	exact := func(name string, a float64) ScalingCurve { return curveOf(name, 2, a, alpha, 0, nil, fewSizes...) }
	r, err := Scaling("parameters", []ScalingCurve{exact("base", 100), exact("other", 100*math.Pow(ratio, alpha))}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Matches[0]; !near(m.Ratio, ratio, 1e-3) || m.At != 3.2e7 || !near(m.Low, ratio, 1e-2) || !near(m.High, ratio, 1e-2) {
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
	} {
		if _, err := Scaling("tokens", []ScalingCurve{{Name: "a", Points: points}}, 0, 1); err == nil || !strings.Contains(err.Error(), want) {
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

// The paper's Figure 3 at the paper's own points: DIFF after 160B tokens is where the Transformer is after 251B, and 6.8B parameters of
// DIFF do what 11B do.
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
		{"tokens", 160e9, 251e9, of("t", tokens, []float64{2.947, 2.689, 2.618, 2.580, 2.555, 2.540, 2.544, 2.510, 2.508}),
			of("d", tokens, []float64{2.855, 2.636, 2.573, 2.535, 2.518, 2.510, 2.490, 2.478, 2.474})},
		{"parameters", 6.8365e9, 11e9, of("t", sizes, []float64{3.170, 3.087, 3.003, 2.961, 2.899}), of("d", sizes, []float64{3.138, 3.062, 2.977, 2.934, 2.872})},
	} {
		r, err := Scaling(x.by, []ScalingCurve{x.base, x.diff}, x.at, 1)
		if err != nil || len(r.Matches) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		if m := r.Matches[0]; m.Needs != x.at || !near(m.At/x.want, 1, 0.02) || !near(m.Ratio, x.at/m.At, 1e-12) || !(m.Low < m.Ratio && m.Ratio < m.High) {
			t.Errorf("%s: %+v, want %g", x.by, m, x.want)
		}
	}
	if _, err := Scaling("tokens", []ScalingCurve{curveOf("a", 1, 100, 0.35, 0, nil, fewSizes...)}, -1, 1); err == nil {
		t.Error("a negative point: no error")
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

// Errors that are correlated along a run make an interval that takes them for independent far too narrow; the one by tokens knows.
func TestScalingRespectsCorrelation(t *testing.T) {
	trials := 40
	if testing.Short() {
		trials = 20
	}
	aware, naive := scalingCoverage(t, "tokens", 0.7, 24, trials), scalingCoverage(t, "parameters", 0.7, 24, trials)
	t.Logf("of 95 %% intervals %.0f %% hold the truth, %.0f %% where errors are taken for independent", 100*aware, 100*naive)
	if aware < 0.85 || naive > aware-0.1 {
		t.Errorf("coverage %g, and %g without the correlation", aware, naive)
	}
}
