package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

func zeroCase(k kind, n, c int) *Case {
	cs := newCase("%v,N=%d,C=%d", k, n, c)
	t := cs.out("t", k, n, c, exact, anyRows, anyCols, anyType)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Zero(x[t]) })
}

func zeroCases() (all []*Case) {
	for _, k := range []kind{act, stat, bf16, ints} {
		for _, s := range [][2]int{{1, 1}, {7, 13}, {33, 64}} {
			all = append(all, zeroCase(k, s[0], s[1]))
		}
	}
	for _, s := range edges {
		all = append(all, zeroCase(act, s[0], s[1]))
	}
	return all
}

func zeroBench() []*Case { return []*Case{zeroCase(act, 1024, 1024)} }
