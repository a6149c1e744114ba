package attn

import "antiphase/internal/simd"

// prompt attends from a prompt's rows to the cache: keys and values are packed once, then each query tile of a head
// processes its stretches.
type prompt struct {
	*cached
	bundle
	g0, g1 int // groups in progress
	packed []float32
}

// run runs the op for the bundle, as many groups at a time as memory allows.
func (p *prompt) run() {
	if p.half { // as in the forward pass
		p.tall = queryTileHalf
	}
	p.reserve(p.tileSize(), p.maps*p.tall*keyTile)
	n := max(1, p.Budget/p.stride())
	for p.g0 = 0; p.g0 < p.Groups; p.g0 += n {
		p.g1 = min(p.Groups, p.g0+n)
		p.packed = p.pool.Room((p.g1 - p.g0) * p.stride())
		p.pool.Run(p.tiles(), promptPack{p})
		p.pool.Run((p.g1-p.g0)*p.perGroup()*ceil(p.count, p.tall), promptTile{p})
	}
}

// tiles is the number of key tiles, stride the number of floats from one group's kv to the next.
func (p *prompt) tiles() int  { return ceil(p.bundle.keys(), keyTile) }
func (p *prompt) stride() int { return p.tiles() * p.kvSize() }

// tileSize is the number of floats of promptTile's working memory: it keeps the sums of earlier stretches, and factors
// to join them.
func (p *prompt) tileSize() int {
	return p.denseSize() + p.queriesSize(p.tall) + p.maps*p.tall*(p.whole(p.DV)+4)
}

// promptPack packs one key tile.
type promptPack struct{ *prompt }

// Tile packs key tile i.
func (p promptPack) Tile(i, worker int) {
	p0 := i * keyTile
	nk := min(keyTile, p.bundle.keys()-p0)
	p.pack(p.slot, p0, nk, p.g0, p.g1, p.packed[i*p.kvSize():], p.stride(), p.workers[worker].buf(p.denseSize()))
}

// promptTile attends one query tile of one head.
type promptTile struct{ *prompt }

// Tile does query tile i: the last of a head, which is the longest, comes first.
func (p promptTile) Tile(i, worker int) {
	tiles, on := ceil(p.count, p.tall), &p.workers[worker]
	from := (tiles - 1 - i%tiles) * p.tall
	q := queries{op: &p.op, on: on, h: p.g0*p.perGroup() + i/tiles, heads: 1,
		row: p.row + from, q0: p.pos + from, count: min(p.tall, p.count-from)}
	buf := on.buf(p.tileSize())
	dense := simd.Cut(&buf, p.denseSize())
	q.open(&buf, dense)
	n := p.maps * q.np
	factors, all := simd.Cut(&buf, 2*n), p.cutSums(&buf, n)
	packed, end := p.packed[(q.h/p.perGroup()-p.g0)*p.stride():], q.q0+q.count
	for p0 := 0; p0 < end; p0 += stretchKeys {
		q.restart()
		for k0 := p0; k0 < min(p0+stretchKeys, end); k0 += keyTile {
			x := p.kvOf(packed[k0/keyTile*p.kvSize():])
			q.attend(k0, min(keyTile, p.bundle.keys()-k0), &x)
		}
		if p0 == 0 {
			all, q.sums = q.sums, all
			continue
		}
		p.join(&all, &q.sums, factors, on)
	}
	p.finish(q.row, q.h, q.count, q.np, all, on)
}
