package cpu

import "antiphase/tensor"

// chunk is the number of elements in one tile of an elementwise op: 64 KiB of float32, enough to amortise the
// distribution and small enough to stay in L2 between the passes of one tile.
const chunk = 16384

// grid divides a rows × cols matrix into tiles of about chunk elements, by shape alone.
type grid struct {
	rows, cols       int
	rowStep, colStep int
	across           int // tiles per row of tiles
}

func gridOf(rows, cols int) grid {
	g := grid{rows: rows, cols: cols, colStep: min(max(cols, 1), chunk)}
	g.rowStep = chunk / g.colStep
	g.across = (cols + g.colStep - 1) / g.colStep
	return g
}

// tiles is the number of tiles.
func (g *grid) tiles() int { return (g.rows + g.rowStep - 1) / g.rowStep * g.across }

// bounds are those of tile i: rows [r0,r1), columns [c0,c1).
func (g *grid) bounds(i int) (r0, r1, c0, c1 int) {
	r0, c0 = i/g.across*g.rowStep, i%g.across*g.colStep
	return r0, min(r0+g.rowStep, g.rows), c0, min(c0+g.colStep, g.cols)
}

// pieceLen is the number of elements that an op processes at once: three pieces of float32 stay in L1.
const pieceLen = 1024

// pieces iterates over a tile: columns [c0,c1) of row r, at most pieceLen of them at a time.
type pieces struct {
	r, c0, c1       int
	rows, from, end int
}

// pieces is the iteration over tile i.
func (g *grid) pieces(i int) pieces {
	r0, r1, c0, c1 := g.bounds(i)
	return pieces{r: r0 - 1, c1: c1, rows: r1, from: c0, end: c1}
}

// next moves to the next piece, and reports whether there is one.
func (p *pieces) next() bool {
	p.c0 = p.c1
	if p.c0 == p.end {
		p.r, p.c0 = p.r+1, p.from
	}
	p.c1 = min(p.c0+pieceLen, p.end)
	return p.r < p.rows
}

// ahead is the distance in a matrix from this piece to the next.
func (p *pieces) ahead(m *mat) int {
	if p.c1 < p.end {
		return pieceLen
	}
	return m.ld + p.from - p.c0
}

// stage is the worker's own memory for three pieces in float32; see reserve.
func (d *machine) stage(worker int) (a, b, c []float32) {
	buf := d.buf(worker, 3*pieceLen)
	return buf[:pieceLen], buf[pieceLen : 2*pieceLen], buf[2*pieceLen:]
}

// reserve grows every worker's memory to n floats, so that no tile allocates.
func (d *machine) reserve(n int) {
	for w := range d.workers {
		d.buf(w, n)
	}
}

// flat turns tensors that are all dense into single rows, so that narrow ones are also divided into full tiles.
func flat(ts ...*tensor.Tensor) {
	for _, t := range ts {
		if !t.Dense() {
			return
		}
	}
	for _, t := range ts {
		*t = t.Reshape(1, t.Len())
	}
}
