package attn

import (
	"fmt"

	"antiphase/internal/simd"
)

// Cache is a device.Cache: keys and values are bfloat16 if operands of products are, otherwise float32.
type Cache struct {
	K, V     Matrix // rows of all heads
	Table    []int32
	LdTable  int
	Slots    int // rows of the table
	Pages    int // of a slot, at most
	PageSize int
}

// Places are the positions of rows in a cache: row n at position Pos[n] of slot Slot[n].
type Places struct{ Slot, Pos []int32 }

// pages finds positions in a cache.
type pages struct{ Cache }

// blocked reports whether pages are whole blocks of positions.
func (p *pages) blocked() bool { return p.PageSize%simd.BlockRows == 0 && p.K.Rows%p.PageSize == 0 }

// place is the cache row of position pos of a slot.
func (p *pages) place(slot, pos int) int {
	return int(p.Table[slot*p.LdTable+pos/p.PageSize])*p.PageSize + pos%p.PageSize
}

// check returns an error unless every position that rows touch has a page: all positions up to theirs when they attend,
// only their own when they write.
func (p *pages) check(r Places, attend bool) error {
	from, last := 0, int32(-1) // the pages of a prompt's previous row are already checked
	for n, at := range r.Pos {
		page, slot := int(at)/p.PageSize, r.Slot[n]
		switch {
		case !attend:
			from = page
		case slot == last:
			from = min(from, page)
		default:
			from = 0
		}
		last = slot
		ok := slot >= 0 && int(slot) < p.Slots && at >= 0 && page < p.Pages
		for ; ok && from <= page; from++ {
			row := p.place(int(slot), from*p.PageSize)
			ok = row >= 0 && row+min(p.PageSize, int(at)+1-from*p.PageSize) <= p.K.Rows
		}
		if !ok {
			return fmt.Errorf("cpu: cache: position %d of slot %d (row %d) is in no page: "+
				"the table has %d slots of %d pages of %d positions, the cache %d rows",
				at, slot, n, p.Slots, p.Pages, p.PageSize, p.K.Rows)
		}
	}
	return nil
}

// gather is columns c … c+width−1 of n positions of a slot starting at pos, padded with zeros to end rows: in place if
// they are contiguous and n is end, otherwise copied to dense.
func (p *pages) gather(x *Matrix, slot, pos, n, end, c, width int, dense []float32) simd.View {
	row := p.place(slot, pos)
	whole := n == end
	for j := p.PageSize - pos%p.PageSize; j < n && whole; j += p.PageSize {
		whole = p.place(slot, pos+j) == row+j
	}
	if whole {
		return x.From(row, c)
	}
	v := likeView(&x.View, dense, width)
	for j := range n {
		copyRow(v, j, x.From(p.place(slot, pos+j), c), width)
	}
	if v.H != nil {
		clear(v.H[n*width : end*width])
	} else {
		clear(v.X[n*width : end*width])
	}
	return v
}

// cacheWrite copies rows of k and v into the pages, in their dtype.
type cacheWrite struct {
	pages
	k, v Matrix
	at   Places
}

// writeRows is the number of rows in one tile.
const writeRows = 16

// Tile writes the rows of tile i.
func (w *cacheWrite) Tile(i, _ int) {
	for n := i * writeRows; n < min((i+1)*writeRows, len(w.at.Pos)); n++ {
		row := w.place(int(w.at.Slot[n]), int(w.at.Pos[n]))
		store(w.K.From(row, 0), w.k.From(n, 0), w.k.Cols)
		store(w.V.From(row, 0), w.v.From(n, 0), w.v.Cols)
	}
}

// store copies n elements, rounded if only dst is bfloat16.
func store(dst, src simd.View, n int) {
	switch {
	case src.H != nil:
		copy(dst.H[:n], src.H)
	case dst.H != nil:
		simd.NarrowBF16(dst.H[:n], src.X[:n])
	default:
		copy(dst.X[:n], src.X)
	}
}
