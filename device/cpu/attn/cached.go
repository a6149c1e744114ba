package attn

// cached attends from rows to a paged cache; Raw, Rstd, LSE and Out2 are not written.
//
// A row processes its positions in stretches of two key tiles, counted from position 0: an online softmax within a
// stretch; stretches are joined in the order of positions. An element of a product is one chain over k for any number
// of rows, and a masked position adds an exact 0 to its end: so a row's bits are the same alone, in a batch or in a
// prompt, with pages of any size. Prompts and few rows only differ in the division of work.
type cached struct {
	op
	pages
	at      Places
	prompt  prompt
	stretch stretches
}

const (
	// stretchTiles is the number of key tiles in a stretch. Bits depend on it.
	stretchTiles = 2
	stretchKeys  = stretchTiles * keyTile
	// fewRows is the maximum number of rows of a slot that are not treated as a prompt.
	fewRows = 32
)

// bundle is rows of one slot at consecutive positions: a prompt's, or a single one.
type bundle struct {
	row, count int
	slot, pos  int // of the first row
	sumsAt     int // offset of its sums, see stretches.sums
}

// keys is the number of positions that the last row attends to, stretches that of their stretches.
func (b *bundle) keys() int      { return b.pos + b.count }
func (b *bundle) stretches() int { return ceil(b.keys(), stretchKeys) }

// run runs the whole op.
func (c *cached) run() {
	c.Raw, c.Rstd, c.LSE, c.Out2, c.start = Matrix{}, Matrix{}, Matrix{}, Matrix{}, nil
	c.bundle()
	few := c.bundles[:0]
	for _, b := range c.bundles {
		if b.count > fewRows {
			c.prompt = prompt{cached: c, bundle: b}
			c.prompt.run()
		} else {
			few = append(few, b)
		}
	}
	c.bundles = few
	c.stretch = stretches{cached: c}
	c.stretch.run()
}

// bundle divides the rows into bundles.
func (c *cached) bundle() {
	all := c.bundles[:0]
	for n, slot := range c.at.Slot {
		pos := int(c.at.Pos[n])
		if last := len(all) - 1; last >= 0 && all[last].slot == int(slot) && all[last].keys() == pos {
			all[last].count++
			continue
		}
		all = append(all, bundle{row: n, count: 1, slot: int(slot), pos: pos})
	}
	c.bundles = all
}

// denseSize is the number of floats that pack and queries.open need to gather rows.
func (c *cached) denseSize() int { return keyTile * max(c.D, c.DV) }

// pack packs nk positions of a slot starting at p0 for groups g0 … g1−1, whose kv are stride floats apart: one panel of
// positions after the other, in memory order.
func (c *cached) pack(slot, p0, nk, g0, g1 int, dst []float32, stride int, dense []float32) {
	for t := 0; t < nk; t += c.step(keyTile) {
		n := min(c.step(keyTile), nk-t)
		end := c.whole(n)
		for g := g0; g < g1; g++ {
			x := c.kvOf(dst[(g-g0)*stride:])
			for m := range c.keys {
				k := c.gather(&c.pages.K, slot, p0+t, n, end, c.keyCol(g, m), c.D, dense)
				c.packB(c.columnsAt(x.keys[m], c.D, t), c.D, end, k, true)
			}
		}
		for g := g0; g < g1; g++ {
			v := c.gather(&c.pages.V, slot, p0+t, n, end, g*c.DV, c.DV, dense)
			c.packRows(c.kvOf(dst[(g-g0)*stride:]).values, t, end, c.DV, v, nk)
		}
	}
}
