package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

// lambdas is λ of n rows and h heads, or one for all.
func (c *Case) lambdas(n, h int, each bool) int {
	if each {
		return c.in("lam", stat, n, h, uniform(-1, 2), perRow(1))
	}
	return c.in("lam", stat, 1, 1, uniform(-1, 2))
}

func subtractheadsCase(n, h, dv int, each bool) *Case {
	cs := newCase("forward,N=%d,H=%d,DV=%d,each=%v", n, h, dv, each)
	out := cs.out("out", act, n, h*dv, perRow(1), floor(1))
	a := cs.in("a", act, n, 2*h*dv, perRow(1))
	lam := cs.lambdas(n, h, each)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.SubtractHeads(x[out], x[a], x[lam], h) })
}

func subtractheadsBackwardCase(n, h, dv int, each bool) *Case {
	cs := newCase("backward,N=%d,H=%d,DV=%d,each=%v", n, h, dv, each)
	da, dlam := cs.out("da", act, n, 2*h*dv, perRow(1)), cs.out("dlam", stat, n, h, perRow(1), floor(1))
	dout, a := cs.in("dout", act, n, h*dv, perRow(1)), cs.in("a", act, n, 2*h*dv, perRow(1))
	lam := cs.lambdas(n, h, each)
	return cs.call(func(d device.Device, x []tensor.Tensor) {
		d.SubtractHeadsBackward(x[da], x[dlam], x[dout], x[a], x[lam], h)
	})
}

// Widths of a head: odd ones, part of a warp, all of it and more than one turn of it.
func subtractheadsCases() (all []*Case) {
	for _, s := range [][3]int{{1, 1, 1}, {3, 2, 7}, {17, 3, 8}, {65, 6, 32}, {5, 3, 24}, {9, 2, 64}, {2, 3, 300},
		{4, 5, 128}, {3, 1, 1000}, {260, 5, 26}} {
		for _, each := range []bool{true, false} {
			all = append(all, subtractheadsCase(s[0], s[1], s[2], each),
				subtractheadsBackwardCase(s[0], s[1], s[2], each))
		}
	}
	return all
}

func subtractheadsBench() []*Case {
	return []*Case{subtractheadsCase(4096, 12, 64, true), subtractheadsBackwardCase(4096, 12, 64, true)}
}
