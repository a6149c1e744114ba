package cpu

import (
	"fmt"
	"testing"

	"antiphase/device"
)

// BenchmarkDiffAttention measures the fused op against plain attention of the same size: H pairs of width D with values
// of 2D against 2H heads of D. GFLOP/s counts the cells on and below the diagonal, at the multiply-adds that the
// formulas need (forward 6D and backward 10D per pair and cell, plain 2D and 5D per head).
func BenchmarkDiffAttention(b *testing.B) {
	for _, n := range []struct{ b, t, d int }{{4, 512, 32}, {4, 512, 64}, {2, 2048, 64}} {
		const h = 6
		plain := geometry{AttnShape: device.AttnShape{B: n.b, T: n.t, Heads: 2 * h, Groups: 2 * h, D: n.d, DV: n.d},
			maps: 1, keys: 1}
		diff := geometry{AttnShape: device.AttnShape{B: n.b, T: n.t, Heads: h, Groups: h, D: n.d, DV: 2 * n.d}, maps: 2,
			keys: 2, norm: true, weight: true}
		cells := float64(n.b*h*n.d) * float64(n.t) * float64(n.t+1) / 2
		pairs := diff
		pairs.Heads, pairs.Groups, pairs.keys, pairs.DV, pairs.norm, pairs.weight = 2*h, h, 1, n.d, false, false
		size := fmt.Sprintf("t%d_d%d", n.t, n.d)
		b.Run("plain/forward/"+size, func(b *testing.B) { benchAttn(b, plain, false, 2*4*cells) })
		b.Run("diff/forward/"+size, func(b *testing.B) { benchAttn(b, diff, false, 2*6*cells) })
		b.Run("plain/backward/"+size, func(b *testing.B) { benchAttn(b, plain, true, 2*10*cells) })
		b.Run("diff/backward/"+size, func(b *testing.B) { benchAttn(b, diff, true, 2*10*cells) })
		b.Run("pairs/forward/"+size, func(b *testing.B) { benchAttn(b, pairs, false, 2*8*cells) })
		b.Run("pairs/backward/"+size, func(b *testing.B) { benchAttn(b, pairs, true, 2*16*cells) })
	}
}

func benchAttn(b *testing.B, g geometry, backward bool, flops float64) {
	c := newCase(0, BestPrecision())
	defer c.cpu.Close()
	p := c.problem(g)
	forth, back := p.ops(c.cpu, onCPU)
	forth()
	if backward {
		forth = back
	}
	forth()
	b.ReportAllocs()
	for b.Loop() {
		forth()
	}
	cells := float64(g.B*g.Heads*g.maps) * float64(g.T) * float64(g.T+1) / 2
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)*float64(len(c.cpu.workers))/cells, "ns/cell")
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
