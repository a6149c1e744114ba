package eval

import "math"

// Mean is an average with its standard error over n samples.
type Mean struct {
	Value  float64 `json:"value"`
	StdErr float64 `json:"stderr"`
	N      int     `json:"n"`
}

// Exp converts the mean of a logarithm to the quantity itself: d exp(x) = exp(x) dx.
func (m Mean) Exp() Mean {
	v := math.Exp(m.Value)
	return Mean{Value: v, StdErr: v * m.StdErr, N: m.N}
}

// Scaled multiplies value and error.
func (m Mean) Scaled(f float64) Mean {
	return Mean{Value: f * m.Value, StdErr: math.Abs(f) * m.StdErr, N: m.N}
}

// Ratio accumulates Σx/Σt over samples. With t = 1 it is a plain mean.
type Ratio struct {
	n                int
	x, t, xx, xt, tt float64
}

// Add takes one sample.
func (r *Ratio) Add(x, t float64) {
	r.n++
	r.x += x
	r.t += t
	r.xx += x * x
	r.xt += x * t
	r.tt += t * t
}

// Mean is v = Σx/Σt; its error is that of the mean residual x − v·t, divided by the mean t (first order).
func (r *Ratio) Mean() Mean {
	if r.t == 0 {
		return Mean{N: r.n}
	}
	n, v := float64(r.n), r.x/r.t
	m := Mean{Value: v, N: r.n}
	if r.n > 1 {
		residual := max(0, r.xx-2*v*r.xt+v*v*r.tt)
		m.StdErr = math.Sqrt(residual/(n*(n-1))) / math.Abs(r.t/n)
	}
	return m
}

// MeanOf is the weighted mean of a value over the samples that have it: v = Σ w·x / Σ w, with the error of a ratio over
// clusters.
func MeanOf(answers []Answer, name string) Mean {
	var sums clusters
	for i := range answers {
		s := &answers[i]
		if x, ok := s.Values[name]; ok {
			w := s.Weight(name)
			sums.add(s.cluster(), w*x, w)
		}
	}
	m := sums.ratio().Mean()
	m.N = sums.n
	return m
}

// clusters sums values and weights of samples in the same cluster, in order of first appearance.
type clusters struct {
	n    int
	at   map[string]int
	keys []string
	x, w []float64
}

func (c *clusters) add(key string, x, w float64) {
	i, ok := c.at[key]
	if !ok {
		if c.at == nil {
			c.at = map[string]int{}
		}
		i = len(c.x)
		c.at[key] = i
		c.keys, c.x, c.w = append(c.keys, key), append(c.x, 0), append(c.w, 0)
	}
	c.n++
	c.x[i] += x
	c.w[i] += w
}

func (c *clusters) ratio() *Ratio {
	var r Ratio
	for i := range c.x {
		r.Add(c.x[i], c.w[i])
	}
	return &r
}

// Finite reports whether x is a finite number.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
