package devicetest

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// angles is a table of p positions, cosines then sines, as option of an argument.
func angles(p, dim int) option {
	v := make([]float64, 0, p*dim)
	for i := range p {
		for _, f := range []func(float64) float64{math.Cos, math.Sin} {
			for j := range dim / 2 {
				v = append(v, f(float64(i)*math.Pow(1e4, -2*float64(j)/float64(dim))))
			}
		}
	}
	return given(v...)
}

func ropeCase(n, p int, r device.Rope) *Case {
	cs := newCase("N=%d,heads=%d,D=%d,interleaved=%v,inverse=%v", n, r.Heads, r.Dim, r.Interleaved, r.Inverse)
	v := cs.acc("x", act, n, r.Heads*r.Dim, perRow(1))
	table := cs.in("table", stat, p, r.Dim, angles(p, r.Dim), anyRows)
	pos := cs.ints("pos", 1, n, tokens(n, p), perCol(1))
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Rope(x[v], x[table], x[pos], r) })
}

func ropeCases() (all []*Case) {
	for _, s := range [][3]int{{1, 1, 2}, {7, 3, 8}, {5, 2, 24}, {64, 1, 40}, {129, 4, 64}, {3, 5, 96}, {2, 3, 128},
		{40, 9, 128}, {0, 2, 8}} {
		for flags := range 4 {
			r := device.Rope{Heads: s[1], Dim: s[2], Interleaved: flags&1 != 0, Inverse: flags&2 != 0}
			all = append(all, ropeCase(s[0], 50, r))
		}
	}
	return all
}

// ropeExtra: there and back again.
func ropeExtra(t *testing.T, d device.Device) {
	c := ropeCase(7, 50, device.Rope{Heads: 2, Dim: 24})
	v := c.values(d.Types())
	p := c.place(d, v, false).call(t)
	ropeCase(7, 50, device.Rope{Heads: 2, Dim: 24, Inverse: true}).bind(p.x)(d)
	close(t, "x turned there and back", decode(d.Types().Act, p.content(1)), v[1], 48, tolerance(d.Types().Act), 0)
	p.free()
}

func ropeBench() []*Case { return []*Case{ropeCase(1024, 2048, device.Rope{Heads: 12, Dim: 64})} }
