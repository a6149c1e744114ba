package layer

import (
	"antiphase/device"
	"antiphase/tensor"
)

// Chunk is rows [From, To) of a cached pass that attend together (see device.Chunker): positions Past, Past+1, … of one
// slot.
type Chunk struct {
	From, To, Past int
	Keys           tensor.Tensor // I32 [1, Past+To−From]: cache rows of positions 0, 1, …
}

// spans is how a mixer attends over the cache. paged computes the rows of all chunks at once, if the device can. rows
// computes rows [from, to) of its output one by one. chunk computes o from queries q, keys k and values v of one
// sequence, starting at its first position.
type spans interface {
	paged(p *Pass, c *device.Cache) bool
	rows(p *Pass, c *device.Cache, from, to int)
	chunk(p *Pass, ch *Chunk, o, q, k, v tensor.Tensor)
}

// overCache fills out: chunks of the pass together, rows between them one by one.
func overCache(p *Pass, m spans, c *device.Cache, out, q tensor.Tensor) {
	at, paged := 0, len(p.Chunks) > 0 && m.paged(p, c)
	for i := range p.Chunks {
		ch := &p.Chunks[i]
		if at < ch.From {
			m.rows(p, c, at, ch.From)
		}
		if !paged {
			attendChunk(p, m, ch, c, out.RowRange(ch.From, ch.To), q.RowRange(ch.From, ch.To))
		}
		at = ch.To
	}
	if at < q.Rows {
		m.rows(p, c, at, q.Rows)
	}
}

// longest is the largest number of rows in a chunk.
func (p *Pass) longest() int {
	n := 0
	for i := range p.Chunks {
		n = max(n, p.Chunks[i].To-p.Chunks[i].From)
	}
	return n
}

// pagedPlain attends from all chunks at once, if the device can.
func pagedPlain(p *Pass, a *device.Attn, c *device.Cache) bool {
	d, ok := p.Dev.(device.Pager)
	return ok && d.AttentionChunks(a, c, p.ChunkList, p.longest())
}

// pagedDiff is pagedPlain with two maps.
func pagedDiff(p *Pass, a *device.DiffAttn, c *device.Cache) bool {
	d, ok := p.Dev.(device.Pager)
	return ok && d.DiffAttentionChunks(a, c, p.ChunkList, p.longest())
}

// attendChunk gathers keys and values from the cache. Queries of positions before the chunk are zeros, because their
// outputs are not needed. This costs at most the work of the whole sequence, which Attention computes many times faster
// than rows that each read the cache.
func attendChunk(p *Pass, m spans, ch *Chunk, c *device.Cache, out, q tensor.Tensor) {
	mark := p.Arena.Mark()
	n := ch.Past + q.Rows
	wk, wv := c.Widths()
	k, v := p.Act(n, wk), p.Act(n, wv)
	if d, ok := p.Dev.(device.CacheReader); ok {
		d.CacheRead(k, v, c, ch.Keys)
	} else {
		p.Dev.Embed(k, c.K, ch.Keys)
		p.Dev.Embed(v, c.V, ch.Keys)
	}
	if ch.Past == 0 {
		m.chunk(p, ch, out, q, k, v)
	} else {
		o := p.Act(n, out.Cols)
		m.chunk(p, ch, o, behind(p, ch.Past, q), k, v)
		p.Dev.Copy(out, o.RowRange(ch.Past, n))
	}
	p.Arena.Release(mark)
}

// behind pushes t after n rows of zeros.
func behind(p *Pass, n int, t tensor.Tensor) tensor.Tensor {
	out := p.Arena.New(t.Type, n+t.Rows, t.Cols)
	p.Dev.Zero(out.RowRange(0, n))
	p.Dev.Copy(out.RowRange(n, out.Rows), t)
	return out
}
