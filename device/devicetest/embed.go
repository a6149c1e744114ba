package devicetest

import (
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// tokens are n ids below v, with repetitions, the first and the last among them.
func tokens(n, v int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32((i*i*7 + i*3) % v)
	}
	if n > 0 {
		ids[n-1] = int32(v - 1)
	}
	return ids
}

func embedCase(n, v, c int, held []int32) *Case {
	cs := newCase("forward,N=%d,V=%d,C=%d,away=%v", n, v, c, slices.Contains(held, device.Elsewhere))
	out := cs.out("out", act, n, c, exact, perRow(1))
	table := cs.in("table", act, v, c, anyRows)
	ids := cs.ints("ids", 1, n, held, perCol(1))
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Embed(x[out], x[table], x[ids]) })
}

func embedBackwardCase(n, v, c int, held []int32) *Case {
	cs := newCase("backward,N=%d,V=%d,C=%d,away=%v", n, v, c, slices.Contains(held, device.Elsewhere))
	dtable := cs.acc("dtable", stat, v, c, floor(1), anyRows)
	dout := cs.in("dout", act, n, c)
	ids := cs.ints("ids", 1, n, held)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.EmbedBackward(x[dtable], x[dout], x[ids]) })
}

func embedCases() (all []*Case) {
	for _, s := range [][3]int{{3, 1, 1}, {7, 5, 13}, {64, 11, 40}, {129, 300, 65}, {200, 3, 8}} {
		for _, held := range [][]int32{tokens(s[0], s[1]), elsewhere(tokens(s[0], s[1]))} {
			all = append(all, embedCase(s[0], s[1], s[2], held), embedBackwardCase(s[0], s[1], s[2], held))
		}
	}
	for _, s := range edges {
		ids := elsewhere(tokens(s[0], 7))
		all = append(all, embedCase(s[0], 7, s[1], ids), embedBackwardCase(s[0], 7, s[1], ids))
	}
	return all
}

// embedExtra: an id outside the table is a fault; its row is zero, and adds nothing.
func embedExtra(t *testing.T, d device.Device) {
	for _, id := range []int32{-1, -3, 4, 5} {
		ids := []int32{0, id, 3}
		embedCase(3, 4, 8, ids).faulty(t, d)
		embedBackwardCase(3, 4, 8, ids).faulty(t, d)
	}
}

func embedBench() []*Case {
	return []*Case{embedCase(1024, 8192, 768, tokens(1024, 8192)),
		embedBackwardCase(1024, 8192, 768, tokens(1024, 8192))}
}
