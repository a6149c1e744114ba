package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// match compares a challenger with the first curve, with a bootstrap interval from the errors of both curves.
func (r *ScalingResult) match(other *ScalingCurve, seed uint64) (ScalingMatch, bool) {
	first := &r.Curves[0]
	if r.By == "tokens" {
		first.Rho, other.Rho = first.correlation(), other.correlation()
	}
	m, ok := r.meet(first, other)
	if !ok || min(len(first.Points), len(other.Points)) < LeastForInterval {
		return m, ok
	}
	g := rand.New(rand.NewPCG(seed, 0x5ca1e))
	a, b := first.newErrors(g), other.newErrors(g)
	var ratios []float64
	for range BootstrapDraws {
		if x, ok := r.meet(a.redrawn(g), b.redrawn(g)); ok {
			ratios = append(ratios, x.Ratio)
		}
	}
	m.take(ratios)
	return m, true
}

// take sets the interval from the ratios of the draws in which the loss was reached. If half of them or more are
// missing there is none: it would cover only the draws that match.
func (m *ScalingMatch) take(ratios []float64) {
	if m.Draws = len(ratios); m.Draws > BootstrapDraws/2 {
		slices.Sort(ratios)
		m.Low, m.High = Quantile(ratios, 0.025), Quantile(ratios, 0.975)
	}
}

// meet finds where two curves have the same loss: the challenger's x is r.At or, if that is 0, the first's is its
// largest.
func (r *ScalingResult) meet(first, other *ScalingCurve) (m ScalingMatch, ok bool) {
	m = ScalingMatch{Name: other.Name}
	if r.At > 0 {
		m.Needs, m.Loss = r.At, other.At(r.At)
		m.At, ok = first.inverse(m.Loss)
	} else {
		m.At = first.Points[len(first.Points)-1].X
		m.Loss = first.At(m.At)
		m.Needs, ok = other.inverse(m.Loss)
	}
	m.Ratio = m.Needs / m.At
	return m, ok
}

// residuals are the points' distances from the curve, in order of x.
func (c *ScalingCurve) residuals() []float64 {
	out := make([]float64, len(c.Points))
	for i, p := range c.Points {
		out[i] = p.Loss - c.At(p.X)
	}
	return out
}

// correlation is that of adjacent residuals, ρ of a first-order autoregression. A curve with three parameters absorbs
// the slow part of the errors: the plain estimate is too low by about (3 + 5ρ)/n, which is added back, up to 0.9.
func (c *ScalingCurve) correlation() float64 {
	x := c.residuals()
	n := float64(len(x))
	num, den := 0.0, 0.0
	for i := range x {
		den += x[i] * x[i]
		if i > 0 {
			num += x[i] * x[i-1]
		}
	}
	if den == 0 || n < 8 { // too few to estimate
		return 0
	}
	return min(max((num/den+3/n)/(1-5/n), 0), 0.9)
}

// curveErrors draws losses with errors like those of a curve: e_i = ρ·e_(i−1) + u_i, with innovations u drawn with
// replacement from those of the residuals. With ρ = 0 this is a bootstrap of the residuals.
type curveErrors struct {
	*ScalingCurve
	u    []float64
	keep float64 // √(1−ρ²): spread of an innovation relative to an error
	wide float64 // ratio of errors to residuals, which are smaller because of the fit
}

// newErrors decomposes a curve's residuals. The shrinkage by the fit is estimated by fitting to drawn errors.
func (c *ScalingCurve) newErrors(g *rand.Rand) *curveErrors {
	x := c.residuals()
	d := &curveErrors{ScalingCurve: c, u: make([]float64, len(x)), keep: math.Sqrt(1 - c.Rho*c.Rho), wide: 1}
	d.u[0] = d.keep * x[0]
	mean := d.u[0]
	for i := 1; i < len(x); i++ {
		d.u[i] = x[i] - c.Rho*x[i-1]
		mean += d.u[i]
	}
	for i := range d.u {
		d.u[i] -= mean / float64(len(x))
	}
	const draws = 60
	left := 0.0
	for range draws {
		y := d.redrawn(g)
		left += y.RMS * y.RMS / draws
	}
	if left > 0 {
		d.wide = min(c.RMS/math.Sqrt(left), 5) // residuals of drawn errors are then as large as ours
	}
	return d
}

// redrawn is the curve fitted to new losses.
func (d *curveErrors) redrawn(g *rand.Rand) *ScalingCurve {
	n := len(d.u)
	out := &ScalingCurve{Name: d.Name, Points: make([]ScalingPoint, n)}
	e := d.wide * d.u[g.IntN(n)] / d.keep // with the process's own spread
	for i, p := range d.Points {
		if i > 0 {
			e = d.Rho*e + d.wide*d.u[g.IntN(n)]
		}
		out.Points[i] = ScalingPoint{p.X, d.At(p.X) + e}
	}
	out.solve()
	return out
}
