package cpu

import (
	"runtime"
	"sync/atomic"

	"antiphase/internal/simd"
)

// gemmGrad is the gradient of a weight, c = aᵀ·b: both operands are activations [k,·], k the tokens, and larger than C.
// Tiles of C process the tokens in runs. A tile packs its columns of one operand, usually the wider one, a run at a
// time, just before it multiplies them, and keeps its sums in L2 until the last run. The other operand is shared:
// packed once for all tiles, each run of it by the workers that need it first. However C is divided, an element is one
// chain of additions in the order of tokens.
type gemmGrad struct {
	d          *machine
	c, a, b    mat
	accumulate bool
	right      bool // tiles pack columns of B, and A is shared
	wide, rest int  // columns of the operand that tiles pack, and of the shared one
	k, run     int
	mb, nb     int // tile of C
	shared     []uint16
	runs       []gradRun
}

// gradRun counts the pieces of a run of the shared operand that were begun and that are packed.
type gradRun struct{ next, done atomic.Int32 }

const (
	// runGrad is the length of a run if there are several: a panel of it stays in L1.
	runGrad = 512
	// gradAcross bounds a tile's columns of its own operand, gradAlong those of the shared one if there are several
	// runs. gradLeast is the smallest width of tiles with many workers.
	gradAcross, gradAlong, gradLeast = 8 * panel, 12 * panel, 2 * panel
	// manyTiles per worker need not be balanced.
	manyTiles = 4
)

// gradBF16 is c = aᵀ·b, or c += with accumulate.
func (d *products) gradBF16(c, a, b mat, k int, accumulate bool) {
	g := &d.matmulGrad
	*g = gemmGrad{d: d.machine, c: c, a: a, b: b, accumulate: accumulate, k: k, runs: g.runs}
	g.divide()
	g.cut()
	g.shared = simd.Halves(d.room(simd.FloatsBF16(g.rest, k)))
	for w := range d.workers {
		d.scratch(w).A(simd.FloatsBF16(max(g.mb, g.nb), g.run))
		d.scratch(w).ReserveBF16(g.mb, g.nb, g.run)
	}
	runs := (k + g.run - 1) / g.run
	if len(g.runs) < runs {
		g.runs = make([]gradRun, runs)
	}
	for i := range runs {
		g.runs[i].next.Store(0)
		g.runs[i].done.Store(0)
	}
	d.run((c.rows+g.mb-1)/g.mb*((c.cols+g.nb-1)/g.nb), g)
}

// divide picks the operand that tiles pack: the wider one, or A in a single run of a single worker. The kernel
// prefetches the next columns of a shared B, while rows of a shared A would come from L3 without that. Among several
// workers a large shared operand costs more, because most of it is in the cache of another core.
func (g *gemmGrad) divide() {
	left := g.k <= runBF16 && len(g.d.workers) == 1
	if g.right = g.c.cols > g.c.rows && !left; g.right {
		g.wide, g.rest = g.c.cols, g.c.rows
	} else {
		g.wide, g.rest = g.c.rows, g.c.cols
	}
}

// cut picks the run and the tile of C: as many strips as are needed, and more until they are balanced among the
// workers, unless there are many per worker.
func (g *gemmGrad) cut() {
	rest, workers := g.rest, len(g.d.workers)
	g.run = g.k
	if g.k > runBF16 {
		g.run, rest = evenRun(g.k, runGrad), min(rest, gradAlong)
	}
	g.run = (g.run + packSpan - 1) / packSpan * packSpan
	along, strips := (g.rest+rest-1)/rest, (g.wide+gradAcross-1)/gradAcross
	for strips*along%workers != 0 && strips*along < manyTiles*workers && strips < g.wide/gradLeast {
		strips++
	}
	g.mb, g.nb = ((g.wide+strips-1)/strips+panel-1)/panel*panel, rest
	if g.right {
		g.mb, g.nb = g.nb, g.mb
	}
}

// pack packs n columns, starting at i, of tokens p … p+k−1 of an operand into one that is depth along k.
func (g *gemmGrad) pack(dst []uint16, right bool, i, n, p, k, depth int) {
	x := &g.a
	if right {
		x = &g.b
	}
	simd.PackDownBF16(dst, n, k, x.at(p, i), depth, right)
}

// sharedAt is where the run at p of the shared operand lies, packed, starting at column i.
func (g *gemmGrad) sharedAt(i, p int) []uint16 {
	return g.shared[simd.SizeBF16(g.rest, p)+simd.SizeBF16(i, min(g.run, g.k-p)):]
}

// sharedRun is the same when it is packed: it packs pieces that no worker has begun and waits for the others.
func (g *gemmGrad) sharedRun(i, p int) []uint16 {
	k := min(g.run, g.k-p)
	run, pieces := &g.runs[p/g.run], int32((k+packSpan-1)/packSpan)
	packed := g.sharedAt(0, p)
	for run.next.Load() < pieces {
		at := int(run.next.Add(1)-1) * packSpan
		if at >= k {
			break
		}
		g.pack(packed[panel*at:], !g.right, 0, g.rest, p+at, min(packSpan, k-at), k)
		run.done.Add(1)
	}
	for turn := 1; run.done.Load() < pieces; turn++ {
		if turn%1024 == 0 {
			runtime.Gosched() // the other worker may be waiting for this processor
		}
	}
	return g.sharedAt(i, p)
}

func (g *gemmGrad) tile(i, worker int) {
	across := (g.c.cols + g.nb - 1) / g.nb
	r, j := i/across*g.mb, i%across*g.nb
	m, n := min(g.mb, g.c.rows-r), min(g.nb, g.c.cols-j)
	s := g.d.scratch(worker)
	for p := 0; p < g.k; p += g.run {
		k := min(g.run, g.k-p)
		var pa, pb []uint16
		if g.right {
			pa = g.sharedRun(r, p)
			pb = simd.Halves(s.A(simd.FloatsBF16(n, k)))
			g.pack(pb, true, j, n, p, k, k)
		} else {
			pb = g.sharedRun(j, p)
			pa = simd.Halves(s.A(simd.FloatsBF16(m, k)))
			g.pack(pa, false, r, m, p, k, k)
		}
		if g.right && g.run < g.k {
			// B is in L2, the next run of A may not be. After the last run comes the next tile's first one.
			next := p + g.run
			if next >= g.k {
				next = 0
			}
			s.AheadBF16(g.sharedAt(r, next))
		}
		// A gradient is not read soon: non-temporal stores.
		simd.GemmPartBF16(m, n, k, pa, pb, k, g.c.at(r, j), g.accumulate, true, p == 0, p+k == g.k, s)
	}
}
