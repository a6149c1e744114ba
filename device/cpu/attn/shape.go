package attn

import (
	"antiphase/device"
	"antiphase/internal/simd"
)

// Sizes of tiles of the attention map: the logits of one query tile and one key tile are alive at a time, for each map,
// in the worker's L2 cache together with their operands.
const (
	queryTile     = 64
	queryTileHalf = 128           // forward with bfloat16 factors
	queryTileGrad = 256           // backward with bfloat16 factors, at most
	keyTile       = simd.TileCols // a multiple of queryTile
)

// shape is the geometry of an op: the columns of heads, the division of the map into tiles, and what a row attends to.
// The index m runs over the maps of a head.
type shape struct {
	device.AttnShape
	maps  int // softmax maps per head: 1 plain, 2 differential
	keys  int // key heads per group
	start []int32
	tall  int // queries of a query tile
}

// queryCol and keyCol are the first columns of map m's query head in Q and key head in K.
func (s *shape) queryCol(h, m int) int { return (h*s.maps + m) * s.D }
func (s *shape) keyCol(g, m int) int   { return (g*s.keys + s.keyHead(m)) * s.D }

// keyHead is map m's key head within a group.
func (s *shape) keyHead(m int) int { return min(m, s.keys-1) }

// perGroup is the number of heads that share one group's keys and values, headsOf the range of a group's.
func (s *shape) perGroup() int                 { return s.Heads / s.Groups }
func (s *shape) headsOf(g int) (from, end int) { return g * s.perGroup(), (g + 1) * s.perGroup() }

func (s *shape) queryTiles() int { return ceil(s.T, s.tall) }
func (s *shape) keyTiles() int   { return ceil(s.T, keyTile) }

// queriesIn is the number of queries in query tile qt, keysIn that of keys in key tile kt.
func (s *shape) queriesIn(qt int) int { return min(s.tall, s.T-qt*s.tall) }
func (s *shape) keysIn(kt int) int    { return min(keyTile, s.T-kt*keyTile) }

// begin is the first key that row n (of the batch) attends to, within its sequence.
func (s *shape) begin(n int) int {
	if s.start == nil {
		return 0
	}
	return int(s.start[n])
}

// window is the range of columns of the key tile at k0 (nk wide) that row n, query t of its sequence, attends to.
// It may be empty.
func (s *shape) window(n, t, k0, nk int) (lo, hi int) {
	hi = min(nk, t+1-k0)
	return min(max(0, s.begin(n)-k0), max(0, hi)), max(0, hi)
}

// live is the range of columns of the key tile at k0 that any of nq rows attends to, which begin with row n, query t.
// It is widened to the left to whole panels of packed keys. Columns outside are not computed.
func (s *shape) live(n, t, nq, k0, nk, panel int) (from, to int) {
	from, to = max(0, s.begin(n)-k0), min(nk, t+nq-k0)
	return from - from%panel, to
}

// windows are the columns that the rows of a query tile attend to in a key tile, and what each 32 of them have in
// common, as simd.AttnGrad takes them. Padding rows attend to everything.
type windows struct {
	lo, hi [queryTileGrad]int32
	live   [queryTileGrad / simd.PanelBF16]int32
	masked bool // any is
}

// find fills w for nq rows, np including padding of the last panel, which begin with row n, query t; and for columns
// from … from+width−1, whole panels, of the key tile at k0. lo and hi are set only if any row is masked.
func (w *windows) find(s *shape, n, t, nq, np, k0, nk, from, width int) {
	const strip = simd.PanelBF16
	w.masked = false
	for r0 := 0; r0 < nq; r0 += strip {
		last := min(nq, r0+strip) - 1
		_, end := s.window(n+last, t+last, k0, nk)
		live := int32(max(1, min(width, end-from+strip-1)/strip))
		if t+r0-k0 < from+width-1 || from+width > nk || s.begin(n+last)-k0 > from {
			live |= simd.Masked
			w.masked = true
		}
		w.live[r0/strip] = live
	}
	for r := 0; r < np && w.masked; r++ {
		w.lo[r], w.hi[r] = 0, int32(width)
		if r < nq {
			lo, hi := s.window(n+r, t+r, k0, nk)
			w.lo[r], w.hi[r] = int32(lo-from), int32(hi-from)
		}
	}
}

// repeat gives rows count … n−1, those of further heads, the columns of the first count. A panel may then mix rows of
// any queries.
func (w *windows) repeat(count, n, width int) {
	live := int32(width / simd.PanelBF16)
	if w.masked {
		live |= simd.Masked
	}
	for r := 0; r < n; r += simd.PanelBF16 {
		w.live[r/simd.PanelBF16] = live
	}
	for r := count; r < n && w.masked; r++ {
		w.lo[r], w.hi[r] = w.lo[r-count], w.hi[r-count]
	}
}

// ceil is n/d, rounded up.
func ceil(n, d int) int { return (n + d - 1) / d }
