package simd

import "fmt"

// packers lay out a matrix of float32, which they round, or of bfloat16 in tiles. They may all be absent. Rows and
// columns are padded with zeros.
type packers[T float32 | uint16] struct {
	// lines and linesTurn pack up to 16 rows of A [m,k], or of B [n,k], one tile for each step of k, a panel's step
	// apart.
	lines, linesTurn func(dst *uint16, src *T, ld, rows, k int)
	// pairs packs up to 8 rows of B [k,n] into 4 lines of the tiles of a step, panels stride bytes apart.
	pairs func(dst *uint16, src *T, ld, rows, cols, stride int)
	// turn makes a step of A from one of B. src is the source of that step, whose following data will be needed soon.
	turn func(dst *uint16, panels, stride int, src *T, ld int)
	// down packs 32 rows of A [k,m], whole panels of them, into a step. It may be absent although the others are not.
	down func(dst *uint16, src *T, ld, panels, stride int)
}

const pairRows = 8 // of a call of pairs

// PackABF16 rounds op(a) [m,k] to bfloat16 and packs it. a is [k,m] when trans.
func PackABF16(dst []uint16, m, k int, a View, trans bool) {
	packBF16(dst, m, k, a, trans, false, k)
}

// PackBBF16 rounds op(b) [k,n] to bfloat16 and packs it. b is [n,k] when trans. depth is k, or that of a larger operand
// of which this is a part: steps starting at element p of k go to dst[32·p:].
func PackBBF16(dst []uint16, k, n int, b View, trans bool, depth int) {
	packBF16(dst, n, k, b, !trans, true, depth)
}

// PackDownBF16 packs x [k,across], a left operand given transposed or a right one, as part of an operand that is depth
// along k.
func PackDownBF16(dst []uint16, across, k int, x View, depth int, right bool) {
	packBF16(dst, across, k, x, true, right, depth)
}

// packBF16 packs a matrix with k along its rows in memory, or down its columns when down, in A's layout or in B's.
func packBF16(dst []uint16, across, k int, src View, down, b bool, depth int) {
	if across == 0 || k == 0 {
		return
	}
	rows, cols := across, k
	if down {
		rows, cols = k, across
	}
	if len(dst) < panelsBF16(across, k, depth) || src.size() < (rows-1)*src.Ld+cols {
		panic(fmt.Sprintf("simd: pack bf16 of %d×%d (ld %d) from %d into %d elements", rows, cols, src.Ld,
			src.size(), len(dst)))
	}
	switch {
	case cur.floats.lines == nil:
		packPlain(dst, across, k, src, down, b, depth)
	case src.H != nil:
		packFast(dst, across, k, src.H, src.Ld, down, b, depth, &cur.halves)
	default:
		packFast(dst, across, k, src.X, src.Ld, down, b, depth, &cur.floats)
	}
}

// packFast packs with kernels: 16 rows at a time or, if k goes down, one step of k after the other, along the rows.
func packFast[T float32 | uint16](dst []uint16, across, k int, src []T, ld int, down, b bool, depth int,
	kernels *packers[T]) {
	stride := SizeBF16(PanelBF16, depth)
	row := func(at int) *T { return &src[min(at, len(src)-1)] } // nothing is read after the last row
	if down {
		for p := 0; p < k; p += PanelBF16 {
			step, at, left := dst[p*PanelBF16:], p*ld, across
			if whole := across / PanelBF16; !b && kernels.down != nil && whole > 0 && k-p >= PanelBF16 {
				kernels.down(&step[0], &src[at], ld, whole, 2*stride)
				if left = across % PanelBF16; left == 0 {
					continue
				}
				step, at = step[whole*stride:], at+whole*PanelBF16
			}
			for r := 0; r < PanelBF16; r += pairRows {
				kernels.pairs(&step[r/2*PanelBF16], row(at+r*ld), ld, k-p-r, left, 2*stride)
			}
			if !b {
				kernels.turn(&step[0], up32(left)/PanelBF16, 2*stride, row(at), ld)
			}
		}
		return
	}
	kernel := kernels.lines
	if b {
		kernel = kernels.linesTurn
	}
	for i := 0; i < up32(across); i += tileBF16 {
		kernel(&dst[i/PanelBF16*stride+i%PanelBF16*PanelBF16], row(i*ld), ld, across-i, k)
	}
}

// packPlain packs without kernels.
func packPlain(dst []uint16, across, k int, src View, down, b bool, depth int) {
	for i := 0; i < up32(across); i += tileBF16 {
		panel := dst[i/PanelBF16*SizeBF16(PanelBF16, depth)+i%PanelBF16*PanelBF16:]
		for p := 0; p < k; p += PanelBF16 {
			packTile((*tileOfBF16)(panel[p*PanelBF16:]), min(across-i, tileBF16), min(k-p, PanelBF16), src,
				i, p, down, b)
		}
	}
}

// tileOfBF16 is a tile of a packed operand.
type tileOfBF16 = [tileBF16 * PanelBF16]uint16

// packTile packs n rows (of A, or columns of B) starting at i, which may be none, and depth elements of k starting at p
// into a tile, padded with zeros. It goes along the rows in memory.
func packTile(tile *tileOfBF16, n, depth int, src View, i, p int, down, b bool) {
	if n < tileBF16 || depth < PanelBF16 {
		clear(tile[:])
	}
	if n <= 0 {
		return
	}
	var buf [PanelBF16]uint16
	switch {
	case down:
		for q := range depth {
			at, step := q, PanelBF16
			if b {
				at, step = q/2*PanelBF16+q%2, 2
			}
			for _, x := range src.halves((p+q)*src.Ld+i, n, &buf) {
				tile[at] = x
				at += step
			}
		}
	case b:
		for r := range n {
			x, at := src.halves((i+r)*src.Ld+p, depth, &buf), 2*r
			for ; len(x) > 1; x = x[2:] {
				to := tile[at:][:2]
				to[0], to[1] = x[0], x[1]
				at += PanelBF16
			}
			if len(x) > 0 {
				tile[at] = x[0]
			}
		}
	default:
		for r := range n {
			copy(tile[r*PanelBF16:], src.halves((i+r)*src.Ld+p, depth, &buf))
		}
	}
}
