package cpu

import "antiphase/tensor"

// chunk is the number of elements in one tile of an elementwise op: 64 KiB of float32, enough to hide the handout
// and small enough to stay in the second cache between the passes of one tile.
const chunk = 16384

// grid cuts a rows × cols matrix into tiles of about chunk elements, by shape alone.
type grid struct {
	rows, cols       int
	rowStep, colStep int
	across           int // tiles side by side
}

func gridOf(rows, cols int) grid {
	g := grid{rows: rows, cols: cols, colStep: min(max(cols, 1), chunk)}
	g.rowStep = chunk / g.colStep
	g.across = (cols + g.colStep - 1) / g.colStep
	return g
}

// tiles is their number.
func (g *grid) tiles() int { return (g.rows + g.rowStep - 1) / g.rowStep * g.across }

// span is tile i: rows [r0,r1), columns [c0,c1).
func (g *grid) span(i int) (r0, r1, c0, c1 int) {
	r0, c0 = i/g.across*g.rowStep, i%g.across*g.colStep
	return r0, min(r0+g.rowStep, g.rows), c0, min(c0+g.colStep, g.cols)
}

// flat turns tensors that are all dense into single rows, so that narrow ones are cut into full tiles too.
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
