package eval

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ScalingPoint is one measurement: the held-out loss at x parameters or training tokens.
type ScalingPoint struct {
	X    float64 `json:"x"`
	Loss float64 `json:"loss"`
}

// ScalingCurve is the measurements of one architecture and the fitted curve
//
//	L(x) = E + A·x^−α
//
// by least squares. With three points the curve passes through all of them and its error is unknown.
type ScalingCurve struct {
	Name   string         `json:"name"`
	Points []ScalingPoint `json:"points"`
	E      float64        `json:"e"`
	A      float64        `json:"a"`
	Alpha  float64        `json:"alpha"`
	RMS    float64        `json:"rms"`           // of the residuals
	Rho    float64        `json:"rho,omitempty"` // correlation of neighbouring errors, of points of one run
}

// ScalingResult is the curves by parameters or by tokens; the others are compared with the first.
type ScalingResult struct {
	By      string         `json:"by"`           // "parameters" or "tokens"
	At      float64        `json:"at,omitempty"` // a challenger's x to compare at; 0: the first's largest
	Curves  []ScalingCurve `json:"curves"`
	Matches []ScalingMatch `json:"matches"`
}

// ScalingMatch is what a challenger needs for the loss that the first has at At: Needs, or the fraction Ratio of At.
// Low and High are the ends of a 95 % bootstrap interval of Ratio (both 0 if there are too few points). A loss that the
// challenger's curve never reaches has no match.
type ScalingMatch struct {
	Name  string  `json:"name"`
	At    float64 `json:"at"`
	Loss  float64 `json:"loss"`
	Needs float64 `json:"needs"`
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	Draws int     `json:"draws"` // of the bootstrap in which the loss was reached
}

// Sizes of the bootstrap.
const (
	BootstrapDraws   = 500
	LeastForInterval = 4 // points: three numbers are fitted, and a residual must remain
)

// Scaling fits a curve to each architecture's points and compares them at at: what the first needs for the loss that a
// challenger has there. With at = 0 it is what challengers need for the loss that the first has at its largest x. By
// tokens, the points of a curve come from one run, and consecutive errors may be correlated.
func Scaling(by string, curves []ScalingCurve, at float64, seed uint64) (*ScalingResult, error) {
	if len(curves) == 0 {
		return nil, errors.New("there are no runs to fit")
	}
	if at < 0 || !Finite(at) {
		return nil, fmt.Errorf("the point to compare at is %g, must be positive", at)
	}
	r := &ScalingResult{By: by, At: at}
	for _, c := range curves {
		if err := c.fit(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		r.Curves = append(r.Curves, c)
	}
	for i := range r.Curves[1:] {
		if m, ok := r.match(&r.Curves[i+1], seed+uint64(i)); ok {
			r.Matches = append(r.Matches, m)
		}
	}
	return r, nil
}

// Check validates a result that was read from a file.
func (r *ScalingResult) Check() error {
	if len(r.Curves) == 0 {
		return errors.New("it has no curves")
	}
	for _, c := range r.Curves {
		if len(c.Points) == 0 || !(c.Points[0].X > 0) {
			return fmt.Errorf("%s: it has no points", c.Name)
		}
	}
	return nil
}

// At is the curve's loss.
func (c *ScalingCurve) At(x float64) float64 { return c.E + c.A*math.Pow(x, -c.Alpha) }

// inverse is the x of a loss; ok is false if the curve never reaches it.
func (c *ScalingCurve) inverse(loss float64) (x float64, ok bool) {
	y := (loss - c.E) / c.A
	x = math.Pow(y, -1/c.Alpha)
	return x, y > 0 && Finite(x)
}

// fit checks and sorts the points and finds E, A and α. For each α the other two are a straight line in x^−α, so the
// search is one-dimensional: first over a grid, then by golden section.
func (c *ScalingCurve) fit() error {
	slices.SortFunc(c.Points, func(a, b ScalingPoint) int { return cmp.Compare(a.X, b.X) })
	different := 0
	for i, p := range c.Points {
		if !(p.X > 0) || !Finite(p.Loss) {
			return fmt.Errorf("a point has x = %g and a loss of %g; x must be positive and the loss finite", p.X,
				p.Loss)
		}
		if i == 0 || p.X > c.Points[i-1].X*1.001 {
			different++
		}
	}
	if different < 3 {
		return fmt.Errorf("it has losses at %d different places of the x axis; a curve of three numbers needs 3",
			different)
	}
	if c.Points[0].Loss <= c.Points[len(c.Points)-1].Loss {
		return errors.New("the loss does not fall from the smallest to the largest; there is no curve to fit")
	}
	c.solve()
	return nil
}

const leastAlpha, mostAlpha = 0.01, 4

func (c *ScalingCurve) solve() {
	unit := math.Sqrt(c.Points[0].X * c.Points[len(c.Points)-1].X) // x^−α of billions would be lost next to 1
	logs, xs := make([]float64, len(c.Points)), make([]float64, len(c.Points))
	for i, p := range c.Points {
		logs[i] = math.Log(p.X / unit)
	}
	cost := func(logAlpha float64) float64 { return c.line(math.Exp(logAlpha), logs, xs) }
	const cells = 48
	lo, hi := math.Log(leastAlpha), math.Log(mostAlpha)
	best, least, step := lo, math.Inf(1), (hi-lo)/cells
	for i := range cells + 1 {
		x := lo + step*float64(i)
		if y := cost(x); y < least {
			best, least = x, y
		}
	}
	c.Alpha = math.Exp(goldenSection(cost, max(lo, best-step), min(hi, best+step)))
	c.RMS = math.Sqrt(c.line(c.Alpha, logs, xs) / float64(len(c.Points)))
	c.A *= math.Pow(unit, c.Alpha)
}

// goldenSection finds the minimum of a function between a and b, to a millionth of their distance.
func goldenSection(f func(float64) float64, a, b float64) float64 {
	const golden = 0.6180339887498949
	x, y := b-golden*(b-a), a+golden*(b-a)
	fx, fy := f(x), f(y)
	for range 29 {
		if fx < fy {
			b, y, fy = y, x, fx
			x = b - golden*(b-a)
			fx = f(x)
		} else {
			a, x, fx = x, y, fy
			y = a + golden*(b-a)
			fy = f(y)
		}
	}
	return (a + b) / 2
}

// line sets E and A of L = E + A·(x/unit)^−α and returns the sum of squares; logs are those of x/unit, xs is scratch. A
// negative E is impossible for a loss, so E is at least 0.
func (c *ScalingCurve) line(alpha float64, logs, xs []float64) float64 {
	n, sx, sy, sxx, sxy := float64(len(c.Points)), 0.0, 0.0, 0.0, 0.0
	for i, p := range c.Points {
		x := math.Exp(-alpha * logs[i])
		xs[i] = x
		sx, sy, sxx, sxy = sx+x, sy+p.Loss, sxx+x*x, sxy+x*p.Loss
	}
	c.A = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	c.E = (sy - c.A*sx) / n
	if c.E < 0 {
		c.E, c.A = 0, sxy/sxx
	}
	sum := 0.0
	for i, p := range c.Points {
		d := p.Loss - c.E - c.A*xs[i]
		sum += d * d
	}
	return sum
}

// Quantile of sorted values, interpolated linearly.
func Quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	if i < 0 {
		return sorted[0]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
