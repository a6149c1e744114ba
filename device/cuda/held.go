package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// For few rows RMSNorm, Rope, CacheWrite, SwiGLU and Sigmoid are bound by latency. If one is directly before or after
// the product that reads or writes its rows, one kernel does both. The device holds an op until it sees the next. The
// rules:
//
//	held         next         then
//	-            RMSNorm      held: norm                       holdNorm
//	norm         MatMul       the product makes its own rows   joinNorm
//	-            MatMul       held: product, or narrow         holdProduct
//	product      Rope         held: turned                     holdTurn
//	-            Rope         held: turn                       holdTurn
//	product      SwiGLU       one kernel                       joinGate
//	narrow       Sigmoid      one kernel (V2's λ)              joinSigmoid
//	turned       CacheWrite   one kernel                       joinCache
//	turn         CacheWrite   one kernel                       joinCache
//	any          all else     the held op runs first           flush
//
// "All else" is a launch, a cuBLASLt product, a fill, copy, read or wait, or the end of a recording. Each rule has
// conditions, stated at its function; only the functions of this file change what is held. Outputs of an op count as
// written when it is held (early.go). Nothing is allocated, and nothing is held past a point where the host could
// observe that it has not run.

// held is an op that waits for the next one.
type held struct {
	kind    heldKind
	norm    normCall
	turn    turnCall
	product productCall
}

type heldKind uint8

const (
	heldNone heldKind = iota
	heldNorm
	heldTurn
	heldProduct // possibly with the norm that makes its rows
	heldTurned  // the same, with the Rope of its output
	heldNarrow  // a product of few columns, possibly with a norm
)

// maxHeld is the largest number of rows whose norm every block of a product repeats: for each of them it reads two
// more, x and delta. maxTurned is the limit for products that repeat nothing: the rows of one block. A Rope waits with
// any number of rows: prompts write to the cache too.
const (
	maxHeld   = 2
	maxTurned = 8
)

// taken clears what is held because it is about to run, and returns the norm that may run with it.
func (h *held) taken() *normCall {
	h.kind = heldNone
	return &h.norm
}

// holdNorm holds a norm that a product could compute itself.
func (d *queue) holdNorm(n *normCall) bool {
	if d.unfused || !n.canWait() {
		return false
	}
	d.flush()
	d.held.kind, d.held.norm = heldNorm, *n
	d.fresh.wrote(n.y, n.rstd, n.sum)
	return true
}

// joinNorm lets a product compute its rows with the held norm; any other held op runs first.
func (d *queue) joinNorm(p *productCall) {
	if p.norm = d.held.kind == heldNorm && d.held.norm.makes(p); !p.norm {
		d.flush()
	}
}

// holdProduct holds a product of few rows that SwiGLU or, up to maxTurned rows, Rope (bf16, whole tiles) or Sigmoid
// (fp32, few columns) may follow.
func (d *queue) holdProduct(p *productCall) bool {
	few := p.c.Rows <= maxTurned
	switch {
	case d.unfused || p.op.Accumulate:
		return false
	case (p.s.joins && few || p.s.staged()) && p.c.Cols%16 == 0 && p.c.Type == tensor.BF16:
		d.held.kind = heldProduct
	case few && p.c.Cols <= 64 && p.c.Type == tensor.F32:
		d.held.kind = heldNarrow
	default:
		return false
	}
	d.held.product = *p
	d.fresh.wrote(p.c)
	return true
}

// holdTurn holds a Rope, together with the held product whose columns it rotates, if any.
func (d *queue) holdTurn(c *turnCall) bool {
	if _, wide := c.pairs(); d.unfused || !wide {
		return false
	}
	if d.held.kind == heldProduct && c.follows(&d.held.product) && d.fresh.settled(c.table, kept{}) {
		d.held.kind = heldTurned
	} else {
		d.flush()
		d.held.kind = heldTurn
	}
	d.held.turn = *c
	d.fresh.wrote(c.x)
	return true
}

// joinGate runs the held product with SwiGLU of its whole output.
func (d *queue) joinGate(y, gu tensor.Tensor) bool {
	h := &d.held
	if h.kind != heldProduct || !same(gu, h.product.c) || !h.apartFrom(y) {
		return false
	}
	d.multiplyGated(&h.product, y)
	return true
}

// joinSigmoid runs the held narrow product with Sigmoid in place.
func (d *queue) joinSigmoid(y, x tensor.Tensor) bool {
	p := &d.held.product
	if d.held.kind != heldNarrow || !same(x, p.c) || !same(y, x) {
		return false
	}
	d.launchRows(p, p.s.alone, rowsSigmoid)
	return true
}

// joinCache runs what is held with CacheWrite: the product and Rope of q, k, v, or Rope alone. A product with other
// columns runs first.
func (d *queue) joinCache(c *device.Cache, k, v, slot, pos tensor.Tensor, wide bool) bool {
	h := &d.held
	if h.kind == heldTurned && !(h.turn.leaves(k, v) && h.product.ends(&h.turn, v) && h.apartFrom(c.K) &&
		h.apartFrom(c.V)) {
		d.multiplyRows(&h.product)
		h.kind = heldTurn
	}
	switch {
	case h.kind == heldTurned:
		d.multiplyTurned(&h.product, &h.turn, c, slot, pos)
	case h.kind == heldTurn && wide && h.turn.leaves(k, v) && apart([]tensor.Tensor{h.turn.x}, c.K, c.V):
		d.turnAndKeep(c, v, slot, pos)
	default:
		return false
	}
	return true
}

// joinBytes is joinCache for an int8 cache: Rope of q, k, v alone; a product runs first.
func (d *queue) joinBytes(c *device.Cache, k, v, slot, pos tensor.Tensor) bool {
	h := &d.held
	if h.kind == heldTurned {
		d.multiplyRows(&h.product)
		h.kind = heldTurn
	}
	t := &h.turn
	if h.kind != heldTurn || !t.leaves(k, v) || !apart([]tensor.Tensor{t.x}, c.K, c.V) {
		return false
	}
	if t.Dim != c.D || t.Dim > 128 || c.DV > 256 || c.DV%8 != 0 || !vec(v, c.K, c.V) {
		return false
	}
	d.turnAndKeepBytes(c, v, slot, pos)
	return true
}

// flush launches the held op.
func (d *queue) flush() {
	kind := d.held.kind
	d.held.kind = heldNone // first, because its own launch calls flush again
	switch kind {
	case heldNorm:
		d.normalize(&d.held.norm)
	case heldTurn:
		d.rotate(&d.held.turn)
	case heldProduct, heldNarrow:
		d.multiplyRows(&d.held.product)
	case heldTurned:
		d.multiplyRows(&d.held.product)
		d.rotate(&d.held.turn)
	}
}

// apart reports whether what is written overlaps neither what is read nor itself.
func apart(written []tensor.Tensor, read ...tensor.Tensor) bool {
	for i, w := range written {
		for _, t := range written[i+1:] {
			if w.Overlaps(t) {
				return false
			}
		}
		for _, t := range read {
			if w.Overlaps(t) {
				return false
			}
		}
	}
	return true
}

// apartFrom reports whether t overlaps nothing that a held product or its norm still reads or writes.
func (h *held) apartFrom(t tensor.Tensor) bool {
	p, n := &h.product, &h.norm
	return apart([]tensor.Tensor{t}, p.c, p.x, p.w) &&
		(!p.norm || apart([]tensor.Tensor{t}, n.y, n.rstd, n.sum, n.x, n.delta, n.w))
}

// same reports whether two views are equal.
func same(a, b tensor.Tensor) bool {
	return ptr(a) == ptr(b) && a.Rows == b.Rows && a.Cols == b.Cols && a.Ld == b.Ld && a.Type == b.Type
}
