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
	k.floats = packers[float32]{lines: packFloatsBF16, linesTurn: packFloatsTurnBF16, pairs: pairFloatsBF16,
		turn: turnFloatsBF16}
	k.halves = packers[uint16]{lines: packHalvesBF16, linesTurn: packHalvesTurnBF16, pairs: pairHalvesBF16,
		turn: turnHalvesBF16, down: downHalvesBF16}
	k.narrow = narrowBF16
	k.short = vectorsBF16
	k.product = product
	k.fewAlike = name == "amx"
	if k.direct = name == "amx"; k.direct {
		k.bytes.tiles, k.bytes.peak = tilesInt8, "amx int8"
	}
	return k
}

const (
	// maxRun is the maximum number of steps of k per run if there are several: a panel of B then takes 32 KiB, two
	// thirds of L1, and is read from there. Up to maxSingle an occasional miss is cheaper than storing the sums.
	maxRun, maxSingle = 16, 20
	// maxCall bounds the work of one call, in products of a step of two panels: about 50 µs, because the collector
	// cannot stop a thread that is in assembly. maxDown are the panels of A that use a panel of B in turn.
	maxCall, maxDown = 1500, 8
	// aheadStep is the number of bytes that kernels prefetch with each step of two panels.
	aheadStep = 256
)

// productAMX computes whole panels directly into C, and the ragged right and bottom edges through padded memory.
func productAMX(g *gemmBF16) {
	tile := Grow(&g.s.tile, PanelBF16*PanelBF16)
	rows, cols, ld := g.m/PanelBF16*PanelBF16, g.n/PanelBF16*PanelBF16, up32(g.n)
	if rows > 0 && cols > 0 {
		g.panels(0, rows, cols, View{g.c, g.h, g.ldc}, tile)
	}
	// The edges are in C between parts or, where that is bfloat16, in the padded memory.
	load, store := g.accumulate, true
	if g.h != nil {
		load, store = g.accumulate && g.first, g.last
	}
	g.first, g.last = true, true
	room := Grow(&g.s.edge, PanelBF16*(rows+ld))
	right, bottom := View{X: room[:PanelBF16*rows], Ld: PanelBF16}, View{X: room[PanelBF16*rows:], Ld: ld}
	if rows > 0 && cols < g.n {
		g.begin(right, 0, cols, rows, g.n-cols, load)
		g.panels(cols, rows, PanelBF16, right, tile)
		g.finish(right, 0, cols, rows, g.n-cols, store)
	}
	if left := g.m - rows; left > 0 {
		g.below(rows)
		g.begin(bottom, rows, 0, left, g.n, load)
		if left <= tileBF16 {
			g.half(ld, bottom.X)
		} else {
			g.panels(0, PanelBF16, ld, bottom, tile)
		}
		g.finish(bottom, rows, 0, left, g.n, store)
	}
}

// begin is pad, if load is set because there is something to add to, and finish is unpad, if the sums are complete, for
// either type.
func (g *gemmBF16) begin(to View, i, j, m, n int, load bool) {
	if load && g.h == nil {
		g.pad(to, i, j, m, n)
	}
	for r := 0; r < m && load && g.h != nil; r++ {
		widenAVX512(to.X[r*to.Ld:][:n], g.h[(i+r)*g.ldc+j:][:n])
	}
}

func (g *gemmBF16) finish(from View, i, j, m, n int, store bool) {
	if store && g.h == nil {
		g.unpad(from, i, j, m, n)
	}
	for r := 0; r < m && store && g.h != nil; r++ {
		narrowBF16(g.h[(i+r)*g.ldc+j:][:n], from.X[r*from.Ld:][:n])
	}
}

// below makes A the rows below its first ones, whole panels of them, and packs those that are not packed.
func (g *gemmBF16) below(rows int) {
	if g.lda == 0 {
		g.a = g.a[rows/PanelBF16*g.strideA:]
		return
	}
	k := g.steps * PanelBF16
	g.strideA = SizeBF16(PanelBF16, k)
	left := unsafe.Slice((*uint16)(unsafe.Pointer(&Grow(&g.s.below, g.strideA/2)[0])), g.strideA)
	packFast(left, g.m-rows, k, g.a[rows*g.lda:], g.lda, false, false, k, &g.halves)
	g.a, g.lda = left, 0
}

// panels computes m rows and n columns starting at j, whole panels, into c. Between runs of k the sums of a group of
// tiles stay in L2.
func (g *gemmBF16) panels(j, m, n int, c View, tile []float32) {
	run, down, group, seed := runOf(g.steps), m/PanelBF16, n/PanelBF16, c.H != nil && g.accumulate && g.first
	if g.first && g.last { // else there is room for all
		down = max(1, min(down, maxCall/run, maxDown))
		if run < g.steps || seed {
			group = max(1, min(group, maxPartial/3/down))
		}
	}
	all := tileArgs{scratch: &tile[0], config: &tileConfig[0], ldc: 4 * c.Ld, strideA: 2 * g.strideA,
		strideB: 2 * g.strideB, rowA: 2 * PanelBF16, halfA: stepBF16, stepA: 2 * stepBF16}
	if g.lda > 0 {
		all.strideA, all.rowA, all.halfA, all.stepA = 2*PanelBF16*g.lda, 2*g.lda, 2*tileBF16*g.lda, 2*PanelBF16
	}
	to, width := unsafe.Pointer(unsafe.SliceData(c.X)), 4
	if c.H != nil {
		to, width, all.ldc, all.halves = unsafe.Pointer(&c.H[0]), 2, 2*c.Ld, 1
	}
	if g.far && (!g.accumulate || !g.first) && uintptr(to)%64 == 0 && all.ldc%64 == 0 {
		all.far = 1
	}
	for r0 := 0; r0 < m; r0 += down * PanelBF16 {
		for c0 := 0; c0 < n; c0 += group * PanelBF16 {
			t := all
			t.a, t.b = offset(&g.a[0], r0/PanelBF16*t.strideA), &g.b[(j+c0)/PanelBF16*g.strideB]
			t.c = (*float32)(unsafe.Add(to, r0*t.ldc+c0*width))
			t.rows, t.cols = min(down, (m-r0)/PanelBF16), min(group, (n-c0)/PanelBF16)
			g.tiles(&t, run, seed)
		}
	}
}

// tiles computes the tiles of C of first, run after run of k. seed means that they begin with C, which is bfloat16.
func (g *gemmBF16) tiles(first *tileArgs, run int, seed bool) {
	partial := Grow(&g.s.partial, stepBF16*(maxPartial+1))
	across := max(1, min(first.cols, maxCall/(run*first.rows)))
	width := 4 * PanelBF16
	if first.halves == 1 {
		width = 2 * PanelBF16
	}
	if seed {
		widenTilesAMX(&partial[0], (*uint16)(unsafe.Pointer(first.c)), first.ldc, first.rows, first.cols)
	}
	for p := 0; p < g.steps; p += run {
		for j := 0; j < first.cols; j += across {
			t := &g.s.args
			*t = *first
			t.a, t.b, t.c = offset(t.a, p*t.stepA), offset(t.b, j*t.strideB+2*p*stepBF16), offset(t.c, j*width)
			t.steps, t.cols = min(run, g.steps-p), min(across, first.cols-j)
			t.ahead, t.strideAhead = uintptr(unsafe.Pointer(t.b))+uintptr(t.strideB), t.strideB
			if g.s.ahead != 0 {
				t.strideAhead = t.rows * t.steps * aheadStep
				t.ahead = g.s.ahead + uintptr(j*t.strideAhead)
			}
			if run < g.steps || !g.first || !g.last || seed {
				t.partial = &partial[j*t.rows*stepBF16]
			}
			switch {
			case p > 0 || !g.first || seed:
				t.load = 2
			case g.accumulate:
				t.load = 1
			}
			if p+run < g.steps || !g.last {
				t.keep = 1
			}
			g.s.chooser.runTiles(t)
		}
	}
}

// offset is p plus this many bytes.
func offset[T any](p *T, bytes int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), bytes)) }

// runOf divides k into runs of about the same length.
func runOf(steps int) int {
	if steps <= maxSingle {
		return steps
	}
	runs := (steps + maxRun - 1) / maxRun
	return (steps + runs - 1) / runs
}

// runTiles picks the kernel that writes a tile in as many steps of k as the next one has, and of the wide and the
// narrow ones the one that is currently faster.
func (c *chooser) runTiles(t *tileArgs) {
	kernels, at := &tileKernels[t.halves][t.far], min(4, bits.Len(uint(t.steps))-1)
	work := t.rows * t.cols * t.steps
	if work < leastTimed {
		kernels[c.kernel][at](t)
		return
	}
	kind := t.far<<4 | t.halves<<3 | t.load<<1 | t.keep
	kernel, trial := c.pick(kind, t.steps)
	steps, begin := t.steps, time.Now()
	kernels[kernel][at](t)
	c.took(kernel, kind, steps, float64(time.Since(begin))/float64(work), trial)
}

// chooser records which kernel was faster on this worker's core. The other hyperthread of a core may become busy or
// idle within milliseconds: if it is busy the narrow kernel is faster, otherwise the wide one. Both give the same bits,
// so the choice affects nothing else. Occasionally a call uses the other kernel and its time is compared with that of
// the last call of the same kind: soon after a change, which may have been an accident, then less and less often.
type chooser struct {
	kernel      int // 0 wide, 1 narrow
	count, wait int // calls since the last trial, and how many there should be
	last        [32]lastCall
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

// pick returns the kernel to run, and whether that is a trial.
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

// half computes up to 16 rows, padded, to c.
func (g *gemmBF16) half(ldc int, c []float32) {
	step := max(1, 4*maxCall/g.steps)
	for c0 := 0; c0 < g.n; c0 += step * PanelBF16 {
		t := &g.s.args
		*t = tileArgs{a: &g.a[0], b: &g.b[c0/PanelBF16*g.strideB], c: &c[c0], config: &tileConfig[0], ldc: 4 * ldc,
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
				edge := View{X: Grow(&g.s.edge, rows*PanelBF16), Ld: PanelBF16}
				if g.accumulate {
					g.pad(edge, i, j, rows, cols)
				}
				kernel(g.steps, &g.row(i)[0], b, &edge.X[0], PanelBF16, g.accumulate)
				g.unpad(edge, i, j, rows, cols)
			} else {
				kernel(g.steps, &g.row(i)[0], b, &g.c[i*g.ldc+j], g.ldc, g.accumulate)
			}
			i += rows
		}
	}
}
