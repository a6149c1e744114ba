//go:build !purego

package simd

import (
	"time"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// int8Tiles is the most tiles of sums that wait between runs of k, 4 KiB each: a part of the second cache.
const int8Tiles = maxPartial / 3

// withoutVNNI is k with the int8 kernels of AVX2 where the processor lacks VPDPBUSD, as the first with AVX-512 do.
func withoutVNNI(k *kernels) *kernels {
	if !cpu.X86.HasAVX512VNNI {
		k.bytes = avx2.bytes
	}
	return k
}

// int8Stream is the most panels of rows that are bound by reading W, not by products.
const int8Stream = 4

// tilesInt8 takes up to 16 panels of rows at a time, and of those a run of k after the other, some columns a call.
func tilesInt8(g *gemmInt8) {
	panels := (g.m + PanelRowsInt8 - 1) / PanelRowsInt8
	if panels <= int8Stream { // W is read once: there is nothing to keep in the first cache
		g.columns(0, g.m, 0, g.n, g.steps, &streamInt8)
		return
	}
	run := runOf(g.steps)
	down := max(1, min(panels, maxCall/run, 16))
	whole, way := g.n, &nearInt8
	if g.far && uintptr(unsafe.Pointer(&g.c[0]))%64 == 0 && g.ldc%16 == 0 {
		whole, way = g.n&^(PanelBF16-1), &farInt8 // part of a panel cannot be written around the caches
	}
	for i := 0; i < g.m; i += down * PanelRowsInt8 {
		rows := min(down*PanelRowsInt8, g.m-i)
		g.columns(i, rows, 0, whole, run, way)
		g.columns(i, rows, whole, g.n, run, &nearInt8)
	}
}

// wayInt8 is a wide and a narrow kernel, and their number.
type wayInt8 struct {
	kernels [2]func(*int8Args)
	kind    int
}

var (
	nearInt8   = wayInt8{[2]func(*int8Args){tilesInt8WideNearAMX, tilesInt8NarrowNearAMX}, 0}
	farInt8    = wayInt8{[2]func(*int8Args){tilesInt8WideFarAMX, tilesInt8NarrowFarAMX}, 4}
	streamInt8 = wayInt8{[2]func(*int8Args){tilesInt8WideStreamAMX, tilesInt8NarrowStreamAMX}, 8}
)

// columns computes the tiles of rows rows starting at i and of columns j to end. Between runs of k the sums of a group
// are kept.
func (g *gemmInt8) columns(i, rows, j, end, run int, way *wayInt8) {
	down := (rows + PanelRowsInt8 - 1) / PanelRowsInt8
	group := up32(end-j) / PanelBF16
	if run < g.steps {
		group = max(1, min(group, int8Tiles/down))
	}
	across := max(1, min(group, maxCall/(run*down)))
	if way == &streamInt8 && across > 8 {
		across &^= 7 // it fetches 8 panels ahead
	}
	for ; j < end; j += group * PanelBF16 {
		panels := min(group, up32(end-j)/PanelBF16)
		for p := 0; p < g.steps; p += run {
			for q := 0; q < panels; q += across {
				g.call(i, rows, j+q*PanelBF16, min(end, j+min(q+across, panels)*PanelBF16), p,
					min(run, g.steps-p), q*down, way)
			}
		}
	}
}

// call runs steps p … p+steps−1 for columns j to end; their sums are tiles from at on of those put aside.
func (g *gemmInt8) call(i, rows, j, end, p, steps, at int, way *wayInt8) {
	down, cols := (rows+PanelRowsInt8-1)/PanelRowsInt8, up32(end-j)/PanelBF16
	panel, turns := (g.j+j)/PanelBF16, max(1, steps&^1) // of the narrow kernel, which has the fewest
	t := &g.s.int8At
	*t = int8Args{
		x: &g.x.row(i)[p*PanelRowsInt8*stepInt8], w: &g.w.panel(panel)[p*stepBytes], head: &g.w.head[panel*headInt8],
		c: &g.c[i*g.ldc+j], scale: &g.x.scale[i],
		scratch: &Grow(&g.s.tile, 2*stepBF16)[0], config: &tileConfig[0],
		ldc: 4 * g.ldc, steps: steps, rows: rows, cols: cols, strideX: 2 * PanelRowsInt8 * stepInt8 * g.steps,
		strideW: g.w.stride(),
		drain:   (PanelRowsInt8 + turns - 1) / turns, fetch: (8 + down - 1) / down, four: 4 * g.w.stride(),
		last: 1<<(end-j-(cols-1)*PanelBF16) - 1,
	}
	if steps < g.steps {
		t.partial = &Grow(&g.s.partial, stepBF16*maxPartial)[at*stepBF16]
	}
	if p > 0 {
		t.load = 1
	}
	if p+steps < g.steps {
		t.keep = 1
	}
	if way == &streamInt8 {
		t.fetch = max(1, 4/down)
	}
	g.s.picks.runInt8(t, way)
}

// runInt8 picks the wide or the narrow kernel, whichever is faster just now.
func (c *chooser) runInt8(t *int8Args, way *wayInt8) {
	work := (t.rows + PanelRowsInt8 - 1) / PanelRowsInt8 * t.cols * t.steps
	switch {
	case t.steps < 2:
		way.kernels[0](t)
	case work < leastTimed:
		way.kernels[c.kernel](t)
	default:
		kind := way.kind | t.load<<1 | t.keep
		kernel, trial := c.pick(kind, t.steps)
		begin := time.Now()
		way.kernels[kernel](t)
		c.took(kernel, kind, t.steps, float64(time.Since(begin))/float64(work), trial)
	}
}
