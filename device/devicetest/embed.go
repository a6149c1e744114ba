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
	ids[n-1] = int32(v - 1)
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
	return all
}

// embedExtra: an id outside the table is a fault that the next Sync tells, once.
func embedExtra(t *testing.T, d device.Device) {
	for _, id := range []int32{-1, 4} {
		c := embedCase(3, 4, 8, tokens(3, 4))
		p := c.place(d, c.values(d.Types()), false)
		device.WriteI32(d, p.x[3], []int32{0, id, 3})
		c.bind(p.x)(d)
		if d.Sync() == nil {
			t.Errorf("id %d of a table of 4 gave no fault", id)
		}
		if err := d.Sync(); err != nil {
			t.Errorf("id %d: the fault was told twice: %v", id, err)
		}
		p.free()
	}
}

func embedBench() []*Case {
	return []*Case{embedCase(1024, 8192, 768, tokens(1024, 8192)), embedBackwardCase(1024, 8192, 768, tokens(1024, 8192))}
}
