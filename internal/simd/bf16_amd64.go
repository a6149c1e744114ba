//go:build !purego

package simd

import (
	"math/bits"
	"time"
	"unsafe"
)

// amx and avx512bf16 are avx512 with better products of bfloat16 values.
var (
	amx        = withBF16("amx", productAMX)
	avx512bf16 = withBF16("avx512bf16", productDot)
)

func withBF16(name string, product func(*gemmBF16)) kernels {
	k := avx512
	k.name = name
	k.packers = packers{lines: packLinesBF16, linesTurn: packLinesTurnBF16, pairs: packPairsBF16, pairsTurn: packPairsTurnBF16}
	k.product, k.expPack = product, expPackBF16
	k.fewAlike = name == "amx"
	if name == "amx" {
		k.widen = widenInt8AVX512
	}
	return k
}

const (
	// maxRun is the most steps of k in one go: 64 KiB of a panel of B, more than the first cache, but from there on reading
	// and writing C in between costs more.
	maxRun = 32
	// maxCall bounds the work of one call, in products of a step of two panels: some 50 µs, because the collector cannot
	// stop a thread that is in assembly.
	maxCall = 1500
)

// productAMX runs whole panels straight into C, and the ragged right and bottom edges by way of padded memory.
func productAMX(g *gemmBF16) {
	tile := grow(&g.s.tile, PanelBF16*PanelBF16)
	rows, cols := g.m/PanelBF16*PanelBF16, g.n/PanelBF16*PanelBF16
	if rows > 0 && cols > 0 {
		g.panels(0, 0, rows, cols, g.c, g.ldc, tile)
	}
	if rows > 0 && cols < g.n {
		g.edge(0, cols, rows, g.n-cols, rows, PanelBF16, g.accumulate, func(c []float32) {
			g.panels(0, cols, rows, PanelBF16, c, PanelBF16, tile)
		})
	}
	if left := g.m - rows; left > 0 {
		ld := up32(g.n)
		g.edge(rows, 0, left, g.n, PanelBF16, ld, g.accumulate, func(c []float32) {
			if left <= tileBF16 {
				g.half(rows, ld, c)
			} else {
				g.panels(rows, 0, PanelBF16, ld, c, ld, tile)
			}
		})
	}
}

// panels computes m rows from i on and n columns from j on, whole panels, to c.
func (g *gemmBF16) panels(i, j, m, n int, c []float32, ldc int, tile []float32) {
	runs := (g.steps + maxRun - 1) / maxRun
	run := (g.steps + runs - 1) / runs
	down := max(1, min(m/PanelBF16, maxCall/run)) * PanelBF16
	step := max(1, min(n/PanelBF16, maxCall/(run*(down/PanelBF16)))) * PanelBF16
	far := g.far && runs == 1 && !g.accumulate && uintptr(unsafe.Pointer(&c[0]))%64 == 0 && ldc%16 == 0
	for p := 0; p < g.steps; p += run {
		for c0 := 0; c0 < n; c0 += step {
			for r0 := 0; r0 < m; r0 += down {
				t := &g.s.args
				*t = tileArgs{
					a: &g.a[(i+r0)/PanelBF16*g.strideA+p*stepBF16], b: &g.b[(j+c0)/PanelBF16*g.strideB+p*stepBF16],
					c: &c[r0*ldc+c0], scratch: &tile[0], config: &tileConfig[0], ldc: 4 * ldc, steps: min(run, g.steps-p),
					rows: min(down, m-r0) / PanelBF16, cols: min(step, n-c0) / PanelBF16,
					strideA: 2 * g.strideA, strideB: 2 * g.strideB,
				}
				if g.accumulate || p > 0 {
					t.load = 1
				}
				g.s.chooser.runTiles(t, far)
			}
		}
	}
}

// runTiles picks the kernel that writes a tile out in as many steps of k as the next one has, and of the wide and the narrow
// ones that which is faster just now.
func (c *chooser) runTiles(t *tileArgs, far bool) {
	wide, narrow := &wideNear, &narrowNear
	if far {
		wide, narrow = &wideFar, &narrowFar
	}
	at := min(4, bits.Len(uint(t.steps))-1)
	kernels := [2]func(*tileArgs){wide[at], narrow[at]}
	shape := tileShape{t.steps, far, t.load != 0}
	work := t.rows * t.cols * t.steps
	switch {
	case at == 0:
		kernels[0](t)
	case work < leastTimed:
		kernels[c.kernel](t)
	default:
		c.count++
		kernel := c.kernel
		trial := c.count%trialEvery == 0 && c.last == shape
		if trial {
			kernel ^= 1
		}
		begin := time.Now()
		kernels[kernel](t)
		c.took(kernel, shape, float64(time.Since(begin))/float64(work), trial)
	}
}

// chooser remembers which kernel was the faster one on this worker's core. A core is shared with a neighbour that comes and
// goes within milliseconds; with one the narrow kernel wins, alone the wide one. Both give the same bits, so that the
// choice is nobody else's business. Now and then a call is made with the other kernel and its time compared with that of
// the call before, which had the same shape.
type chooser struct {
	kernel int // 0 wide, 1 narrow
	count  int
	last   tileShape
	cost   float64 // of the last call, in ns per product of a step of two panels
}

type tileShape struct {
	steps     int
	far, load bool
}

const (
	leastTimed = 100 // products of a step of two panels: some microseconds
	trialEvery = 16
	trialGain  = 0.95 // a trial must be faster than this for a change
)

func (c *chooser) took(kernel int, shape tileShape, cost float64, trial bool) {
	if trial {
		if cost < trialGain*c.cost {
			c.kernel, c.cost = kernel, cost
		}
		return
	}
	c.last, c.cost = shape, cost
}

// Kernels for at least 1, 2, 4, 8 and 16 steps of k.
var (
	wideNear = [5]func(*tileArgs){gemmBF16WideNear32AMX, gemmBF16WideNear16AMX, gemmBF16WideNear8AMX, gemmBF16WideNear4AMX,
		gemmBF16WideNear2AMX}
	wideFar = [5]func(*tileArgs){gemmBF16WideFar32AMX, gemmBF16WideFar16AMX, gemmBF16WideFar8AMX, gemmBF16WideFar4AMX,
		gemmBF16WideFar2AMX}
	narrowNear = [5]func(*tileArgs){nil, gemmBF16NarrowNear16AMX, gemmBF16NarrowNear8AMX, gemmBF16NarrowNear4AMX,
		gemmBF16NarrowNear2AMX}
	narrowFar = [5]func(*tileArgs){nil, gemmBF16NarrowFar16AMX, gemmBF16NarrowFar8AMX, gemmBF16NarrowFar4AMX,
		gemmBF16NarrowFar2AMX}
)

// half computes up to 16 rows from i on, padded, to c.
func (g *gemmBF16) half(i, ldc int, c []float32) {
	step := max(1, 4*maxCall/g.steps)
	for c0 := 0; c0 < g.n; c0 += step * PanelBF16 {
		t := &g.s.args
		*t = tileArgs{a: &g.row(i)[0], b: &g.b[c0/PanelBF16*g.strideB], c: &c[c0], config: &tileConfig[0], ldc: 4 * ldc,
			steps: g.steps, rows: 1, cols: min(step, (ldc-c0)/PanelBF16), strideB: 2 * g.strideB}
		if g.accumulate {
			t.load = 1
		}
		gemmBF16HalfAMX(t)
	}
}

// productDot is the product with VDPBF16PS, on as many rows at once as there are registers for.
func productDot(g *gemmBF16) {
	for j := 0; j < g.n; j += PanelBF16 {
		cols, b := min(PanelBF16, g.n-j), &g.b[j/PanelBF16*g.strideB]
		for i := 0; i < g.m; {
			rows, kernel := 1, dotRows1xBF16
			switch left := g.m - i; {
			case left >= 8:
				rows, kernel = 8, dotRows8xBF16
			case left >= 4:
				rows, kernel = 4, dotRows4xBF16
			case left >= 2:
				rows, kernel = 2, dotRows2xBF16
			}
			if cols < PanelBF16 {
				g.edge(i, j, rows, cols, rows, PanelBF16, g.accumulate, func(c []float32) {
					kernel(g.steps, &g.row(i)[0], b, &c[0], PanelBF16, g.accumulate)
				})
			} else {
				kernel(g.steps, &g.row(i)[0], b, &g.c[i*g.ldc+j], g.ldc, g.accumulate)
			}
			i += rows
		}
	}
}
