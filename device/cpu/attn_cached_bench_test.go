package cpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/internal/simd"
)

// BenchmarkCached is the attention of a model of 12 layers with a context of 1024 positions: of a single row, which
// reads the cache, at GB/s and in turns with reading as much memory, and of a prompt, at the multiply-adds of the cells
// on and below the diagonal.
func BenchmarkCached(b *testing.B) {
	const layers, context, page = 12, 1024, 16
	for _, g := range []geometry{
		{AttnShape: device.AttnShape{Heads: 12, Groups: 12, D: 64, DV: 64}, maps: 1, keys: 1},
		{AttnShape: device.AttnShape{Heads: 6, Groups: 6, D: 64, DV: 128}, maps: 2, keys: 2, norm: true, weight: true},
		{AttnShape: device.AttnShape{Heads: 12, Groups: 12, D: 64, DV: 64}, maps: 2, keys: 1, rowLam: true},
	} {
		for _, rows := range []int{1, context} {
			b.Run(fmt.Sprintf("maps%d_keys%d/rows%d", g.maps, g.keys, rows),
				func(b *testing.B) { benchCached(b, g, layers, context, page, rows) })
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
	k, v := c.random(c.act(context, kCols, 0), 1).x, c.random(c.act(context, vCols, 0), 1).x
	caches := make([]*device.Cache, layers)
	for i := range caches {
		x := &device.Cache{K: device.Empty(c.cpu, c.cpu.Types().Cache, context, kCols),
			V: device.Empty(c.cpu, c.cpu.Types().Cache, context, vCols), Table: c.ints(order).x, PageSize: page}
		c.cpu.Copy(x.K, k)
		c.cpu.Copy(x.V, v)
		caches[i] = x
	}
	size := c.cpu.Types().Cache.Size() * context * (kCols + vCols)
	read := newReading(c.cpu, layers*size)
	var shares []float64
	b.ReportAllocs()
	for b.Loop() {
		begin := time.Now()
		for _, x := range caches {
			p.attend(c.cpu, onCPU, x, slot, pos, 0, rows)
		}
		took := time.Since(begin)
		b.StopTimer()
		shares = append(shares, float64(read.time())/float64(took))
		b.StartTimer()
	}
	times := float64(b.N*layers) / b.Elapsed().Seconds() / 1e9
	slices.Sort(shares)
	b.ReportMetric(times*float64(size), "GB/s")
	b.ReportMetric(shares[len(shares)/2], "of-reading")
	b.ReportMetric(times*float64(g.Heads*rows*g.maps)*float64(2*context-rows+1)*float64(g.D+g.DV), "GFLOP/s")
}

// reading is memory beside the caches, as much, that the workers read in the same way.
type reading struct {
	d *Device
	x []float32
}

const readingPiece = 64 << 10

func newReading(d *Device, bytes int) *reading {
	r := &reading{d, floatsOf(d.Alloc(bytes))}
	for i := range r.x {
		r.x[i] = 1
	}
	return r
}

func (r *reading) tile(i, _ int) {
	simd.ReadLoop(r.x[i*readingPiece : min((i+1)*readingPiece, len(r.x))])
}

func (r *reading) time() time.Duration {
	begin := time.Now()
	r.d.run((len(r.x)+readingPiece-1)/readingPiece, r)
	return time.Since(begin)
}
