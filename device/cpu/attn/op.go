package attn

import "antiphase/internal/simd"

// op is an attention op in progress: its arguments, and where it runs.
type op struct {
	*Engine
	shape
	packer
	Tensors
	norm            Norm
	weight          []float32 // of the head norm
	lamRow, lamHead int       // strides of Lam: (0,0) for one λ, (ld,1) for one per row and head
}

// op begins an op with these arguments.
func (e *Engine) op(a *Args) op {
	o := op{Engine: e, shape: shape{AttnShape: a.Shape, maps: a.Maps, keys: a.Keys, start: a.Start, tall: queryTile},
		packer: newPacker(e.bf16, a.Shape.Scale), Tensors: a.Tensors, norm: a.Norm}
	o.weight = o.widened(a.Norm.Weight)
	if a.Lam.Rows*a.Lam.Cols > 1 {
		o.lamRow, o.lamHead = a.Lam.Ld, 1
	}
	return o
}

// widened is the head norm's weight in float32, ones if there is none.
func (o *op) widened(weight Matrix) []float32 {
	buf := simd.Grow(&o.gain, o.DV)
	switch {
	case weight.H != nil:
		simd.WidenBF16(buf, weight.H[:o.DV])
	case weight.X != nil:
		return weight.X[:o.DV:o.DV]
	default:
		for i := range buf {
			buf[i] = 1
		}
	}
	return buf
}

// lambda is λ of row n and head h.
func (o *op) lambda(n, h int) float32 { return o.Lam.X[n*o.lamRow+h*o.lamHead] }

// reserve grows every worker's memory to buf floats, and a floats of packed operands, in advance.
func (o *op) reserve(buf, a int) {
	for i := range o.workers {
		w := &o.workers[i]
		w.buf(buf)
		w.scratch.A(a)
		w.tile.Reserve()
		if o.half {
			w.scratch.ReserveBF16(max(o.maps*queryTile, keyTile), max(keyTile, o.DV), max(keyTile, o.DV))
		}
	}
}

// leastGroups is the number of groups per worker at and above which a worker does whole groups.
const leastGroups = 4

// manyGroups reports whether a worker can do whole groups, so that its packed operands never leave its cache.
func (o *op) manyGroups() bool { return o.B*o.Groups >= leastGroups*len(o.workers) }

// fetchGroup lets kernels prefetch the operands of group i of all sequences in order of use: K, V, these outputs or
// their gradients, Q. It is the worker's own next group, unless its share ends before.
func (o *op) fetchGroup(i int, on *worker, outs ...*Matrix) {
	t := &on.tile
	t.FetchNone()
	if !o.half || i >= o.B*o.Groups {
		return
	}
	row, g, n := i/o.Groups*o.T, i%o.Groups, o.perGroup()
	t.FetchRows(o.K.From(row, o.keyCol(g, 0)), o.T, o.keys*o.D)
	t.FetchRows(o.V.From(row, g*o.DV), o.T, o.DV)
	for _, m := range outs {
		if m.ok() {
			t.FetchRows(m.From(row, g*n*o.DV), o.T, n*o.DV)
		}
	}
	t.FetchRows(o.Q.From(row, o.queryCol(g*n, 0)), o.T, n*o.maps*o.D)
}

// kv is the packed keys and values of one key tile of one group, as the forward pass and a cached op use them.
type kv struct {
	keys   [2][]float32 // per key head: Kᵀ [D,keyTile]
	values []float32    // V [keyTile,DV]
}

// kvSize is the number of floats of a kv.
func (o *op) kvSize() int { return o.keys*o.sizeB(o.D, keyTile) + o.sizeB(keyTile, o.DV) }

// kvOf divides memory into a kv.
func (o *op) kvOf(buf []float32) (x kv) {
	buf = buf[:o.kvSize()]
	for m := range o.keys {
		x.keys[m] = simd.Cut(&buf, o.sizeB(o.D, keyTile))
	}
	x.values = buf
	return x
}

// chunk is the sequences in progress, first … first+seqs−1, and the areas of their packed operands. An area has room
// for all heads of a sequence; or, if areas belong to workers, for the heads of the worker's current group, so that
// they never leave its cache.
type chunk struct {
	first, seqs int
	areas       int // their number
	areaGroups  int // groups that an area has room for
	areaSize    int // floats of an area
	own         bool
	packed      []float32
}

// area is one of them, and the first group in it.
type area struct{ i, group int }

// area is the area of group g of the chunk's sequence b for a worker.
func (c *chunk) area(b, g int, on *worker) area {
	if c.own {
		return area{on.id, g}
	}
	return area{b, 0}
}

// eachChunk runs f for one chunk of sequences after the other, with room for size floats per sequence.
func (o *op) eachChunk(c *chunk, size int, f func()) {
	n := max(1, o.Budget/max(1, size))
	for c.first = 0; c.first < o.B; c.first += n {
		c.seqs = min(n, o.B-c.first)
		c.areas = c.seqs
		c.packed = o.pool.Room(c.seqs * size)
		f()
	}
}

// ownChunk makes all sequences one chunk with an area for each worker, and room for extra floats after them.
func (o *op) ownChunk(c *chunk, extra int) {
	c.first, c.seqs, c.areas, c.own = 0, o.B, len(o.workers), true
	c.packed = o.pool.Room(c.areas*c.areaSize + extra)
}

// ones are neutral factors.
var ones = func() (x [queryTileGrad]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()
