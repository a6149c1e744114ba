package cuda

import (
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// attnPrepare by the number of maps (minus one), the head norm, and the lanes of a row: 4, 8, 16, 32, and 32 that take
// two pieces of 8 columns each.
var attnPrepare = func() (all [2][2][5]struct{ rows, norm kernel }) {
	for i := range 20 {
		maps, norm, width := i/10, i/5%2, i%5
		options := []string{define("MAPS", maps+1), define("NORM", norm), define("LANES", 4<<min(width, 3)),
			define("WIDE", 1+width/4)}
		all[maps][norm][width].rows = kernelOf("attention_prepare", "attention_prepare", options...)
		all[maps][norm][width].norm = kernelOf("attention_prepare", "attention_norm", options...)
	}
	return all
}()

// prepareRows is the number of positions, of one head, per block of attention_prepare.
const prepareRows = 128

// attnScratch is the scratch memory of one backward pass.
type attnScratch struct {
	grad  uint64 // gradient of raw, bf16 [N,H·DV], if the norm is on
	stats uint64 // rows' statistics, fp32 [B,H,pad,floats]
	part  uint64 // gradient of the weight, one row per block of attention_prepare
	sums  uint64 // dQ as fragments, fp32
	count uint64 // counters of dQ's tiles, then the ticket
}

// attnRoom sizes the scratch memory of a backward pass: padded rows of a sequence, floats of a row's statistics, query
// tiles of a sequence (0 without tiled kernels).
type attnRoom struct {
	pad, stats, tiles, blocks, counters int
	columns                             int // rows whose statistics lie together, a power of two; 0: row by row
}

func (c *attnCall) room(pad, stats, tiles int) attnRoom {
	r := attnRoom{pad: pad, stats: stats, tiles: tiles, blocks: c.Heads * ceil(pad, prepareRows) * c.B}
	if tiles > 0 {
		r.counters = c.B*c.Heads*tiles + 1
	}
	return r
}

func (r *attnRoom) carve(c *attnCall, at uintptr) (s attnScratch, size int) {
	w := carver{at}
	if c.norm.On {
		s.grad = w.take(c.B * c.T * c.Heads * c.DV * 2)
	}
	s.stats = w.take(c.B * c.Heads * r.pad * r.stats * 4)
	if c.weight {
		s.part = w.take(r.blocks * c.DV * 4)
	}
	if r.tiles > 0 {
		s.sums = w.take(c.B * c.Heads * c.maps * r.pad * c.D * 4)
		s.count = w.take(r.counters * 4)
	}
	return s, int(w.at - at)
}

// attendBackward launches the backward pass.
func (d *backwardAttention) attendBackward(c *attnCall) {
	c.mustFit()
	if c.B*c.T == 0 {
		return
	}
	if s, k, ok := c.hopper(d.machine); ok {
		d.backwardHopper(c, s, &k)
		return
	}
	s, k, ok := c.tiled()
	if ok {
		d.backwardTiled(c, s.backwardTile(), k)
		return
	}
	room := c.room(c.T, s.stats(), 0)
	m, o, ldo := d.prepare(c, &room)
	d.backwardGeneral(c, &m, o, ldo)
}

// backwardTiled launches the kernels of the call's shape.
func (d *backwardAttention) backwardTiled(c *attnCall, t attnTile, k attnTiled) {
	s, tiles := attnShape{c.maps, c.keys, c.D, c.DV}, ceil(c.T, t.rows)
	room := c.room(tiles*t.rows, s.stats(), tiles)
	m, o, ldo := d.prepare(c, &room)
	d.fail(d.now().Clear(cu.Block{Addr: uintptr(m.count), Rows: 1, Width: room.counters * 4, Pitch: room.counters * 4}))
	d.launch(k.backward, dim1(ceil(c.T, t.keys)*c.B*c.Groups), dim1(32*t.warps), t.shared(s),
		ptr(c.q), ptr(c.k), ptr(c.v), o, ptr(c.start), m.stats, m.sums, m.count, m.count+uint64(room.counters-1)*4,
		ptr(c.dk), ptr(c.dv),
		i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(ldo), i32(c.dk.Ld), i32(c.dv.Ld), i32(c.T), i32(c.Heads),
		i32(c.Groups), f32(c.Scale))
	d.launch(k.queries, dim3(room.tiles, c.Heads, c.B), dim1(32*t.warps), 0,
		m.sums, ptr(c.dq), i32(c.dq.Ld), i32(c.T), i32(c.Heads), f32(c.Scale))
}

// prepare allocates the scratch memory and launches the first kernels: the rows' statistics, dλ, the norm's weight
// gradient and the gradient of raw, whose address and row pitch it returns.
func (d *backwardAttention) prepare(c *attnCall, r *attnRoom) (m attnScratch, grad uint64, ld int) {
	_, size := r.carve(c, 0)
	m, _ = r.carve(c, d.scratch(size))
	raw := c.out
	if c.norm.On {
		raw = c.raw
	}
	width := 0
	for width < 4 && 32<<width < c.DV {
		width++
	}
	k := attnPrepare[c.maps-1][flag(c.norm.On)][width]
	d.launch(k.rows, dim3(c.Heads, ceil(r.pad, prepareRows), c.B), dim1(256), 0,
		ptr(c.dout), ptr(raw), ptr(c.out2), c.weightPtr(), ptr(c.lse), ptr(c.rstd), ptr(c.lam), m.grad, m.stats,
		ptr(c.dlam), m.part,
		i32(c.dout.Ld), i32(raw.Ld), i32(c.out2.Ld), i32(c.lse.Ld), i32(c.rstd.Ld), i32(c.lam.Ld), i32(c.Heads*c.DV),
		i32(c.dlam.Ld),
		i32(c.T), i32(r.pad), i32(c.DV), flag(c.eachLam), flag(vec8(c.DV, c.dout, raw, c.out2)), i32(r.columns),
		f32(c.norm.Scale))
	if c.weight {
		d.launch(k.norm, dim1(ceil(c.DV, 32)), dim1(1024), 0, ptr(c.dnorm), m.part, i32(r.blocks), i32(c.DV))
	}
	if c.norm.On {
		return m, m.grad, c.Heads * c.DV
	}
	return m, ptr(c.dout), c.dout.Ld
}

// vec8 reports whether heads of dv columns are aligned to 16 bytes in all rows of all tensors.
func vec8(dv int, all ...tensor.Tensor) bool { return dv%8 == 0 && vec(all...) }

// backwardGeneral is the main part for any shape.
func (d *backwardAttention) backwardGeneral(c *attnCall, m *attnScratch, o uint64, ldo int) {
	n := c.B * c.T
	for _, step := range [2]struct {
		k     kernel
		items int
	}{{attnGeneral[c.maps].queries, n * c.Heads}, {attnGeneral[c.maps].keys, n * c.Groups}} {
		d.launch(step.k, dim1(ceil(step.items, generalWarps)), dim1(32*generalWarps), 0,
			ptr(c.q), ptr(c.k), ptr(c.v), o, ptr(c.start), m.stats, ptr(c.dq), ptr(c.dk), ptr(c.dv),
			i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(ldo), i32(c.dq.Ld), i32(c.dk.Ld), i32(c.dv.Ld),
			i32(n), i32(c.T), i32(c.Heads), i32(c.Groups), i32(c.D), i32(c.DV), i32(c.keys), f32(c.Scale))
	}
}
