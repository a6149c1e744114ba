package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
)

// RunLong checks attention at sequences of n tokens, where a full oracle would take minutes: all outputs must be
// finite, the same twice, and some rows and keys are computed by the formulas. Caches of n tokens too.
func RunLong(t *testing.T, d device.Device, n int) {
	for _, s := range []attnSpec{
		{b: 1, t: n, h: 2, g: 1, d: 64, dv: 64, norm: "off"},
		{b: 1, t: n - 57, h: 2, g: 2, d: 128, dv: 128, norm: "off"},
		{b: 1, t: n - 57, h: 2, g: 1, d: 64, dv: 128, norm: "off", keys: 2, scalar: true},
		{b: 1, t: n, h: 1, g: 1, d: 128, dv: 256, norm: "off", keys: 2, scalar: true},
		{b: 1, t: n - 57, h: 2, g: 1, d: 64, dv: 64, norm: "off", keys: 1},
	} {
		t.Run(s.String(), func(t *testing.T) { runLong(t, d, s) })
	}
	for _, s := range []attnSpec{
		{h: 2, g: 1, d: 64, dv: 64, norm: "off"},
		{h: 2, g: 1, d: 128, dv: 256, norm: "plain", keys: 2, scalar: true},
		{h: 2, g: 1, d: 64, dv: 64, norm: "off", keys: 1},
	} {
		c := cachedCase(s, step(16, int32(n-1), int32(n/2), 0, int32(n-57)))
		t.Run(c.name, func(t *testing.T) { c.conform(t, d, ref.New()) })
	}
}

// runLong runs forward, then backward on what forward gave.
func runLong(t *testing.T, d device.Device, s attnSpec) {
	fwd, bwd := attentionCase(s), attentionBackwardCase(s)
	if s.keys > 0 {
		fwd, bwd = diffattentionCase(s), diffattentionBackwardCase(s)
	}
	// Sharper than usual: at this length a mean of everything would be almost zero.
	for _, a := range []string{"q", "k"} {
		normal(0, 1.5)(fwd.named(a))
	}
	v := fwd.values(d.Types())
	results := fwd.twice(t, d, v)
	bwd.derive = nil
	w := bwd.values(d.Types())
	bwd.match(fwd, func(i, j int) {
		w[i] = v[j]
		if fwd.args[j].role == out {
			w[i] = results[j]
		}
	})
	grads := bwd.twice(t, d, w)
	l := &long{attnSpec: s, maps: 1, x: map[string][]float64{}}
	if s.keys > 0 {
		l.maps = 2
	}
	l.take(fwd, v, results)
	l.take(bwd, w, grads)
	l.checkRows(t, d, fwd, bwd)
	l.checkKeys(t, d, bwd)
}

func (c *Case) named(name string) *arg {
	return &c.args[slices.IndexFunc(c.args, func(a arg) bool { return a.name == name })]
}

// twice runs the case two times, requires the same bits, and returns the outputs as numbers, none of which may be NaN.
func (c *Case) twice(t *testing.T, d device.Device, v [][]float64) [][]float64 {
	t.Helper()
	bits := c.place(d, v, false).call(t).bits()
	c.sameBits(t, c.place(d, v, false).call(t).bits(), bits, "a second run")
	all := make([][]float64, len(bits))
	for i, b := range bits {
		if b == nil {
			continue
		}
		all[i] = decode(c.args[i].dtype(d.Types()), b)
		if at := slices.IndexFunc(all[i], math.IsNaN); at >= 0 {
			t.Errorf("%s: element %d of %s is NaN", c.name, at, c.args[i].name)
		}
	}
	return all
}

// long is an attention with its results and gradients as numbers, by the arguments' names.
type long struct {
	attnSpec
	maps int
	x    map[string][]float64
}

func (l *long) take(c *Case, in, out [][]float64) {
	for i := range c.args {
		l.x[c.args[i].name] = in[i]
		if out[i] != nil {
			l.x[c.args[i].name] = out[i]
		}
	}
}

// at is head number head, width wide, of row n of a tensor of heads heads.
func (l *long) at(name string, n, head, heads, width int) []float64 {
	return l.x[name][(n*heads+head)*width:][:width]
}

func (l *long) key(s, g, i int) []float64 {
	keys := max(1, l.keys)
	return l.at("k", s, g*keys+min(i, keys-1), l.g*keys, l.d)
}

func (l *long) query(n, h, i int) []float64 { return l.at("q", n, h*l.maps+i, l.h*l.maps, l.d) }

// share is the factor of map i in the output: 1 and −λ.
func (l *long) share(n, h, i int) float64 {
	lam := l.x["lam"]
	switch {
	case i == 0:
		return 1
	case len(lam) == 1:
		return -lam[0]
	}
	return -lam[n*l.h+h]
}

func inner(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func addTo(dst []float64, f float64, x []float64) {
	for i, v := range x {
		dst[i] += f * v
	}
}

// forward is row n of head h: out, and of each map log Σ exp.
func (l *long) forward(n, h int) (out []float64, lse [2]float64) {
	out = make([]float64, l.dv)
	p, g := make([]float64, n+1), h/(l.h/l.g)
	for i := range l.maps {
		top, sum := math.Inf(-1), 0.0
		for s := range p {
			p[s] = inner(l.query(n, h, i), l.key(s, g, i)) / math.Sqrt(float64(l.d))
			top = max(top, p[s])
		}
		for s := range p {
			p[s] = math.Exp(p[s] - top)
			sum += p[s]
		}
		for s := range p {
			addTo(out, l.share(n, h, i)*p[s]/sum, l.at("v", s, g, l.g, l.dv))
		}
		lse[i] = top + math.Log(sum)
	}
	return out, lse
}

// cell is what query n of head h and key s give backward: dS of each map times the scale, and Σ ±P.
func (l *long) cell(n, h, s int) (ds [2]float64, p float64) {
	g, dO := h/(l.h/l.g), l.at("dout", n, h, l.h, l.dv)
	dP := inner(dO, l.at("v", s, g, l.g, l.dv))
	delta := [2]float64{inner(dO, l.at("out", n, h, l.h, l.dv)), 0}
	if l.maps == 2 {
		delta[1] = inner(dO, l.at("out2", n, h, l.h, l.dv))
		delta[0] -= l.share(n, h, 1) * delta[1]
	}
	scale := 1 / math.Sqrt(float64(l.d))
	for i := range l.maps {
		pi := l.share(n, h, i) * math.Exp(scale*inner(l.query(n, h, i),
			l.key(s, g, i))-l.x["lse"][n*l.h*l.maps+h*l.maps+i])
		ds[i] = scale * pi * (dP - delta[i])
		p += pi
	}
	return ds, p
}

// sampled returns some of n indices: the last, those around a tile's edge, and random ones that are at least least.
func sampled(n, least, count int) []int {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	all := []int{n - 1, n/64*64 - 1, n / 2 / 64 * 64}
	for range count {
		all = append(all, least+r.IntN(n-least))
	}
	return all
}

// checkRows works out the forward results and dq of some queries.
func (l *long) checkRows(t *testing.T, d device.Device, fwd, bwd *Case) {
	var out, lse, dq, wantOut, wantLSE, wantDQ []float64
	for _, n := range sampled(l.t, l.t/8, 8) {
		for h := range l.h {
			o, sums := l.forward(n, h)
			wantOut, wantLSE = append(wantOut, o...), append(wantLSE, sums[:l.maps]...)
			out = append(out, l.at("out", n, h, l.h, l.dv)...)
			lse = append(lse, l.at("lse", n, h, l.h, l.maps)...)
			dq = append(dq, l.at("dq", n, h, l.h, l.maps*l.d)...)
			want := make([]float64, l.maps*l.d)
			for s := range n + 1 {
				ds, _ := l.cell(n, h, s)
				for i := range l.maps {
					addTo(want[i*l.d:(i+1)*l.d], ds[i], l.key(s, h/(l.h/l.g), i))
				}
			}
			wantDQ = append(wantDQ, want...)
		}
	}
	fwd.near(t, d, "out", out, wantOut, l.dv)
	fwd.near(t, d, "lse", lse, wantLSE, l.maps)
	bwd.near(t, d, "dq", dq, wantDQ, l.maps*l.d)
}

// checkKeys works out dk and dv of some keys.
func (l *long) checkKeys(t *testing.T, d device.Device, bwd *Case) {
	var dk, dv, wantDK, wantDV []float64
	keys := max(1, l.keys)
	for _, s := range sampled(l.t, 0, 8) {
		for g := range l.g {
			k, v := make([]float64, keys*l.d), make([]float64, l.dv)
			for h := g * l.h / l.g; h < (g+1)*l.h/l.g; h++ {
				for n := s; n < l.t; n++ {
					ds, p := l.cell(n, h, s)
					for i := range l.maps {
						at := min(i, keys-1) * l.d
						addTo(k[at:at+l.d], ds[i], l.query(n, h, i))
					}
					addTo(v, p, l.at("dout", n, h, l.h, l.dv))
				}
			}
			wantDK, wantDV = append(wantDK, k...), append(wantDV, v...)
			dk, dv = append(dk, l.at("dk", s, g, l.g, keys*l.d)...), append(dv, l.at("dv", s, g, l.g, l.dv)...)
		}
	}
	bwd.near(t, d, "dk", dk, wantDK, keys*l.d)
	bwd.near(t, d, "dv", dv, wantDV, l.dv)
}

// near compares rows of one output at its tolerance; values that are small by cancellation are compared at the others'
// scale.
func (c *Case) near(t *testing.T, d device.Device, name string, got, want []float64, cols int) {
	t.Helper()
	close(t, fmt.Sprintf("%s, sampled,", name), got, want, cols, c.tolerance(c.named(name), d), 0)
}
