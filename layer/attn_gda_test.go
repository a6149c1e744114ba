package layer

import (
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// GDA is DIFF whose second queries are equal within a group: with that group's rows of W_Q repeated for every head,
// DIFF gives the same outputs, and its gradient of the shared rows is the sum over their copies. Its truth from outside
// is testdata/gda.
func TestGDAIsDiffWithSharedQueries(t *testing.T) {
	for _, groups := range []int{1, 2, 4} {
		c := AttnConfig{Arch: &gdaArch, Layer: 1, Dim: 10, Heads: 4, Groups: groups, HeadDim: 4,
			HeadNorm: HeadNormAffine, HeadNormEps: 1e-5, LambdaInit: LambdaSchedule(1), LambdaStd: 0.1, OutGain: 1}
		g := runAttention(t, c, nil)
		c.Arch = &diffArch
		d := runAttention(t, c, func(ps *ParamSet) { repeatQueries(ps, g.ps, c) })
		near(t, "y", g.y, d.y)
		near(t, "dx", g.dx, d.dx)
		got, want := readAll(g.dev, g.ps.Lookup("qkv.weight").G), readAll(d.dev, d.ps.Lookup("qkv.weight").G)
		width, size := c.HeadDim*c.Dim, c.Heads/groups
		for q := range c.Heads + groups {
			sum := make([]float64, width)
			for h := range c.Heads {
				for m := range 2 {
					if gdaQuery(&AttnConfig{Heads: c.Heads, Groups: groups}, h, m) == q {
						for i, x := range want[(2*h+m)*width:][:width] {
							sum[i] += x
						}
					}
				}
			}
			near(t, "dW_Q", got[q*width:][:width], sum)
		}
		if n := g.ps.Lookup("qkv.weight").Rows; n != (4+groups+4*groups)*c.HeadDim {
			t.Errorf("groups of %d: %d rows of W_QKV", size, n)
		}
	}
}

// attentionRun is a layer after Forward and Backward.
type attentionRun struct {
	dev   device.Device
	ps    *ParamSet
	y, dx []float64
}

// runAttention draws weights, lets change replace them, and runs both directions on rows that are the same for every
// layer.
func runAttention(t *testing.T, c AttnConfig, change func(ps *ParamSet)) attentionRun {
	t.Helper()
	r := newRig(t, 2, 7)
	c.Rope = NewRope(r.dev, Frequencies(c.HeadDim, 100), 7, 1, true)
	l := NewAttention(r.ps, c)
	x, dy := r.random(14, c.Dim), r.random(14, c.Dim)
	r.start()
	if change != nil {
		change(r.ps)
	}
	p := r.pass()
	y := readAll(r.dev, l.Forward(p, x, nil))
	dx := device.Empty(r.dev, tensor.F64, 14, c.Dim)
	l.Backward(p, dx, dy)
	return attentionRun{r.dev, r.ps, y, readAll(r.dev, dx)}
}

// repeatQueries gives DIFF the weights of GDA, the rows of shared queries once for every head.
func repeatQueries(diff, gda *ParamSet, c AttnConfig) {
	d := ref.New()
	for _, p := range diff.List {
		x := readAll(d, gda.Lookup(p.Name).W)
		if p.Name == "qkv.weight" {
			width := c.HeadDim * c.Dim
			var w []float64
			for h := range c.Heads {
				for m := range 2 {
					w = append(w, x[gdaQuery(&c, h, m)*width:][:width]...)
				}
			}
			x = append(w, x[(c.Heads+c.Groups)*width:]...)
		}
		device.WriteFloats(d, p.W, x)
	}
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if d := got[i] - want[i]; !(d < 1e-12 && d > -1e-12) {
			t.Fatalf("%s[%d]: %.15g, want %.15g", what, i, got[i], want[i])
		}
	}
}

// Groups of four heads where four divides them, else of the most below four that does.
func TestGDAGroups(t *testing.T) {
	for heads, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 5, 6: 2, 8: 2, 10: 5, 16: 4, 20: 5} {
		if got := gdaArch.DefaultGroups(heads); got != want {
			t.Errorf("%d heads: %d groups, want %d", heads, got, want)
		}
	}
}
