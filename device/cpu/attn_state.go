package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// Tiles of the attention map: queryTile × keyTile logits of each map are alive at a time, in the worker's own
// second-level cache together with the operands that meet there. No other part of a T×T map is ever stored.
const (
	queryTile = 64
	halfTile  = 128           // of the forward pass with bfloat16 factors
	tallTile  = 256           // of the backward pass with bfloat16 factors
	keyTile   = simd.TileCols // a multiple of queryTile
)

// packBudget bounds, in floats, the packed operands and partial sums that are alive at once: sequences are
// handled in chunks that fit, at least one at a time. A sequence's bits do not depend on its chunk. A test lowers it.
var packBudget = 8 << 20

// attnState is the attention op in progress. Plain attention is one map, differential attention two: the index m
// below runs over the maps. Every task type of this op is another name for attnState, so that handing it to the
// pool allocates nothing.
type attnState struct {
	d *Device
	device.AttnShape
	maps int  // softmax maps per head: 1 plain, 2 differential
	keys int  // key heads per group
	half bool // factors of products are bfloat16
	// pre and post are the logits' scale: of the queries (and of the keys in dQ) before they are factors, and of the
	// products. A bfloat16 factor is rounded, so the scale comes after.
	pre, post float32
	norm      device.HeadNorm
	weight    []float32 // of the head norm

	q, k, v         mat
	out, raw, out2  mat
	lse, rstd, lam  mat
	lamRow, lamHead int // steps of lam: (0,0) for one λ, (ld,1) for one per row and head
	start           []int32

	rows        int // of a query tile
	queryFloats int // floats of a queryPack
	slots       slots
	first, seqs int       // the chunk: sequences first … first+seqs−1
	packed      []float32 // operands of the chunk, see attn_pack.go and attn_prepare.go

	attnGrad
	attnCache
	probs attnProbs
	keep  attnKeep
}

// attnKeep is the memory that outlives an op.
type attnKeep struct {
	gain    []float32 // the head norm's weight, widened, or ones
	dnorm   []float64 // sum of the shares of the norm weight's gradient
	posts   []float32 // post, for each row of a query tile
	bundles []bundle  // of a cached op
}

// plain fills in the arguments of plain attention.
func (s *attnState) plain(d *Device, a *device.Attn) {
	*s = attnState{d: d, AttnShape: a.AttnShape, maps: 1, keys: 1, keep: s.keep}
	s.fill(a.Norm, a.Q, a.K, a.V, a.Start, a.Out, a.Raw, a.LSE, a.Rstd)
}

// diff fills in the arguments of differential attention.
func (s *attnState) diff(d *Device, a *device.DiffAttn) {
	*s = attnState{d: d, AttnShape: a.AttnShape, maps: 2, keys: a.Keys, keep: s.keep}
	s.fill(a.Norm, a.Q, a.K, a.V, a.Start, a.Out, a.Raw, a.LSE, a.Rstd)
	s.out2, s.lam = matOf(a.Out2), matOf(a.Lam)
	if a.Lam.Len() > 1 {
		s.lamRow, s.lamHead = a.Lam.Ld, 1
	}
}

func (s *attnState) fill(norm device.HeadNorm, q, k, v, start, out, raw, lse, rstd tensor.Tensor) {
	s.half = s.d.precision != FP32
	s.pre, s.post = float32(s.Scale), 1
	if s.half {
		s.pre, s.post = 1, float32(s.Scale)
	}
	s.norm, s.weight = norm, s.gain(norm.Weight)
	s.q, s.k, s.v = matOf(q), matOf(k), matOf(v)
	s.out, s.raw, s.lse, s.rstd = matOf(out), matOf(raw), matOf(lse), matOf(rstd)
	if start.Ok() {
		s.start = i32(start)
	}
}

// gain is the head norm's weight in float32, ones where there is none.
func (s *attnState) gain(weight tensor.Tensor) []float32 {
	buf := grown(&s.keep.gain, s.DV)
	if w := matOf(weight); w.ok() {
		return w.read(0, 0, s.DV, buf)
	}
	for i := range buf {
		buf[i] = 1
	}
	return buf
}

// lambda is λ of row n and head h.
func (s *attnState) lambda(n, h int) float32 { return s.lam.x[n*s.lamRow+h*s.lamHead] }

// begin is the first key that row n (of the batch) attends to, within its sequence.
func (s *attnState) begin(n int) int {
	if s.start == nil {
		return 0
	}
	return int(s.start[n])
}

// window is the range of columns of the key tile at k0 (nk wide) that row n, query t of its sequence, attends to.
// It may be empty.
func (s *attnState) window(n, t, k0, nk int) (lo, hi int) {
	hi = min(nk, t+1-k0)
	return min(max(0, s.begin(n)-k0), max(0, hi)), max(0, hi)
}

// live is the range of columns of the key tile at k0 that any of the nq rows from n on, queries from t on, attends to,
// widened to the left to whole panels of packed keys. What lies outside is not computed.
func (s *attnState) live(n, t, nq, k0, nk int) (from, to int) {
	from, to = max(0, s.begin(n)-k0), min(nk, t+nq-k0)
	return from - from%s.columns(), to
}

// windows are the columns that the rows of a query tile attend to in a key tile, and what each 32 of them have in common, as simd.AttnGrad
// has them. Rows of zeros that fill up a panel attend to everything.
type windows struct {
	lo, hi [tallTile]int32
	live   [tallTile / simd.PanelBF16]int32
	masked bool // any is
}

// find fills w for nq rows from n on, queries from t on, and columns from … from+width−1 of the key tile at k0, whole panels. Rows have their lo
// and hi where any is masked.
func (w *windows) find(s *attnState, n, t, nq, k0, nk, from, width int) {
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
	for r := 0; r < s.whole(nq) && w.masked; r++ {
		w.lo[r], w.hi[r] = 0, int32(width)
		if r < nq {
			lo, hi := s.window(n+r, t+r, k0, nk)
			w.lo[r], w.hi[r] = int32(lo-from), int32(hi-from)
		}
	}
}

// repeat gives rows count … n−1, those of further heads, the columns of the first count. Rows of any query may then be among 32.
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

// queryCol and keyCol are the first columns of map m's query head in Q and key head in K.
func (s *attnState) queryCol(h, m int) int { return (h*s.maps + m) * s.D }
func (s *attnState) keyCol(g, m int) int   { return (g*s.keys + min(m, s.keys-1)) * s.D }

// perGroup is the number of heads that share one group's keys and values.
func (s *attnState) perGroup() int   { return s.Heads / s.Groups }
func (s *attnState) queryTiles() int { return (s.T + s.rows - 1) / s.rows }
func (s *attnState) keyTiles() int   { return (s.T + keyTile - 1) / keyTile }

// reserve grows every worker's memory to buf floats, and a floats of packed operands, before they are needed.
func (s *attnState) reserve(buf, a int) {
	for w := range s.d.workers {
		s.d.buf(w, buf)
		s.d.scratch(w).A(a)
		s.d.workers[w].tile.Reserve()
		if s.half {
			s.d.scratch(w).ReserveBF16(max(s.maps*queryTile, keyTile), max(keyTile, s.DV), max(keyTile, s.DV))
		}
	}
}

// chunks runs f for one chunk of sequences after the other, with room for size floats per sequence.
func (s *attnState) chunks(size int, f func(*attnState)) {
	n := max(1, packBudget/max(1, size))
	for s.first = 0; s.first < s.B; s.first += n {
		s.seqs = min(n, s.B-s.first)
		s.packed = s.d.room(s.seqs * size)
		f(s)
	}
}

// ones are factors that change nothing.
var ones = func() (x [tallTile]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// farSize is the number of floats from which a matrix is written around the caches.
const farSize = 1 << 18

func (m *mat) far() bool { return m.rows*m.cols >= farSize }

// cut takes the next n floats off buf.
func cut(buf *[]float32, n int) []float32 {
	x := (*buf)[:n:n]
	*buf = (*buf)[n:]
	return x
}
