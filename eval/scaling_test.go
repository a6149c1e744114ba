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
	r, err := Scaling("parameters", []ScalingCurve{exact("base", 100), exact("other", 100*math.Pow(ratio, alpha))}, 1)
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
		r, err := Scaling("parameters", []ScalingCurve{a, b}, uint64(k))
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
		"different sizes": {point(1, 3), point(1, 3), point(2, 2)},
		"positive":        {point(0, 3), point(1, 2), point(2, 1)},
		"finite":          {point(3, math.NaN()), point(1, 2), point(2, 1)},
		"does not fall":   {point(1, 2), point(2, 2.5), point(4, 2.1)},
	} {
		if _, err := Scaling("tokens", []ScalingCurve{{Name: "a", Points: points}}, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Scaling("tokens", nil, 1); err == nil {
		t.Error("of nothing: no error")
	}
	// A challenger whose curve ends above has no match.
	high := curveOf("high", 3, 100, 0.35, 0, nil, fewSizes...)
	r, err := Scaling("tokens", []ScalingCurve{curveOf("low", 1, 100, 0.35, 0, nil, fewSizes...), high}, 1)
	if err != nil || len(r.Matches) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
