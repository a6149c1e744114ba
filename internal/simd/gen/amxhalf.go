package main

// gemmHalf is the product of up to 16 rows, one panel of A: B streams from memory, so two tiles of C are enough.
// C is [16, 32·cols], padded, accumulated onto in place, and written straight away.
func gemmHalf(a *asm) {
	k := amxKernel(a, "gemmBF16Half", 0)
	k.tileForm = tileForm{narrow: true}
	c, cols := a.take(k.p, "c", "R11"), a.take(k.p, "cols", "R13")
	k.sums, k.left, k.right = a.tmms(0, 2, "C"), a.tmms(4, 1, "A"), a.tmm(6, "B")
	k.rows, k.b = a.hold("SI", "rows of A"), a.hold("R9", "step of B")
	k.other = a.hold("R14", "tile of C, then next panel of B")
	quarter, three := a.hold("R8", "quarter of a panel"), a.hold("R15", "three quarters")
	a.repeat("column", cols, func() {
		a.use(zeroTile(k.sums[0]))
		a.use(zeroTile(k.sums[1]))
		a.mov(c, k.p.at("tile"))
		k.startFromC()
		a.mov(k.panelB, k.b)
		a.mov(k.p.at("a"), k.rows)
		left := a.take(k.p, "steps", "CX")
		a.mov(k.p.at("strideB"), k.other)
		a.add(k.panelB, k.other)
		a.mov(left, quarter)
		a.op("IMULQ", imm(panelStep/4), quarter)
		a.lea(indexed(quarter, quarter, 2), three)
		a.repeat("step", left, func() { k.halfStep(quarter, three) })
		a.drop(left)
		a.use(storeTile(k.sums[0], c, k.ldc, 0))
		a.use(storeTile(k.sums[1], c, k.ldc, 64))
		a.add("$128", c)
		a.add(k.p.at("strideB"), k.panelB)
	})
	a.use(tileRelease())
	a.op("RET")
}

// halfStep is a step of gemmHalf. Of the next panel of B it prefetches lines of each quarter: memory serves four
// streams faster than one.
func (k *gemmTiles) halfStep(quarter, three *reg) {
	k.use(loadTile(k.left[0], k.rows, k.line, 0))
	k.gap()
	for col := range 2 {
		k.use(streamTile(k.right, k.b, k.line, 1024*col))
		k.gap()
		k.use(multiplyTiles(k.sums[col], k.left[0], k.right))
		k.gap()
	}
	for i := 0; i < panelStep; i += 64 {
		k.op("PREFETCHT0", mem(k.b, 2*panelStep+i))
	}
	next := k.other
	for i := 0; i < panelStep/4; i += 64 {
		k.op("PREFETCHT1", mem(next, i))
		k.op("PREFETCHT1", indexed(next, quarter, 1, i))
		k.op("PREFETCHT1", indexed(next, quarter, 2, i))
		k.op("PREFETCHT1", indexed(next, three, 1, i))
	}
	k.add(imm(panelStep/4), next)
	k.add(imm(panelStep), k.rows)
	k.add(imm(panelStep), k.b)
}

// widenTiles copies rows × cols panels of C, of bfloat16, to partial sums: tile after tile, down the columns.
func widenTiles(a *asm) {
	a.text("widenTiles", 0, 40)
	a.held = map[string]*reg{}
	dst, src, ld := a.hold("DI", "destination"), a.hold("BX", "column"), a.hold("R8", "ld")
	cols, ahead := a.hold("DX", "columns left"), a.hold("R9", "16 rows")
	at, rows, x := a.hold("SI", "row"), a.hold("CX", "rows left"), a.vecs(0, 2, "elements")
	a.mov("dst+0(FP)", dst)
	a.mov("src+8(FP)", src)
	a.mov("ld+16(FP)", ld)
	a.mov("cols+32(FP)", cols)
	a.mov(ld, ahead)
	a.shl(4, ahead)
	a.repeat("column", cols, func() {
		a.mov(src, at)
		a.mov("rows+24(FP)", rows)
		a.shl(5, rows)
		a.repeat("row", rows, func() {
			a.op("PREFETCHT0", indexed(at, ahead, 1))
			for i := range x {
				widen(a, mem(at, 32*i), x[i])
				a.op("VMOVUPS", x[i], mem(dst, 64*i))
			}
			a.add(ld, at)
			a.add("$128", dst)
		})
		a.add("$64", src)
	})
	a.ret()
}
