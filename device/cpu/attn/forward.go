package attn

import (
	"math"

	"antiphase/internal/simd"
)

// forward is the flash-style forward pass: every query tile attends to its key tiles from left to right. Keys and
// values are packed once for all query tiles and heads that read them.
type forward struct {
	op
	chunk
}

// ownSize is the number of floats of a group's packed keys and values that fit in a worker's L2 with room to spare.
const ownSize = 192 << 10

// run runs the whole op. If there are many groups, a worker does a whole group, so that packed keys and values never
// leave its cache.
func (f *forward) run() {
	if f.B*f.T == 0 {
		return
	}
	if f.half { // softmax and products of more rows overlap better
		f.tall = queryTileHalf
	}
	f.reserve(f.tileSize(), f.maps*f.tall*keyTile)
	group := f.keyTiles() * f.kvSize()
	if f.manyGroups() && group <= ownSize {
		f.areaGroups, f.areaSize = 1, group
		f.ownChunk(&f.chunk, 0)
		f.pool.Run(f.B*f.Groups, forwardGroup{f})
		return
	}
	f.areaGroups, f.areaSize = f.Groups, f.Groups*group
	f.eachChunk(&f.chunk, f.areaSize, func() {
		f.pool.Run(f.seqs*f.keyTiles(), forwardPack{f})
		f.pool.Run(f.seqs*f.Heads*f.queryTiles(), forwardTile{f})
	})
}

// forwardGroup is the whole pass of one group of one sequence.
type forwardGroup struct{ *forward }

// Tile does group i of all sequences.
func (f forwardGroup) Tile(i, worker int) {
	b, g, on := i/f.Groups, i%f.Groups, &f.workers[worker]
	f.fetchGroup(i+1, on)
	for kt := range f.keyTiles() {
		f.pack(b, kt, g, g+1, on)
	}
	for h, end := f.headsOf(g); h < end; h++ {
		for qt := range f.queryTiles() {
			f.tile(b, h, qt, on)
		}
	}
}

// forwardPack packs one key tile of one sequence.
type forwardPack struct{ *forward }

// Tile packs key tile i of the chunk.
func (f forwardPack) Tile(i, worker int) {
	f.pack(i/f.keyTiles(), i%f.keyTiles(), 0, f.Groups, &f.workers[worker])
}

// forwardTile attends one query tile of one head.
type forwardTile struct{ *forward }

// Tile does query tile i of the chunk: the last of a head, which is the longest, comes first.
func (f forwardTile) Tile(i, worker int) {
	tiles := f.queryTiles()
	f.tile(i/tiles/f.Heads, i/tiles%f.Heads, tiles-1-i%tiles, &f.workers[worker])
}

// kv is the packed keys and values of key tile kt of group g.
func (f *forward) kv(at area, g, kt int) kv {
	return f.kvOf(f.packed[at.i*f.areaSize+((g-at.group)*f.keyTiles()+kt)*f.kvSize():])
}

// pack packs key tile kt of the chunk's sequence b for groups g0 … g1−1.
//
// A row of all heads is contiguous in memory and read from end to end: with bfloat16 factors 32 rows of all heads come
// before the next 32, which the hardware prefetcher can follow.
func (f *forward) pack(b, kt, g0, g1 int, on *worker) {
	at, nk := f.area(b, g0, on), f.keysIn(kt)
	for t := 0; t < nk; t += f.step(keyTile) {
		n, row := min(f.step(keyTile), nk-t), (f.first+b)*f.T+kt*keyTile+t
		for g := g0; g < g1; g++ {
			x := f.kv(at, g, kt)
			for m := range f.keys {
				f.packB(f.columnsAt(x.keys[m], f.D, t), f.D, n, f.K.From(row, f.keyCol(g, m)), true)
			}
		}
		for g := g0; g < g1; g++ {
			f.packRows(f.kv(at, g, kt).values, t, n, f.DV, f.V.From(row, g*f.DV), nk)
		}
	}
}

// tileSize is the number of floats of tile's working memory.
func (f *forward) tileSize() int { return f.queriesSize(f.tall) + f.tall*f.D }

// tile does query tile qt of head h of the chunk's sequence b.
func (f *forward) tile(b, h, qt int, on *worker) {
	q0 := qt * f.tall
	q := queries{op: &f.op, on: on, h: h, heads: 1, q0: q0, count: f.queriesIn(qt), row: (f.first+b)*f.T + q0}
	buf, g := on.buf(f.tileSize()), h/f.perGroup()
	dense := simd.Cut(&buf, f.tall*f.D)
	q.open(&buf, dense)
	at := f.area(b, g, on)
	for kt := f.begin(q.row) / keyTile; kt*keyTile < q0+q.count; kt++ {
		x := f.kv(at, g, kt)
		q.attend(kt*keyTile, f.keysIn(kt), &x)
	}
	if f.log2() {
		simd.Scale(q.top, math.Ln2)
	}
	f.finish(q.row, h, q.nq, q.np, q.sums, on)
}
