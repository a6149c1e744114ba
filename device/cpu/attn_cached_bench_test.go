package cpu

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// BenchmarkCached is the attention of a model of 12 layers with a context of 1024 positions: of a single row, which reads the cache, at GB/s, and
// of a prompt, at the multiply-adds of the cells on and below the diagonal.
func BenchmarkCached(b *testing.B) {
	const layers, context, page = 12, 1024, 16
	for _, g := range []geometry{
		{AttnShape: device.AttnShape{Heads: 12, Groups: 12, D: 64, DV: 64}, maps: 1, keys: 1},
		{AttnShape: device.AttnShape{Heads: 6, Groups: 6, D: 64, DV: 128}, maps: 2, keys: 2, norm: true, weight: true},
		{AttnShape: device.AttnShape{Heads: 12, Groups: 12, D: 64, DV: 64}, maps: 2, keys: 1, rowLam: true},
	} {
		for _, rows := range []int{1, context} {
			b.Run(fmt.Sprintf("maps%d_keys%d/rows%d", g.maps, g.keys, rows), func(b *testing.B) { benchCached(b, g, layers, context, page, rows) })
		}
	}
}

func benchCached(b *testing.B, g geometry, layers, context, page, rows int) {
	c := newCase(0, BestPrecision())
	defer c.cpu.Close()
	g.B, g.T = 1, rows
	p := c.problem(g)
	kCols, vCols := g.Groups*g.keys*g.D, g.Groups*g.DV
	order, slots, places := make([]int32, context/page), make([]int32, rows), make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	for i := range places {
		places[i] = int32(context - rows + i)
	}
	slot, pos := c.ints(slots).x, c.ints(places).x
	k, v := c.random(context, kCols, 0, 1).x, c.random(context, vCols, 0, 1).x
	caches := make([]*device.Cache, layers)
	for i := range caches {
		x := &device.Cache{K: device.Empty(c.cpu, tensor.F32, context, kCols), V: device.Empty(c.cpu, tensor.F32, context, vCols),
			Table: c.ints(order).x, PageSize: page}
		c.cpu.Copy(x.K, k)
		c.cpu.Copy(x.V, v)
		caches[i] = x
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range caches {
			p.attend(c.cpu, onCPU, x, slot, pos, 0, rows)
		}
	}
	times := float64(b.N*layers) / b.Elapsed().Seconds() / 1e9
	b.ReportMetric(times*float64(4*context*(kCols+vCols)), "GB/s")
	b.ReportMetric(times*float64(g.Heads*rows*g.maps)*float64(2*context-rows+1)*float64(g.D+g.DV), "GFLOP/s")
}
