package main

import "math"

// Softmax of a whole tile of float32 logits in one call, forward and backward, for AVX2. Exponents are in units of log
// 2: 2^x needs neither a product with log2 e nor a second part of ln 2. Each row ends at a column of its own. A last
// vector that is not whole is masked, and the rest of the row is cleared.

// exp2Poly are the coefficients of 2^r for |r| ≤ 1/2, the highest power's first: expPoly for r·ln 2.
var exp2Poly = func() []float64 {
	c, power := make([]float64, len(expPoly)), 1.0
	for i := len(c) - 1; i >= 0; i-- {
		c[i] = expPoly[i] * power
		power *= math.Ln2
	}
	return c
}()

// exp2Min is the least exponent: its power is 0, because a float32 with this exponent is.
const exp2Min = -127

// chain is the registers of one vector on its way through 2^x.
type chain struct{ x, n, q *reg }

// fullKernel is what the kernels share. Tiles are TileCols floats wide.
type fullKernel struct {
	*asm
	args       fields
	chains     []chain
	scale, low *reg // vectors: of the logits; exp2Min
	hi         *reg // at the row's number of columns
	left, at   *reg // columns left, bytes done
	width      *reg // bytes of a row
	maskAt     *reg // of a last vector that is not whole
}

const tilePitch = 4 * 128 // bytes from a row to the next

// softFile is the file of these kernels.
func softFile() []byte {
	a := newAsm(avx2)
	softTile(a)
	softBack(a, 1)
	softBack(a, 2)
	scaleFloats(a)
	mixNorm(a)
	emitNormBackFloats(a)
	return a.finish()
}

func declareSoft(declare declarer) {
	declare("softTileAVX2(p *softArgs)")
	declare("softBack1AVX2(p *softBackArgs)")
	declare("softBack2AVX2(p *softBackArgs)")
	declare("scaleRowsAVX2(p *outArgs)")
	declare("mixNormAVX2(p *mixNormArgs)")
	declare("normBackAVX2(p *normFloatArgs)")
}

// newFull begins a kernel. It holds AX, CX, DX, R8, R13, R14 and, of vectors, 14, 15 and three for each chain.
func newFull(a *asm, name, args string, chains int) *fullKernel {
	k := &fullKernel{asm: a, args: a.kernel(name, args, 0, "AX")}
	for i := range chains {
		k.chains = append(k.chains, chain{a.ymm(3*i, "x"), a.ymm(3*i+1, "n"), a.ymm(3*i+2, "2^x")})
	}
	k.scale, k.low = a.ymm(15, "scale"), a.ymm(14, "least exponent")
	k.left, k.at = a.hold("CX", "columns left"), a.hold("DX", "bytes done")
	k.hi, k.width = a.take(k.args, "hi", "R8"), a.take(k.args, "width", "R13")
	k.maskAt = a.hold("R14", "address of the mask")
	a.op("VBROADCASTSS", k.args.at("scale"), k.scale)
	a.op("VMOVUPS", a.constant(exp2Min), k.low)
	return k
}

// exp2 sets q = 2^x of each chain; x and n are lost. n = round(x) lands in the exponent's place by powerMagic and a
// shift, 2^(x−n) is the polynomial. Chains are interleaved: one's latency is filled by the others. A NaN comes through.
func (k *fullKernel) exp2(chains ...chain) {
	each := func(f func(c chain)) {
		for _, c := range chains {
			f(c)
		}
	}
	each(func(c chain) { k.op("VMAXPS", c.x, k.low, c.x) })
	each(func(c chain) { k.op("VADDPS", k.constant(powerMagic), c.x, c.n) })
	each(func(c chain) { k.op("VSUBPS", k.constant(powerMagic), c.n, c.q) })
	each(func(c chain) { k.op("VSUBPS", c.q, c.x, c.x) })
	each(func(c chain) { k.op("VMOVUPS", k.constant(exp2Poly[0]), c.q) })
	for _, p := range exp2Poly[1:] {
		each(func(c chain) { k.op("VFMADD213PS", k.constant(p), c.x, c.q) })
	}
	each(func(c chain) { k.op("VPSLLD", "$23", c.n, c.n) })
	each(func(c chain) { k.op("VMULPS", c.n, c.q, c.q) })
}

// columns runs body over the vectors of the present row: many at a time while there are as many, then one by one, and
// last with a mask.
func (k *fullKernel) columns(many int, body func(vectors int, masked bool)) {
	one, last, end := k.fresh("one"), k.fresh("last"), k.fresh("end")
	k.op("MOVLQSX", mem(k.hi), k.left)
	k.zero(k.at)
	k.vectors(many, one, body)
	k.mark(one)
	if many > 1 {
		k.vectors(1, last, body)
	}
	k.mark(last)
	k.op("TESTQ", k.left, k.left)
	k.op("JLE", end)
	k.lanesLeft(k.left)
	body(1, true)
	k.add(imm(k.bytes()), k.at)
	k.mark(end)
}

// vectors loops over n vectors at a time and jumps to next when fewer are left.
func (k *fullKernel) vectors(n int, next string, body func(vectors int, masked bool)) {
	top := k.fresh("many")
	k.jump(k.left, n*k.lanes, "JLT", next)
	k.mark(top)
	body(n, false)
	k.add(imm(n*k.bytes()), k.at)
	k.sub(imm(n*k.lanes), k.left)
	k.jump(k.left, n*k.lanes, "JGE", top)
}

// lanesLeft points maskAt to the mask of n lanes; n is lost.
func (k *fullKernel) lanesLeft(n *reg) {
	k.op("LEAQ", operand("mask"+k.tag+"<>+64(SB)"), k.maskAt)
	k.shl(2, n)
	k.sub(n, k.maskAt)
}

// clearRest clears rows from at to width, with a vector of zeros.
func (k *fullKernel) clearRest(zeros *reg, rows ...*reg) {
	top, end := k.fresh("clear"), k.fresh("end")
	k.zero(zeros)
	k.mark(top)
	k.op("CMPQ", k.at, k.width)
	k.op("JGE", end)
	for _, r := range rows {
		k.op("VMOVUPS", zeros, indexed(r, k.at, 1))
	}
	k.add(imm(k.bytes()), k.at)
	k.op("JMP", top)
	k.mark(end)
}

// vector is vector i of a row, counted from the present column.
func (k *fullKernel) vector(row *reg, i int) operand { return indexed(row, k.at, 1, i*k.bytes()) }
