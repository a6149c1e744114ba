package main

import "fmt"

// The rotations write their loops themselves: x is a row of heads of 2·len(cos) elements, and each vector of cos and
// sin, the latter times sign, stays in registers while it turns the same columns of all heads.

// rotation is one of them over the CX columns of a head, steps vectors at a time if there are that many.
type rotation struct {
	*body
	steps  int
	masks  func() // prepares those of the last columns, nil for the frame's own
	angles func() // loads cos and sin of a vector of columns
	turn   func() // turns those of one head
}

func (r *rotation) emit() {
	if r.arm() {
		r.emitNEON()
		return
	}
	r.op("MOVQ", "cos_len+32(FP)", "R8")
	r.op("ADDQ", "R8", "R8") // a head
	r.op("MOVQ", "x_len+8(FP)", "R10")
	r.loop("many", r.steps, func() { r.heads(r.steps) })
	r.loop("one", 1, func() { r.heads(1) })
	r.left(r.masks, func() { r.heads(1) })
}

// heads turns some vectors of columns of all heads.
func (r *rotation) heads(steps int) {
	base := r.free
	for r.step = range steps {
		r.angles()
	}
	kept, top := r.free, r.fresh("head")
	r.op("MOVQ", "AX", "R9")
	r.mark(top)
	r.lookAhead()
	for r.step = range steps {
		r.free = kept
		r.turn()
	}
	r.op("ADDQ", "R8", "AX")
	r.op("CMPQ", "AX", "R10")
	r.op("JLT", top)
	r.op("MOVQ", "R9", "AX")
	r.step, r.free = 0, base
}

// rotateHeads turns the pairs (a, b) of a head's halves: a' = a·cos − b·sin, b' = b·cos + a·sin.
func rotateHeads(b *body) {
	var cos, sin [2]string
	if b.half["x"] {
		b.half["b"] = true
	}
	secondHalf(b)
	r := rotation{body: b, steps: len(cos)}
	r.angles = func() {
		cos[b.step], sin[b.step] = b.load("cos"), b.load("sin")
		b.mul(b.s("sign"), sin[b.step], sin[b.step])
	}
	r.turn = func() {
		x, y, t := b.load("x"), b.load("b"), b.tmp()
		b.mul(y, sin[b.step], t)
		b.subFrom(x, cos[b.step], t)
		b.mul(y, cos[b.step], y)
		b.fma(x, sin[b.step], y)
		b.store("x", t)
		b.store("b", y)
	}
	r.emit()
}

// secondHalf sets the number of columns and a pointer to the second half of the first head.
func secondHalf(b *body) {
	if b.arm() {
		b.mem["b"] = "R5"
		b.op("MOVD", "cos_len+32(FP)", "R7")
		b.op("ADD", fmt.Sprintf("R7<<%d", b.size("x")/2), "R0", "R5")
		return
	}
	b.mem["b"] = "R11"
	b.op("MOVQ", "cos_len+32(FP)", "CX")
	b.op("LEAQ", fmt.Sprintf("(DI)(CX*%d)", b.size("x")), "R11")
}

// rotatePairs turns the pairs (x[2j], x[2j+1]) of a head by cos[j], sin[j]. With c and s each element of those twice
// and x' = x with the elements of each pair exchanged: even lanes x·c − x'·s, odd lanes x·c + x'·s.
func rotatePairs(b *body) {
	if b.arm() {
		rotatePairsNEON(b)
		return
	}
	f := avxFrame{b}
	var cos, sin [4]string
	b.op("MOVQ", "cos_len+32(FP)", "CX")
	b.op("ADDQ", "CX", "CX")
	r := rotation{body: b, steps: len(cos), masks: func() { pairMask(f) }}
	r.angles = func() {
		cos[b.step], sin[b.step] = twice(f, "cos"), twice(f, "sin")
		b.mul(b.s("sign"), sin[b.step], sin[b.step])
	}
	r.turn = func() {
		x, t := b.load("x"), b.tmp()
		b.op("VPERMILPS", "$0xB1", x, t)
		b.mul(sin[b.step], t, t)
		b.op("VFMADDSUB213PS", t, cos[b.step], x)
		b.store("x", x)
	}
	r.emit()
}

// pairMask is rest, and before it a mask of half as many lanes for cos and sin.
func pairMask(f avxFrame) {
	if f.wide() {
		f.op("SHRQ", "$1", "CX")
		f.laneMask("K3")
		f.op("ADDQ", "CX", "CX")
	} else {
		f.op("LEAQ", "mask"+f.tag+"<>+64(SB)", "DX")
		f.op("SUBQ", "CX", "DX")
		f.op("SUBQ", "CX", "DX")
		f.op("VMOVUPS", "(DX)", pairsMask(f))
	}
	f.rest()
}

// pairsMask is AVX2's mask of pairs.
func pairsMask(f avxFrame) string { return "X" + f.v(f.regs - 2)[1:] }

// twice loads half a vector of a slice, each element twice.
func twice(f avxFrame, name string) string {
	r := f.tmp()
	at := f.atPair(name)
	switch {
	case !f.masked:
		f.op("VPMOVZXDQ", at, r)
	case f.wide():
		f.op("VPMOVZXDQ.Z", at, "K3", r)
	default:
		f.op("VMASKMOVPS", at, pairsMask(f), "X"+r[1:])
		f.op("VPMOVZXDQ", "X"+r[1:], r)
	}
	f.op("VMOVSLDUP", r, r)
	return r
}
