package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

// rmsnormCase: alias is what sum shares memory with: "x", "delta", nothing (""), or "none" for no sum at all.
func rmsnormCase(n, c int, alias string) *Case {
	cs := newCase("forward,N=%d,C=%d,sum=%s", n, c, alias)
	y := cs.out("y", act, n, c, perRow(1))
	w := cs.in("w", act, 1, c)
	var rstd, sum, src, delta int
	switch alias {
	case "x":
		src = cs.acc("x", act, n, c, perRow(1))
		delta, sum = cs.in("delta", act, n, c, perRow(1)), src
	case "delta":
		src, delta = cs.in("x", act, n, c, perRow(1)), cs.acc("delta", act, n, c, perRow(1))
		sum = delta
	case "none":
		src = cs.in("x", act, n, c, perRow(1))
	default:
		src, delta, sum = cs.in("x", act, n, c, perRow(1)), cs.in("delta", act, n, c, perRow(1)),
			cs.out("sum", act, n, c, perRow(1))
	}
	if alias != "x" { // rstd may be absent
		rstd = cs.out("rstd", stat, 1, n, loose, perCol(1))
	}
	return cs.call(func(d device.Device, x []tensor.Tensor) {
		d.RMSNorm(x[y], x[rstd], x[sum], x[src], x[delta], x[w], 1e-5)
	})
}

func rmsnormBackwardCase(n, c int) *Case {
	cs := newCase("backward,N=%d,C=%d", n, c)
	dx := cs.acc("dx", act, n, c, floor(1), perRow(1))
	dw := cs.acc("dw", stat, 1, c, floor(1))
	dy := cs.in("dy", act, n, c, perRow(1))
	y := cs.in("x", act, n, c, perRow(1))
	w := cs.in("w", act, 1, c)
	rstd := cs.in("rstd", stat, 1, n, perCol(1))
	cs.call(func(d device.Device, x []tensor.Tensor) { d.RMSNormBackward(x[dx], x[dw], x[dy], x[y], x[w], x[rstd]) })
	return cs.from(rmsnormCase(n, c, "none"))
}

func rmsnormCases() (all []*Case) {
	for _, s := range [][2]int{{1, 1}, {3, 7}, {17, 64}, {65, 65}, {5, 200}, {2, 768}} {
		for _, alias := range []string{"none", "", "x", "delta"} {
			all = append(all, rmsnormCase(s[0], s[1], alias))
		}
		all = append(all, rmsnormBackwardCase(s[0], s[1]))
	}
	for _, s := range append([][2]int{{0, 7}}, large...) {
		all = append(all, rmsnormCase(s[0], s[1], "x"), rmsnormBackwardCase(s[0], s[1]))
	}
	return all
}

func rmsnormBench() []*Case {
	return []*Case{rmsnormCase(1024, 768, "x"), rmsnormBackwardCase(1024, 768)}
}
