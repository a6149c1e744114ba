package cuda

import (
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// held is an op that waits for the next one: of few rows RMSNorm, Rope, CacheWrite, SwiGLU and Sigmoid are all latency, and where they stand before or
// behind the product that reads or makes their rows, one kernel does both. Whatever else comes next lets it go first (flush): a launch, a product
// of cuBLASLt, a fill, copy, read or wait, the end of a recording. What it will write counts as written from the moment it is held (early.go).
// It allocates nothing and is never held over a point where the host could see that it has not run. The chains are
//
//	MatMul, Rope, CacheWrite    or the last two
//	MatMul, SwiGLU
//	MatMul, Sigmoid
//
// each with RMSNorm before it where the product's weights are in registers (shortOf).
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
	heldProduct // perhaps with the norm that makes its rows
	heldTurned  // the same, and the Rope of what it leaves
	heldNarrow  // a product of few columns, likewise
)

// maxHeld is the most rows whose norm every block of a product repeats: for each of them it reads two more, x and delta. maxTurned is for what repeats
// nothing: the rows of one block.
const (
	maxHeld   = 2
	maxTurned = 8
)

// flush launches the op that is held back.
func (d *Device) flush() {
	kind := d.held.kind
	d.held.kind = heldNone // first: its own launch comes here again
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

// now is the driver, once everything before has been asked of it.
func (d *Device) now() cu.Driver {
	d.flush()
	return d.drv
}

// apart says that what is written shares no memory with what is read or with the rest of it.
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

// apartFrom says that t shares memory with nothing that a held product or its norm still reads or writes.
func (h *held) apartFrom(t tensor.Tensor) bool {
	p, n := &h.product, &h.norm
	return apart([]tensor.Tensor{t}, p.c, p.x, p.w) && (!p.norm || apart([]tensor.Tensor{t}, n.y, n.rstd, n.sum, n.x, n.delta, n.w))
}

// same says that two views are one.
func same(a, b tensor.Tensor) bool {
	return ptr(a) == ptr(b) && a.Rows == b.Rows && a.Cols == b.Cols && a.Ld == b.Ld && a.Type == b.Type
}
