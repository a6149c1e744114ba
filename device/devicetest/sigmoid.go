package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

func sigmoidCase(k kind, n, c int, alias bool) *Case {
	cs := newCase("forward,%v,N=%d,C=%d,alias=%v", k, n, c, alias)
	var y, v int
	if alias {
		v = cs.acc("x", k, n, c, normal(0, 8), perRow(1), anyRows, anyCols)
		y = v
	} else {
		v, y = cs.in("x", k, n, c, normal(0, 8), perRow(1)), cs.out("y", k, n, c, perRow(1))
	}
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Sigmoid(x[y], x[v]) })
}

func sigmoidBackwardCase(k kind, n, c int, alias bool) *Case {
	cs := newCase("backward,%v,N=%d,C=%d,alias=%v", k, n, c, alias)
	y := cs.in("y", k, n, c, uniform(0, 1), perRow(1))
	var dx, dy int
	if alias {
		dy = cs.acc("dy", k, n, c, perRow(1))
		dx = dy
	} else {
		dy, dx = cs.in("dy", k, n, c, perRow(1)), cs.out("dx", k, n, c, perRow(1))
	}
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.SigmoidBackward(x[dx], x[dy], x[y]) })
}

func sigmoidCases() (all []*Case) {
	for _, k := range []kind{act, stat} {
		for _, s := range [][2]int{{1, 1}, {7, 13}, {65, 8}, {3, 200}} {
			for _, alias := range []bool{false, true} {
				all = append(all, sigmoidCase(k, s[0], s[1], alias), sigmoidBackwardCase(k, s[0], s[1], alias))
			}
		}
	}
	for _, s := range edges {
		all = append(all, sigmoidCase(act, s[0], s[1], false), sigmoidBackwardCase(stat, s[0], s[1], true))
	}
	return all
}

func sigmoidBench() []*Case {
	return []*Case{sigmoidCase(stat, 4096, 12, false), sigmoidBackwardCase(stat, 4096, 12, false)}
}
