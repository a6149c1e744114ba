package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

func addCase(dst, src kind, n, c int) *Case {
	cs := newCase("%v=%v,N=%d,C=%d", dst, src, n, c)
	y := cs.acc("dst", dst, n, c, perRow(1))
	s := cs.in("src", src, n, c, perRow(1))
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Add(x[y], x[s]) })
}

func addCases() (all []*Case) {
	floats(func(dst, src kind) {
		for _, s := range [][2]int{{1, 1}, {5, 67}, {3, 1000}} {
			all = append(all, addCase(dst, src, s[0], s[1]))
		}
	})
	for _, s := range edges {
		all = append(all, addCase(act, act, s[0], s[1]), addCase(stat, act, s[0], s[1]))
	}
	return all
}

func addBench() []*Case {
	return []*Case{addCase(act, act, 1024, 1024), addCase(stat, stat, 1024, 1024)}
}
