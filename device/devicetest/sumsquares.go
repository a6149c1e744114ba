package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

func sumsquaresCase(k kind, n, c int) *Case {
	cs := newCase("%v,N=%d,C=%d", k, n, c)
	dst := cs.acc("dst", stat, 1, 1, floor(1))
	v := cs.in("x", k, n, c, anyRows, anyCols)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.SumSquares(x[dst], x[v]) })
}

func sumsquaresCases() (all []*Case) {
	for _, k := range []kind{act, stat} {
		for _, s := range [][2]int{{1, 1}, {7, 13}, {1, 4099}, {65, 129}, {1, 100003}} {
			all = append(all, sumsquaresCase(k, s[0], s[1]))
		}
	}
	return all
}

func sumsquaresBench() []*Case { return []*Case{sumsquaresCase(stat, 1, 1<<20)} }
