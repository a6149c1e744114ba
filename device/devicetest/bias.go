package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

func addBiasCase(n, c int) *Case {
	cs := newCase("add,N=%d,C=%d", n, c)
	y := cs.acc("y", act, n, c, perRow(1), anyRows)
	b := cs.in("b", act, 1, c)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.AddBias(x[y], x[b]) })
}

func biasBackwardCase(n, c int) *Case {
	cs := newCase("backward,N=%d,C=%d", n, c)
	db := cs.acc("db", stat, 1, c, floor(1))
	dy := cs.in("dy", act, n, c, anyRows)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.BiasBackward(x[db], x[dy]) })
}

func biasCases() (all []*Case) {
	for _, s := range [][2]int{{1, 1}, {7, 13}, {65, 64}, {200, 129}, {3, 1000}, large[1], {0, 7}, {3, 0}} {
		all = append(all, addBiasCase(s[0], s[1]), biasBackwardCase(s[0], s[1]))
	}
	return all
}

func biasBench() []*Case { return []*Case{addBiasCase(1024, 768), biasBackwardCase(1024, 768)} }
