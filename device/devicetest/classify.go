package devicetest

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// targets are ids with every third position left out of the loss, or all of them.
func targets(n, v int, none bool) []int32 {
	ids := tokens(n, v)
	for i := range ids {
		if none || i%3 == 1 {
			ids[i] = -1
		}
	}
	return ids
}

func classifyCase(n, v, c int, grad, none bool) *Case {
	cs := newCase("N=%d,V=%d,C=%d,grad=%v,none=%v", n, v, c, grad, none)
	cs.flops = 2 * float64(n) * float64(v) * float64(c)
	in := cs.in("X", act, n, c, perRow(1))
	wopts := []option{normal(0, 1/math.Sqrt(float64(c)))}
	if !grad {
		wopts = append(wopts, anyRows)
	}
	w := cs.in("W", act, v, c, wopts...)
	ids := cs.ints("Targets", 1, n, targets(n, v, none), perCol(1))
	loss := cs.out("Loss", stat, 1, n, product, floor(1), perCol(1))
	var dx, dw int
	if grad {
		cs.flops *= 3
		dx = cs.out("DX", act, n, c, loose, floor(0.01), perRow(1))
		dw = cs.acc("DW", stat, v, c, loose, floor(0.01))
	}
	cs.bind = func(x []tensor.Tensor) func(device.Device) {
		cl := &device.Classifier{X: x[in], W: x[w], Targets: x[ids], Loss: x[loss], DX: x[dx], DW: x[dw], Scale: 0.25}
		return func(d device.Device) { d.Classify(cl) }
	}
	return cs
}

// elsewhere makes every fourth target one that another rank has.
func elsewhere(ids []int32) []int32 {
	for i := range ids {
		if i%4 == 2 {
			ids[i] = device.Elsewhere
		}
	}
	return ids
}

// classifyPartCase is the first call of a classifier whose classes are split.
func classifyPartCase(n, v, c int) *Case {
	cs := newCase("part,N=%d,V=%d,C=%d", n, v, c)
	cs.flops = 2 * float64(n) * float64(v) * float64(c)
	in := cs.in("X", act, n, c, perRow(1))
	w := cs.in("W", act, v, c, normal(0, 1/math.Sqrt(float64(c))), anyRows)
	ids := cs.ints("Targets", 1, n, elsewhere(targets(n, v, false)), perCol(1))
	loss := cs.in("Loss", stat, 1, n, perCol(1))
	part := cs.out("Part", stat, 2, n, product, floor(1), perCol(1))
	cs.bind = func(x []tensor.Tensor) func(device.Device) {
		cl := &device.Classifier{X: x[in], W: x[w], Targets: x[ids], Loss: x[loss], Part: x[part]}
		return func(d device.Device) { d.Classify(cl) }
	}
	return cs
}

// classifyPartsCase is the second call. top is added to the other ranks' logarithms: their classes may weigh far more.
func classifyPartsCase(n, v, c, ranks int, grad bool, top float64) *Case {
	cs := newCase("parts,N=%d,V=%d,C=%d,P=%d,grad=%v,top=%g", n, v, c, ranks, grad, top)
	cs.flops = 6 * float64(n) * float64(v) * float64(c)
	in := cs.in("X", act, n, c, perRow(1))
	wopts := []option{normal(0, 1/math.Sqrt(float64(c)))}
	if !grad {
		wopts = append(wopts, anyRows)
	}
	w := cs.in("W", act, v, c, wopts...)
	ids := cs.ints("Targets", 1, n, elsewhere(targets(n, v, false)), perCol(1))
	parts := cs.in("Parts", stat, 2*ranks, n, normal(math.Log(float64(v))+top, 0.3), perCol(1))
	loss := cs.out("Loss", stat, 1, n, product, floor(1+top), perCol(1))
	var dx, dw int
	if grad {
		dx = cs.out("DX", act, n, c, loose, floor(0.01), perRow(1))
		dw = cs.acc("DW", stat, v, c, loose, floor(0.01))
	}
	cs.bind = func(x []tensor.Tensor) func(device.Device) {
		cl := &device.Classifier{X: x[in], W: x[w], Targets: x[ids], Parts: x[parts], Loss: x[loss], DX: x[dx],
			DW: x[dw], Scale: 0.25}
		return func(d device.Device) { d.Classify(cl) }
	}
	return cs
}

func classifyCases() (all []*Case) {
	for _, s := range [][3]int{{1, 1, 1}, {7, 13, 5}, {65, 129, 24}, {130, 300, 64}, {5, 4099, 40}} {
		all = append(all, classifyCase(s[0], s[1], s[2], true, false), classifyCase(s[0], s[1], s[2], false, false))
	}
	for _, s := range [][3]int{{1, 1, 1}, {7, 13, 5}, {65, 129, 24}, {6, 2050, 40}} {
		all = append(all, classifyPartCase(s[0], s[1], s[2]), classifyPartsCase(s[0], s[1], s[2], 2, true, 0))
	}
	all = append(all, classifyPartsCase(7, 33, 16, 3, false, 0), classifyPartsCase(7, 33, 16, 2, true, 100))
	return append(all, classifyCase(9, 33, 16, true, true))
}

// classifyExtra: a target that is no class is a fault, and its row is as one without a target; one that another rank
// has is a fault where classes are not split.
func classifyExtra(t *testing.T, d device.Device) {
	for _, id := range []float64{-3, device.Elsewhere, 13, 14} {
		cases := []*Case{classifyCase(7, 13, 5, false, false), classifyCase(7, 13, 5, true, false)}
		if id != device.Elsewhere {
			cases = append(cases, classifyPartCase(7, 13, 5), classifyPartsCase(7, 13, 5, 2, true, 0))
		}
		for _, c := range cases {
			for i := range c.args {
				if c.args[i].name == "Targets" {
					given(5, 0, -1, 12, id, 1, 2)(&c.args[i])
				}
			}
			c.faulty(t, d)
		}
	}
}

func classifyBench() []*Case { return []*Case{classifyCase(256, 8192, 512, true, false)} }
