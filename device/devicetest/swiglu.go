package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

// The gate is drawn wide, so that σ saturates on both sides.
func swigluCase(n, f int) *Case {
	cs := newCase("forward,N=%d,F=%d", n, f)
	y := cs.out("y", act, n, f, perRow(1))
	gu := cs.in("gu", act, n, 2*f, normal(0, 4), perRow(1))
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.SwiGLU(x[y], x[gu]) })
}

func swigluBackwardCase(n, f int, alias bool) *Case {
	cs := newCase("backward,N=%d,F=%d,alias=%v", n, f, alias)
	var gu, dgu, dy, y int
	if alias {
		gu, dy = cs.acc("gu", act, n, 2*f, normal(0, 4), perRow(1)), cs.acc("dy", act, n, f, perRow(1))
		dgu, y = gu, dy
	} else {
		gu, dgu = cs.in("gu", act, n, 2*f, normal(0, 4), perRow(1)), cs.out("dgu", act, n, 2*f, perRow(1))
		dy, y = cs.in("dy", act, n, f, perRow(1)), cs.out("y", act, n, f, perRow(1))
	}
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.SwiGLUBackward(x[dgu], x[y], x[dy], x[gu]) })
}

func swigluCases() (all []*Case) {
	for _, s := range [][2]int{{1, 1}, {3, 7}, {17, 64}, {65, 65}, {2, 1000}, large[0], large[1], {0, 7}, {3, 0}} {
		all = append(all, swigluCase(s[0], s[1]), swigluBackwardCase(s[0], s[1], false),
			swigluBackwardCase(s[0], s[1], true))
	}
	return all
}

func swigluBench() []*Case {
	return []*Case{swigluCase(1024, 2048), swigluBackwardCase(1024, 2048, true)}
}
