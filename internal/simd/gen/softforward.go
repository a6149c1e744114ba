package main

// softRows is softTile's loop over rows, eight at a time: the largest logits of all, then what their sums are scaled
// by, then the powers.
type softRows struct {
	*fullKernel
	x, rows, in   *reg // the row, rows left, the row's number in its eight
	top, sum, acc *reg
	shift, total  *reg // vectors: subtracted from logits; sums of the row's powers by lanes
}

// softTile: simd.SoftTile in one call.
func softTile(a *asm) {
	k := softRows{fullKernel: newFull(a, "softTile", "softArgs", 4)}
	k.shift, k.total = a.ymm(13, "shift"), a.ymm(12, "sums by lanes")
	k.x, k.top, k.sum, k.acc = a.take(k.args, "x", "SI"), a.take(k.args, "top", "R9"), a.take(k.args, "sum", "R10"),
		a.take(k.args, "acc", "R11")
	k.rows, k.in = a.take(k.args, "rows", "R12"), a.hold("BX", "row of eight")
	a.mark("eight")
	k.eachRow(k.largest)
	k.factors()
	k.rewind()
	k.eachRow(k.powers)
	a.add("$32", k.top)
	a.add("$32", k.sum)
	a.jump(k.rows, 8, "JLE", "done")
	a.sub("$8", k.rows)
	a.op("JMP", "eight")
	a.mark("done")
	a.ret()
}

// eachRow runs body for each of eight rows, or of those left.
func (k *softRows) eachRow(body func()) {
	top, end := k.fresh("row"), k.fresh("rows")
	k.zero(k.in)
	k.mark(top)
	body()
	k.add(imm(tilePitch), k.x)
	k.add("$4", k.hi)
	k.op("INCQ", k.in)
	k.op("CMPQ", k.in, k.rows)
	k.op("JGE", end)
	k.jump(k.in, 8, "JLT", top)
	k.mark(end)
}

// rewind goes back to the first of eight rows.
func (k *softRows) rewind() {
	n := k.hold("DI", "rows done")
	k.mov(k.in, n)
	k.shl(2, n)
	k.sub(n, k.hi)
	k.shl(7, n)
	k.sub(n, k.x)
	k.drop(n)
}

// largest stores the row's largest logit in shift.
func (k *softRows) largest() {
	most := []*reg{k.chains[0].x, k.chains[1].x, k.chains[2].x, k.chains[3].x}
	t := k.chains[0].n
	for _, m := range most {
		k.op("VMOVUPS", k.bits(negInf), m)
	}
	k.columns(len(most), func(vectors int, masked bool) {
		if masked {
			k.op("VMOVUPS", k.bits(negInf), k.total)
			k.op("VMOVUPS", mem(k.maskAt), t)
			k.op("VBLENDVPS", t, k.vector(k.x, 0), k.total, k.total)
			k.op("VMAXPS", k.total, most[0], most[0])
			return
		}
		for i := range vectors {
			k.op("VMAXPS", k.vector(k.x, i), most[i], most[i])
		}
	})
	k.op("VMAXPS", most[1], most[0], most[0])
	k.op("VMAXPS", most[3], most[2], most[2])
	k.op("VMAXPS", most[2], most[0], most[0])
	foldVector(k.asm, "VMAXPS", most[0], t)
	k.op("VMOVSS", most[0].low(), k.args.elem("shift", k.in, 4))
}

// factors: top' = max(top, scale·largest), what is subtracted from logits is top' or, for a row of no columns, a
// number; sums so far are scaled by 2^(top − top').
func (k *softRows) factors() {
	c, now, mask := k.chains[0], k.chains[1].x, k.chains[2].x
	n := k.hold("DI", "rows")
	k.op("MOVQ", "$8", n)
	k.op("CMPQ", k.rows, n)
	k.op("CMOVQLT", k.rows, n)
	k.lanesLeft(n)
	k.drop(n)
	k.op("VMOVUPS", mem(k.maskAt), mask)
	k.op("VMASKMOVPS", mem(k.top), mask, c.x)
	k.op("VMULPS", k.args.at("shift"), k.scale, now)
	k.op("VMAXPS", now, c.x, now)
	k.op("VMASKMOVPS", now, mask, mem(k.top))
	k.op("VMAXPS", k.bits(0xFF7FFFFF), now, now)
	k.op("VMOVUPS", now, k.args.at("shift"))
	k.op("VSUBPS", now, c.x, c.x)
	k.exp2(c)
	k.op("VMOVUPS", c.q, k.args.at("factor"))
	k.op("VMASKMOVPS", mem(k.sum), mask, now)
	k.op("VMULPS", c.q, now, now)
	k.op("VMASKMOVPS", now, mask, mem(k.sum))
}

// powers turns the row's logits into powers of 2, adds them to the row's sum and scales what it has accumulated.
func (k *softRows) powers() {
	k.op("VBROADCASTSS", k.args.elem("shift", k.in, 4), k.shift)
	k.zero(k.total)
	k.columns(len(k.chains), func(vectors int, masked bool) {
		chains := k.chains[:vectors]
		for i, c := range chains {
			k.op("VMOVUPS", k.vector(k.x, i), c.x)
		}
		for _, c := range chains {
			k.op("VFMSUB213PS", k.shift, k.scale, c.x)
		}
		k.exp2(chains...)
		if masked {
			k.op("VANDPS", mem(k.maskAt), chains[0].q, chains[0].q)
		}
		for i, c := range chains {
			k.op("VMOVUPS", c.q, k.vector(k.x, i))
			k.op("VADDPS", c.q, k.total, k.total)
		}
	})
	t := k.chains[0].x
	k.clearRest(t, k.x)
	foldVector(k.asm, "VADDPS", k.total, t)
	k.op("VADDSS", indexed(k.sum, k.in, 4), k.total.low(), k.total.low())
	k.op("VMOVSS", k.total.low(), indexed(k.sum, k.in, 4))
	k.scaleAcc()
}

// scaleAcc scales the row's acc, unless its factor is 1, and moves on to the next.
func (k *softRows) scaleAcc() {
	c, next, rest, loop := k.chains[0], k.fresh("next"), k.fresh("rest"), k.fresh("scale")
	k.op("CMPL", k.args.elem("factor", k.in, 4), imm(one))
	k.op("JEQ", next)
	k.op("VBROADCASTSS", k.args.elem("factor", k.in, 4), c.q)
	k.zero(k.at)
	k.mov(k.args.at("vecs"), k.left)
	k.op("TESTQ", k.left, k.left)
	k.op("JZ", rest)
	k.repeat(loop, k.left, func() {
		k.op("VMULPS", k.vector(k.acc, 0), c.q, c.x)
		k.op("VMOVUPS", c.x, k.vector(k.acc, 0))
		k.add(imm(k.bytes()), k.at)
	})
	k.mark(rest)
	k.mov(k.args.at("rest"), k.left)
	k.op("TESTQ", k.left, k.left)
	k.op("JZ", next)
	k.lanesLeft(k.left)
	k.op("VMOVUPS", mem(k.maskAt), c.n)
	k.op("VMASKMOVPS", k.vector(k.acc, 0), c.n, c.x)
	k.op("VMULPS", c.x, c.q, c.x)
	k.op("VMASKMOVPS", c.x, c.n, k.vector(k.acc, 0))
	k.mark(next)
	k.add(k.args.at("ldacc"), k.acc)
}
