package devicetest

import (
	"math"
	"math/rand/v2"

	"antiphase/device"
	"antiphase/tensor"
)

// argmaxCase has few different values, so that most rows have equals, and of every eight rows one each with NaN, with
// +Inf, with
// -Inf among the rest, and with nothing else.
func argmaxCase(n, v int) *Case {
	c := newCase("N=%d,V=%d", n, v)
	ids := c.out("ids", ints, 1, n, exact, perCol(1))
	fill := func(a *arg) {
		a.fill = func(r *rand.Rand, i int) float64 {
			row, special := i/v, r.IntN(v) < 1+v/8
			switch {
			case row%8 == 3 && i%v == v/2:
				return math.NaN()
			case row%8 == 4 && i%v == v-1:
				return math.Inf(1)
			case row%8 == 5 && special, row%8 == 6:
				return math.Inf(-1)
			}
			return float64(r.IntN(100)) - 90
		}
	}
	x := c.in("x", stat, n, v, perRow(1), anyCols, fill)
	return c.call(func(d device.Device, t []tensor.Tensor) { d.ArgMax(t[ids], t[x]) })
}

func argmaxCases() (all []*Case) {
	for _, s := range [][2]int{{1, 1}, {9, 2}, {17, 7}, {8, 64}, {33, 300}, {8, 1001}, {16, 9000}, {9, 50304}} {
		all = append(all, argmaxCase(s[0], s[1]))
	}
	return all
}

func argmaxBench() []*Case { return []*Case{argmaxCase(1, 50304), argmaxCase(64, 50304)} }
