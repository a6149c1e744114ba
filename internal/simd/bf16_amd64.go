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
	k.floats = packers[float32]{lines: packFloatsBF16, linesTurn: packFloatsTurnBF16, pairs: pairFloatsBF16, turn: turnFloatsBF16}
	k.halves = packers[uint16]{lines: packHalvesBF16, linesTurn: packHalvesTurnBF16, pairs: pairHalvesBF16, turn: turnHalvesBF16}
	k.narrow = narrowBF16
	k.product = product
	k.fewAlike = name == "amx"
	if name == "amx" {
		k.bytes.tiles = tilesInt8
	}
	return k
}

const (
	// maxRun is the most steps of k in one go where there are several: a panel of B then takes 32 KiB, two thirds of the first cache,
	// and is read from there. Up to maxSingle it is cheaper to miss now and then than to put the sums aside.
	maxRun, maxSingle = 16, 20
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
	g.first, g.last = true, true // the edges have their sums in C between parts
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

// panels computes m rows from i on and n columns from j on, whole panels, to c. Between runs of k the sums of a group of
// tiles wait in the second cache.
func (g *gemmBF16) panels(i, j, m, n int, c []float32, ldc int, tile []float32) {
	run, down, group := runOf(g.steps), m/PanelBF16, n/PanelBF16
	if g.first && g.last { // else there is room for all
		down = max(1, min(down, maxCall/run, 8))
		if run < g.steps {
			group = max(1, min(group, maxPartial/3/down))
		}
	}
	far := g.far && (!g.accumulate || !g.first) && uintptr(unsafe.Pointer(&c[0]))%64 == 0 && ldc%16 == 0
	for r0 := 0; r0 < m; r0 += down * PanelBF16 {
		for c0 := 0; c0 < n; c0 += group * PanelBF16 {
			t := tileArgs{
				a: &g.a[(i+r0)/PanelBF16*g.strideA], b: &g.b[(j+c0)/PanelBF16*g.strideB], c: &c[r0*ldc+c0],
				scratch: &tile[0], config: &tileConfig[0], ldc: 4 * ldc,
				rows: min(down, (m-r0)/PanelBF16), cols: min(group, (n-c0)/PanelBF16),
				strideA: 2 * g.strideA, strideB: 2 * g.strideB,
			}
			g.tiles(&t, run, far)
		}
	}
}

// tiles computes the tiles of C of first, run after run of k.
func (g *gemmBF16) tiles(first *tileArgs, run int, far bool) {
	partial := grow(&g.s.partial, stepBF16*(maxPartial+1))
	across := max(1, min(first.cols, maxCall/(run*first.rows)))
	for p := 0; p < g.steps; p += run {
		for j := 0; j < first.cols; j += across {
			t := &g.s.args
			*t = *first
			t.a, t.b, t.c = offset(t.a, 2*p*stepBF16), offset(t.b, j*t.strideB+2*p*stepBF16), offset(t.c, 4*j*PanelBF16)
			t.steps, t.cols = min(run, g.steps-p), min(across, first.cols-j)
			if run < g.steps || !g.first || !g.last {
				t.partial = &partial[j*t.rows*stepBF16]
			}
			switch {
			case p > 0 || !g.first:
				t.load = 2
			case g.accumulate:
				t.load = 1
			}
			if p+run < g.steps || !g.last {
				t.keep = 1
			}
			g.s.chooser.runTiles(t, far)
		}
	}
}

// offset is p so many bytes further on.
func offset[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }

// runOf cuts k into runs of about the same length.
func runOf(steps int) int {
	if steps <= maxSingle {
		return steps
	}
	runs := (steps + maxRun - 1) / maxRun
	return (steps + runs - 1) / runs
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
	work := t.rows * t.cols * t.steps
	if work < leastTimed {
		kernels[c.kernel](t)
		return
	}
	kind := t.load<<1 | t.keep
	if far {
		kind |= 8
	}
	kernel, trial := c.pick(kind, t.steps)
	begin := time.Now()
	kernels[kernel](t)
	c.took(kernel, kind, t.steps, float64(time.Since(begin))/float64(work), trial)
}

// chooser remembers which kernel was the faster one on this worker's core. A core is shared with a neighbour that comes and
// goes within milliseconds; with one the narrow kernel wins, alone the wide one. Both give the same bits, so that the
// choice is nobody else's business. Now and then a call is made with the other kernel and its time compared with that of
// the last call of the same kind: soon after a change, which may have been an accident, then less and less often.
type chooser struct {
	kernel      int // 0 wide, 1 narrow
	count, wait int // calls since the last trial, and how many there should be
	last        [16]lastCall
}

// lastCall is a call of a kind: how tiles begin, where they go.
type lastCall struct {
	steps int
	cost  float64 // in ns per product of a step of two panels
}

const (
	leastTimed = 100 // products of a step of two panels: some microseconds
	leastWait  = 4
	mostWait   = 32
	trialGain  = 0.95 // a trial must be faster than this for a change
)

// pick says which kernel is to be run, and whether that is a trial.
func (c *chooser) pick(kind, steps int) (kernel int, trial bool) {
	c.count++
	if c.count > max(c.wait, leastWait) && c.last[kind].steps == steps {
		c.count = 0
		return c.kernel ^ 1, true
	}
	return c.kernel, false
}

func (c *chooser) took(kernel, kind, steps int, cost float64, trial bool) {
	switch {
	case !trial:
		c.last[kind] = lastCall{steps, cost}
	case cost < trialGain*c.last[kind].cost:
		*c = chooser{kernel: kernel}
		c.last[kind] = lastCall{steps, cost}
	default:
		c.wait = min(mostWait, 2*max(c.wait, leastWait))
	}
}

// Kernels for at least 1, 2, 4, 8 and 16 steps of k.
var (
	wideNear = [5]func(*tileArgs){gemmBF16WideNear32AMX, gemmBF16WideNear16AMX, gemmBF16WideNear8AMX, gemmBF16WideNear4AMX,
		gemmBF16WideNear2AMX}
	wideFar = [5]func(*tileArgs){gemmBF16WideFar32AMX, gemmBF16WideFar16AMX, gemmBF16WideFar8AMX, gemmBF16WideFar4AMX,
		gemmBF16WideFar2AMX}
	narrowNear = [5]func(*tileArgs){gemmBF16NarrowNear16AMX, gemmBF16NarrowNear8AMX, gemmBF16NarrowNear4AMX, gemmBF16NarrowNear2AMX,
		gemmBF16NarrowNear1AMX}
	narrowFar = [5]func(*tileArgs){gemmBF16NarrowFar16AMX, gemmBF16NarrowFar8AMX, gemmBF16NarrowFar4AMX, gemmBF16NarrowFar2AMX,
		gemmBF16NarrowFar1AMX}
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
