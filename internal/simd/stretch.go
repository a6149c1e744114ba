package simd

import "fmt"

// stretchKernels attend few rows to keys and values read directly from a cache. They sum like forwardTile, bit for bit.
// They may be absent.
type stretchKernels struct {
	keys   []func(*stretchKeys)   // for 1, 2 … queries
	values []func(*stretchValues) // for one and for two rows at a time
	soft   func(*stretchSoft)
	join   func(*joinArgs)
}

// BlockRows is the number of positions of a block of AttnFew, fewBlocks the most blocks that it has.
const (
	BlockRows = 16
	fewBlocks = TileCols / BlockRows
)

// AttnFew is AttnRows for a few queries of all groups at once, whose keys and values are in a cache as bfloat16, with a
// position's heads adjacent. A group has Keys key heads, each with Queries queries; all its rows use its values. Rows
// are in that order.
type AttnFew struct {
	Groups, Keys, Queries int
	Cols                  int                 // positions, at most TileCols
	D, DV                 int                 // multiples of PanelBF16
	Q                     []uint16            // [rows, D], see SetQuery
	K, V                  [fewBlocks][]uint16 // each 16 positions' rows
	LdK, LdV              int                 // from a position to the next
	Next                  [2][]uint16         // blocks that are wanted after this
	Hi                    []int32             // each row attends to columns 0 … Hi−1
	Scale                 float32             // times log2 e
	Logits                []float32           // [rows, TileCols], lost
	Top, Sum              []float32           // [rows], at first −Inf and 0
	Acc                   []float32           // [rows, DV], at first 0
}

// FewAttn is the number of rows of a group up to which Few is faster than Forward on packed keys and values; 0 where it
// cannot run.
func FewAttn() int {
	if cur.soft == nil {
		return 0
	}
	return len(cur.keys)
}

// Few runs x.
func (t *AttnTile) Few(x *AttnFew) {
	x.check()
	rows := x.Groups * x.Keys * x.Queries
	blocks := (x.Cols + BlockRows - 1) / BlockRows
	t.fewKeys(x, blocks)
	s := &t.few.soft
	*s = stretchSoft{logits: &x.Logits[0], top: &x.Top[0], sum: &x.Sum[0], acc: &x.Acc[0], hi: &x.Hi[0], rows: rows,
		steps: (x.Cols + PanelBF16 - 1) / PanelBF16, vectors: x.DV / tileBF16, scale: x.Scale}
	cur.soft(s)
	for b := 0; b < blocks; b += 2 {
		t.fewValues(x, b, [2]*uint16{x.after(blocks+b+2, blocks), x.after(blocks+b+3, blocks)})
	}
}

// fewArgs are the arguments of Few's kernels.
type fewArgs struct {
	keys   stretchKeys
	values stretchValues
	soft   stretchSoft
	join   joinArgs
}

// after is block i of what Few reads: blocks of keys, then as many of values, then what comes next.
func (x *AttnFew) after(i, blocks int) *uint16 {
	from := x.K[0]
	switch {
	case i < blocks:
		from = x.K[i]
	case i < 2*blocks:
		from = x.V[i-blocks]
	case i < 2*blocks+2 && len(x.Next[i-2*blocks]) > 0:
		from = x.Next[i-2*blocks]
	}
	return &from[0]
}

// SetQuery rounds row i's query to its place in Q.
func (x *AttnFew) SetQuery(i int, q View) {
	for p := 0; p < x.D; p += PanelBF16 {
		at := (i/x.Queries*x.D/PanelBF16+p/PanelBF16)*x.Queries + i%x.Queries
		if to := x.Q[at*PanelBF16:][:PanelBF16]; q.H != nil {
			copy(to, q.H[p:p+PanelBF16])
		} else {
			NarrowBF16(to, q.X[p:p+PanelBF16])
		}
	}
}

func (t *AttnTile) fewKeys(x *AttnFew, blocks int) {
	a := &t.few.keys
	*a = stretchKeys{q: &x.Q[0], logits: &x.Logits[0], ld: 2 * x.LdK, heads: x.Groups * x.Keys, steps: x.D / PanelBF16,
		count: blocks}
	for b := range blocks {
		a.k[b], a.next[b] = &x.K[b][0], x.after(b+2, blocks)
	}
	cur.keys[x.Queries-1](a)
}

func (t *AttnTile) fewValues(x *AttnFew, b int, next [2]*uint16) {
	a, kernel, times := &t.few.values, 0, x.Keys*x.Queries
	if times%2 == 0 {
		kernel, times = 1, times/2
	}
	*a = stretchValues{p: &x.Logits[b*BlockRows], acc: &x.Acc[0], ld: 2 * x.LdV, next: next, groups: x.Groups,
		pieces: x.DV / PanelBF16, turns: times, count: min(x.Cols-b*BlockRows, 2*BlockRows), ldacc: 4 * x.DV}
	for i := range 2 {
		if a.v[i] = a.v[0]; i*BlockRows < a.count {
			a.v[i] = &x.V[b+i][0]
		}
	}
	cur.values[kernel](a)
}

// check panics where an operand is too short.
func (x *AttnFew) check() {
	rows := x.Groups * x.Keys * x.Queries
	ok := rows > 0 && x.Cols > 0 && x.Cols <= TileCols && x.D > 0 && x.D%PanelBF16 == 0 && x.DV > 0 &&
		x.DV%PanelBF16 == 0 && len(x.Q) >= rows*x.D && len(x.Logits) >= rows*TileCols &&
		min(len(x.Top), len(x.Sum), len(x.Hi)) >= rows && len(x.Acc) >= rows*x.DV
	for b := 0; ok && b*BlockRows < x.Cols; b++ {
		used := min(BlockRows, x.Cols-b*BlockRows)
		ok = len(x.K[b]) >= (BlockRows-1)*x.LdK+x.Groups*x.Keys*x.D && len(x.V[b]) >= (used-1)*x.LdV+x.Groups*x.DV
	}
	if !ok {
		panic(fmt.Sprintf("simd: attention of %d×%d×%d rows and %d positions (%d, %d): operands too short", x.Groups,
			x.Keys, x.Queries, x.Cols, x.D, x.DV))
	}
}

// JoinRows: x[r·ldx+c] = fx[r]·x[r·ldx+c] + fy[r]·y[r·ldy+c] for c < cols.
func (t *AttnTile) JoinRows(x []float32, ldx int, y []float32, ldy, rows, cols int, fx, fy []float32) {
	if rows == 0 || cols == 0 {
		return
	}
	if len(x) < (rows-1)*ldx+cols || len(y) < (rows-1)*ldy+cols || min(len(fx), len(fy)) < rows {
		panic(fmt.Sprintf("simd: join %d×%d of %d (ld %d) and %d (ld %d) elements", rows, cols, len(x),
			ldx, len(y), ldy))
	}
	if cur.join != nil && cols%16 == 0 {
		t.few.join = joinArgs{&x[0], &y[0], &fx[0], &fy[0], 4 * ldx, 4 * ldy, rows, cols / 16}
		cur.join(&t.few.join)
		return
	}
	for r := range rows {
		row := x[r*ldx:][:cols]
		if fx[r] != 1 {
			cur.scale(row, fx[r])
		}
		cur.axpy(row, fy[r], y[r*ldy:][:cols])
	}
}
