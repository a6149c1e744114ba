package main

import "fmt"

// stretchQueries is the largest number of queries multiplied with a tile of keys at once.
const stretchQueries = 4

// softKernel is one step of the online softmax of rows of up to 128 logits, as softmaxStrip does it for 32 rows, bit
// for
// bit: logits turn into p, rounded to bfloat16, in place. A row attends to its first hi columns.
type softKernel struct {
	*asm
	p                fields
	exp              exp2Regs
	logits, top, sum *reg // of the current row, and its hi
	acc, hi          *reg
	rows, steps      *reg
	shift            *reg // what is subtracted from the row's logits, in every lane
}

func newSoftKernel(a *asm) *softKernel {
	k := &softKernel{asm: a, p: a.kernel("soft", "stretchSoft", 8, "DI"), exp: holdExp2(a)}
	a.op("VBROADCASTSS", k.p.at("scale"), k.exp.scale)
	beginExp2(a, &k.exp)
	k.logits, k.top, k.sum = a.take(k.p, "logits", "SI"), a.take(k.p, "top", "R8"), a.take(k.p, "sum", "R9")
	k.acc, k.hi = a.take(k.p, "acc", "R10"), a.take(k.p, "hi", "R11")
	k.rows, k.steps = a.take(k.p, "rows", "R12"), a.take(k.p, "steps", "R13")
	k.shift = a.vec(8, "what is subtracted")
	return k
}

func (k *softKernel) emit() {
	k.repeat("row", k.rows, func() {
		k.largest()
		k.raise()
		k.exponentials()
		k.add(imm(tileRow), k.logits)
		for _, r := range []*reg{k.top, k.sum, k.hi} {
			k.add("$4", r)
		}
	})
	endExp2(k.asm)
	k.ret()
}

// walk runs f over the row's lines of 32 logits, at a register.
func (k *softKernel) walk(label string, f func(at *reg)) {
	at, left := k.hold("AX", "line of logits"), k.hold("CX", "lines left")
	k.mov(k.logits, at)
	k.mov(k.steps, left)
	k.repeat(label, left, func() { f(at) })
	k.drop(at, left)
}

// largest masks the row's logits and leaves the largest in all lanes of shift.
func (k *softKernel) largest() {
	hi, low, index, x := k.vec(9, "hi"), k.vec(10, "−∞"), k.vec(11, "columns"), k.vecs(12, 2, "logits")
	none, iota := k.hold("K1", "columns beyond hi"), k.hold("BX", "0, 1, …")
	k.op("VPBROADCASTD", mem(k.hi), hi)
	k.op("VMOVUPS", k.bits(negInf), low)
	k.op("VMOVAPS", low, k.shift)
	k.lea(fmt.Sprintf("iota%s<>(SB)", k.tag), iota)
	k.walk("tops", func(at *reg) {
		for i := range 2 {
			k.op("VMOVDQU64", mem(iota, 64*i), index)
			k.op("VMOVUPS", mem(at, 64*i), x[i])
			k.op("VPCMPD", "$5", hi, index, none) // not below hi
			k.op("VMOVAPS", low, none, x[i])
			k.op("VMOVUPS", x[i], mem(at, 64*i))
			k.op("VMAXPS", x[i], k.shift, k.shift)
		}
		k.add("$128", at)
		k.add("$128", iota)
	})
	foldLanes(k.asm, "VMAXPS", k.shift, hi)
	k.drop(append(x, hi, low, index, none, iota)...)
}

// raise is raiseTops for one row: it leaves what is subtracted in shift.
func (k *softKernel) raise() {
	old, least, factor, x := k.vec(9, "old top"), k.vec(10, "least finite"), k.vec(11, "factor"), k.vec(12, "scaled")
	k.op("VMULPS", k.exp.scale, k.shift, k.shift)
	k.op("VBROADCASTSS", mem(k.top), old)
	k.op("VMAXPS", old, k.shift, k.shift)
	k.op("VMOVSS", k.shift.low(), mem(k.top))
	k.op("VMOVUPS", k.bits(0xFF7FFFFF), least)
	k.op("VMAXPS", least, k.shift, k.shift)
	k.op("VMAXPS", least, old, old)
	k.op("VSUBPS", k.shift, old, old)
	exp2(k.asm, &k.exp, factor, old, x)
	k.op("VMULSS", mem(k.sum), factor.low(), x.low())
	k.op("VMOVSS", x.low(), mem(k.sum))
	left, changed := k.take(k.p, "vectors", "DX"), k.hold("K1", "the top has changed")
	k.zero(x)
	k.op("VCMPPS", "$4", x, old, changed)
	k.op("KORTESTW", changed, changed)
	k.op("JZ", "same")
	k.repeat("scale", left, func() {
		k.op("VMULPS", mem(k.acc), factor, x)
		k.op("VMOVUPS", x, mem(k.acc))
		k.add("$64", k.acc)
	})
	k.op("JMP", "raised")
	k.mark("same")
	k.shl(6, left)
	k.add(left, k.acc)
	k.mark("raised")
	k.drop(old, least, factor, x, left, changed)
}

// exponentials turns the row's logits into p and adds their sum.
func (k *softKernel) exponentials() {
	sums := k.vecs(20, 2, "sums")
	x, e, f := []*reg{k.vec(0, "logits"), k.vec(4, "logits")}, []*reg{k.vec(1, "p"), k.vec(5, "p")},
		[]*reg{k.vec(2, "fraction"), k.vec(6, "fraction")}
	k.zero(sums...)
	k.walk("line", func(at *reg) {
		for i := range 2 {
			k.op("VMOVUPS", mem(at, 64*i), x[i])
			k.op("VFMSUB213PS", k.shift, k.exp.scale, x[i])
			exp2(k.asm, &k.exp, e[i], x[i], f[i])
			k.op("VADDPS", e[i], sums[i], sums[i])
		}
		k.use(roundPair(e[0], e[1], e[0]))
		k.op("VEXTRACTI64X4", "$1", e[0], e[1].half())
		for i, r := range e {
			widen(k.asm, r.half(), r)
			k.op("VMOVUPS", r, mem(at, 64*i))
		}
		k.add("$128", at)
	})
	k.op("VADDPS", sums[1], sums[0], x[0])
	foldLanes(k.asm, "VADDPS", x[0], e[0])
	k.op("VADDSS", mem(k.sum), x[0].low(), x[0].low())
	k.op("VMOVSS", x[0].low(), mem(k.sum))
	k.drop(sums...)
	k.drop(x[0], x[1], e[0], e[1], f[0], f[1])
}

// foldLanes reduces register x to every lane of itself, in fold16's order; t is used on the way.
func foldLanes(a *asm, op string, x, t any) {
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VPERMILPS", s, x, t)
		a.op(op, t, x, x)
	}
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VSHUFF32X4", s, x, x, t)
		a.op(op, t, x, x)
	}
}

// joinRows: row r of x = fx[r]·x + fy[r]·y, 16·vectors elements each.
func joinRows(a *asm) {
	p := a.kernel("joinRows", "joinArgs", 0, "AX")
	x, y, fx, fy := a.take(p, "x", "DI"), a.take(p, "y", "SI"), a.take(p, "fx", "BX"), a.take(p, "fy", "DX")
	ldx, ldy, rows, vecs := a.take(p, "ldx", "R8"), a.take(p, "ldy", "R9"), a.take(p, "rows", "CX"),
		a.take(p, "vecs", "R13")
	atX, atY, left := a.hold("R10", "vector of x"), a.hold("R11", "vector of y"), a.hold("R12", "vectors left")
	scaleX, scaleY, sum := a.vec(0, "factor of x"), a.vec(1, "factor of y"), a.vec(2, "sum")
	a.repeat("row", rows, func() {
		a.op("VBROADCASTSS", mem(fx), scaleX)
		a.op("VBROADCASTSS", mem(fy), scaleY)
		a.mov(x, atX)
		a.mov(y, atY)
		a.mov(vecs, left)
		a.repeat("vector", left, func() {
			a.op("VMULPS", mem(atX), scaleX, sum)
			a.op("VFMADD231PS", mem(atY), scaleY, sum)
			a.op("VMOVUPS", sum, mem(atX))
			a.add("$64", atX)
			a.add("$64", atY)
		})
		a.add(ldx, x)
		a.add(ldy, y)
		a.add("$4", fx)
		a.add("$4", fy)
	})
	a.ret()
}

func stretchFile() []byte {
	a := newAsm(stretch)
	a.include(missingFile)
	for n := 1; n <= stretchQueries; n++ {
		newKeysKernel(a, n).emit()
	}
	for n := 1; n <= 2; n++ {
		newValuesKernel(a, n).emit()
	}
	newSoftKernel(a).emit()
	joinRows(a)
	joinTable(a)
	iotaTable(a)
	return a.finish()
}

func declareStretch(declare func(format string, a ...any)) {
	for n := 1; n <= stretchQueries; n++ {
		declare("keys%dxStretch(p *stretchKeys)", n)
	}
	for n := 1; n <= 2; n++ {
		declare("values%dxStretch(p *stretchValues)", n)
	}
	declare("softStretch(p *stretchSoft)")
	declare("joinRowsStretch(p *joinArgs)")
}
